// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/registered_workers.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/proxy.hpp>

#include "engine/pools/pool_look.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/admin_impl.hpp"
#include "worker_api/roles/settings_check.hpp"

// Workers that registered themselves. The segment keeps what a worker says of itself as one JSON
// object, which the engine does not look at.

namespace ojs_shm {

namespace {

constexpr std::string_view kDirectiveNames[] = {"running", "quiet", "terminate"};
constexpr std::uint64_t kBeatEveryMs = 1000;

void write_queues(json::ObjectWriter& writer, const RegisteredWorker& worker) {
  std::string& queues = writer.open("queues") += '[';
  for (const std::string& queue : worker.queues) {
    if (&queue != &worker.queues.front()) queues += ',';
    json::append_quoted(queues, queue);
  }
  queues += ']';
}

/// What the segment keeps of a worker beside its numbers.
std::string details_of(const RegisteredWorker& worker) {
  std::string out;
  json::ObjectWriter writer(out);
  const auto text = [&writer](std::string_view name, const std::string& value) {
    if (!value.empty()) writer.text(name, value);
  };
  if (worker.said != "running") writer.text("state", worker.said);
  text("pool", worker.pool);
  text("hostname", worker.hostname);
  text("version", worker.version);
  if (worker.pid != 0) writer.number("pid", std::int64_t{worker.pid});
  if (!worker.queues.empty()) write_queues(writer, worker);
  if (!worker.labels.empty()) writer.value("labels", worker.labels);
  writer.close();
  return out;
}

/// A stranger may have written anything there.
void read_details(std::string_view details, RegisteredWorker& worker) {
  if (!json::check(details) || json::kind_of(json::trim(details)) != json::Kind::kObject) return;
  for (const json::Member& member : json::members_of(json::trim(details))) {
    const auto into = [&member](std::string& text) {
      text = json::string_of(member.value).value_or("");
    };
    if (member.name == "state") into(worker.said);
    if (member.name == "pool") into(worker.pool);
    if (member.name == "hostname") into(worker.hostname);
    if (member.name == "version") into(worker.version);
    if (member.name == "labels") worker.labels = member.value;
    if (member.name == "pid")
      worker.pid = static_cast<std::uint32_t>(json::integer_of(member.value).value_or(0));
    if (member.name == "queues" && json::kind_of(member.value) == json::Kind::kArray)
      for (const std::string_view queue : json::elements_of(member.value))
        worker.queues.push_back(json::string_of(queue).value_or(""));
  }
}

RegisteredWorker worker_from(const engine::Store& store, engine::WorkerFacts facts) {
  RegisteredWorker worker;
  read_details(facts.details, worker);
  for (std::uint32_t i = 0; i < engine::kPools && facts.pool != 0; ++i)
    if (store.pools[i].name_hash.load() == facts.pool) worker.pool = engine::pool_name(store, i);
  worker.id = std::move(facts.id);
  worker.directive = static_cast<WorkerDirective>(facts.order);
  worker.concurrency = facts.concurrency;
  worker.active_jobs = facts.active;
  worker.registered_at_ms = facts.registered_at;
  worker.last_sign_ms = facts.last_sign;
  const std::uint64_t now = store.now_ms();
  worker.silent_ms = now - std::min(now, facts.last_sign);
  worker.returned_jobs = facts.returned;
  worker.longest_silence_ms = facts.silence_ms;
  worker.ended = facts.gone;
  worker.died = facts.died;
  worker.native = facts.native;
  return worker;
}

Error about(std::string_view member, std::string message, std::uint64_t bound = 0) {
  return Error{Code::kInvalid, std::move(message)}.about(std::string(member)).at_most(bound);
}

}  // namespace

std::string_view directive_name(WorkerDirective directive) noexcept {
  return kDirectiveNames[static_cast<std::size_t>(directive) % std::size(kDirectiveNames)];
}

Result<WorkerDirective> parse_directive(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kDirectiveNames); ++i)
    if (kDirectiveNames[i] == name) return static_cast<WorkerDirective>(i);
  return about("directive", "directive must be running, quiet or terminate");
}

std::string_view RegisteredWorker::state() const {
  if (ended || silent_ms > longest_silence_ms) return "stale";
  return directive != WorkerDirective::kRunning ? directive_name(directive)
                                                : std::string_view(said);
}

std::string print_registered_worker(const RegisteredWorker& worker) {
  std::string out;
  json::ObjectWriter writer(out);
  const auto text = [&writer](std::string_view name, const std::string& value) {
    if (!value.empty()) writer.text(name, value);
  };
  const auto number = [&writer](std::string_view name, std::uint64_t value) {
    writer.number(name, static_cast<std::int64_t>(value));
  };
  writer.text("id", worker.id);
  writer.text("state", worker.state());
  writer.text("directive", directive_name(worker.directive));
  text("pool", worker.pool);
  write_queues(writer, worker);
  number("concurrency", worker.concurrency);
  number("active_jobs", worker.active_jobs);
  text("hostname", worker.hostname);
  text("version", worker.version);
  if (worker.pid != 0) number("pid", worker.pid);
  if (!worker.labels.empty()) writer.value("labels", worker.labels);
  writer.boolean("native", worker.native);
  writer.text("started_at", print_timestamp(worker.registered_at_ms));
  writer.text("last_heartbeat_at", print_timestamp(worker.last_sign_ms));
  number("silent_ms", worker.silent_ms);
  if (worker.ended) {
    writer.text("ended", worker.end());
    number("returned_jobs", worker.returned_jobs);
  }
  writer.close();
  return out;
}

namespace internal {

Error other_pool(std::string_view id, std::string_view pool) {
  return Error{Code::kInUse, "worker " + std::string(id) + " is registered in pool " +
                                 std::string(pool) + "; a worker has one pool"}
      .about("pool");
}

Error no_worker(std::string_view id) {
  return Error{Code::kNotFound, "no worker '" + std::string(id) + "'"}.about("worker");
}

std::optional<RegisteredWorker> describe_worker(const engine::Store& store, engine::WorkerKey key) {
  auto facts = key.none() ? std::nullopt : engine::look_at_worker(store, key.place());
  if (!facts || facts->key != key) return std::nullopt;
  if (facts->native) facts->active = static_cast<std::uint32_t>(engine::jobs_of_worker(store, key));
  return worker_from(store, std::move(*facts));
}

/// A worker that lives hides one of the same id that has ended.
std::vector<RegisteredWorker> describe_workers(const engine::Store& store) {
  std::vector<RegisteredWorker> workers;
  std::optional<std::unordered_map<std::uint32_t, std::uint32_t>> jobs;  // counted when wanted
  for (std::uint32_t place = 0; place < store.workers.size(); ++place) {
    auto facts = engine::look_at_worker(store, place);
    if (!facts) continue;
    if (facts->native) {  // no fetch of its own counts
      if (!jobs) jobs = engine::jobs_of_workers(store);
      facts->active = (*jobs)[facts->key.word];
    }
    workers.push_back(worker_from(store, std::move(*facts)));
  }
  std::sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    return a.id != b.id ? a.id < b.id : a.ended < b.ended;
  });
  const auto same = [](const auto& a, const auto& b) { return a.id == b.id; };
  workers.erase(std::unique(workers.begin(), workers.end(), same), workers.end());
  return workers;
}

Result<engine::WorkerKey> report_worker(engine::Actor& actor, const WorkerReport& report,
                                        bool native) {
  const engine::Store& store = actor.store();
  if (report.id.empty() || report.id.size() > kLongestWorkerId)
    return about("worker_id",
                 "the id of a worker must be 1 to " + std::to_string(kLongestWorkerId) + " bytes",
                 kLongestWorkerId);
  if (report.labels && !report.labels->empty() && !json::check(*report.labels))
    return about("labels", "labels must be JSON");
  const engine::WorkerKey known = engine::find_worker(store, report.id);
  RegisteredWorker now = describe_worker(store, known).value_or(RegisteredWorker{});
  const std::string before = now.pool;
  if (report.pool && !report.pool->empty()) now.pool = *report.pool;
  if (report.queues) now.queues = *report.queues;
  if (report.hostname) now.hostname = *report.hostname;
  if (report.version) now.version = *report.version;
  if (report.labels) now.labels = json::compact(*report.labels);
  if (report.state) now.said = *report.state;
  if (report.pid) now.pid = *report.pid;
  if (report.registers && !report.state) now.said = "running";
  const std::string details = details_of(now);
  engine::WorkerReport told;
  told.id = report.id;
  if (!now.pool.empty()) told.pool = engine::Store::hash_name(now.pool);
  told.concurrency = report.concurrency;
  told.active = report.active_jobs;
  told.details = details;
  told.drains = now.said != "running";
  told.pledges = report.pledges;
  told.registers = report.registers;
  told.silence_ms = report.silence_ms;
  told.native = native;
  engine::WorkerKey key;
  switch (engine::Registry(actor).report(told, key)) {
    case engine::Outcome::kOk: return key;
    case engine::Outcome::kOtherPool: return other_pool(report.id, before);
    case engine::Outcome::kTooLarge:
      return about("queues",
                   "what a worker says of itself, its queues and labels above all, must fit in " +
                       std::to_string(engine::kLongestWorkerDetails) + " bytes",
                   engine::kLongestWorkerDetails);
    case engine::Outcome::kNoWorkers:
      return Error{Code::kSegmentFull,
                   "all " + std::to_string(store.workers.size()) +
                       " places for registered workers are taken; --slots sets how many there are"}
          .about("workers")
          .uses(store.workers.size(), store.workers.size());
    default:
      return Error{Code::kTimeout,
                   "a stopped process is in the middle of changing worker " + report.id}
          .about("worker");
  }
}

// ---- a handle that is a worker ------------------------------------------------------------------

Registration::Registration(const WorkerOptions& options, std::vector<std::string> queues) {
  report_.id = options.id;
  if (!options.pool.empty()) report_.pool = options.pool;
  report_.queues = std::move(queues);
  report_.concurrency =
      options.total_concurrency != 0 ? options.total_concurrency : options.concurrency;
  if (!options.labels.empty()) report_.labels = options.labels;
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) report_.hostname = host;
  report_.version = std::string(library_version());
  report_.pid = static_cast<std::uint32_t>(::getpid());
}

Status Registration::enter(engine::Actor& actor) {
  const bool joins = !engine::find_worker(actor.store(), report_.id).none();
  const auto entered = report_worker(actor, report_, true);
  if (!entered) return entered.error();
  made_ = !joins;
  const std::lock_guard lock(mutex_);
  key_ = entered.value();
  beat_at_ms_ = actor.store().now_ms();
  actor.pool_worker().work_as(key_);
  return {};
}

bool Registration::beat(engine::Actor& actor) {
  const std::uint64_t now = actor.store().now_ms();
  const std::lock_guard lock(mutex_);
  if (now < beat_at_ms_ + kBeatEveryMs && now >= beat_at_ms_)
    return engine::worker_lives(actor.store(), key_);
  beat_at_ms_ = now;
  return engine::Registry(actor).beat(key_);
}

Status Registration::say(engine::Actor& actor, WorkerDirective state) {
  report_.state = std::string(directive_name(state));
  if (!engine::worker_lives(actor.store(), key())) return enter(actor);
  const auto said = report_worker(actor, {.id = report_.id, .state = report_.state}, true);
  return said ? Status() : said.error();
}

WorkerDirective Registration::directive(const engine::Store& store) const {
  const engine::WorkerKey mine = key();
  if (!engine::worker_lives(store, mine)) return WorkerDirective::kRunning;
  const std::uint64_t order = store.workers[mine.place()].order.load();
  return static_cast<WorkerDirective>(std::min<std::uint64_t>(order, 2));
}

Status Registration::may_fetch(engine::Actor& actor) {
  if (!beat(actor))
    if (Status entered = enter(actor); !entered) return entered;
  switch (directive(actor.store())) {
    case WorkerDirective::kRunning: return {};
    case WorkerDirective::kQuiet: return Error{Code::kEmpty};
    case WorkerDirective::kTerminate: break;
  }
  return Error{Code::kClosed, "worker " + report_.id + " was told to terminate"}.about("worker");
}

void Registration::leave(engine::Actor& actor) {
  if (made_) engine::Registry(actor).leave(key());
}

}  // namespace internal

// ---- observer, admin ----------------------------------------------------------------------------

std::vector<RegisteredWorker> Observer::registered_workers() const {
  return internal::describe_workers(segment_.attachment()->store());
}

Result<RegisteredWorker> Observer::registered_worker(std::string_view id) const {
  const engine::Store& store = segment_.attachment()->store();
  if (auto worker = internal::describe_worker(store, engine::find_worker(store, id)))
    return std::move(*worker);
  for (RegisteredWorker& worker : registered_workers())
    if (worker.id == id) return std::move(worker);
  return internal::no_worker(id);
}

Status Admin::direct_worker(std::string_view id, WorkerDirective directive) {
  if (impl_->handle->closed()) return internal::closed();
  switch (engine::Registry(impl_->handle->actor())
              .order(id, static_cast<engine::WorkerOrder>(directive))) {
    case engine::Outcome::kOk: return {};
    case engine::Outcome::kNotFound: return internal::no_worker(id);
    default:
      return Error{Code::kTimeout,
                   "a stopped process is in the middle of changing worker " + std::string(id)}
          .about("worker");
  }
}

Status Admin::remove_worker(std::string_view id) {
  if (impl_->handle->closed()) return internal::closed();
  engine::Actor& actor = impl_->handle->actor();
  engine::Registry registry(actor);
  const bool left = registry.leave(engine::find_worker(actor.store(), id));
  return registry.forget(id) || left ? Status() : Status(internal::no_worker(id));
}

}  // namespace ojs_shm
