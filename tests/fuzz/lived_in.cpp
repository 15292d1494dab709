// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/lived_in.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/transfer.hpp>
#include <ojs_shm/worker.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "engine/tables/store.hpp"
#include "shm/atomics.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

using internal::Attachment;

struct Inhabitant {
  Segment segment;
  Producer producer;
  Worker worker;
  Admin admin;
  Job held, pool_held;
  std::optional<Worker> pooled;
  std::optional<WaitingEnqueue> waiting;

  static Inhabitant move_in() {
    SegmentOptions options;
    options.slots = 96;
    options.max_queues = 3;
    options.max_body_bytes = 16'384;
    options.max_handles = 16;
    // As a broker, for a member would start a thread that looks after the segment.
    auto made = Attachment::create(segment_name(), options, Attachment::Role::kBroker);
    require(made.ok(), made.ok() ? "" : made.error().message);
    Segment segment = Segment::of(*made);
    WorkerOptions both;
    both.queues = {"default", "bounded"};
    return {segment,
            *Producer::attach(segment),
            *Worker::attach(segment, both),
            *Admin::attach(segment),
            {},
            {},
            {},
            {}};
  }

  std::string enqueue(int n) {
    JobSpec spec;
    const std::string args =
        "[\"" + std::string(static_cast<std::size_t>(n) * 31 % 900, 'x') + "\"]";
    spec.type = n % 2 == 0 ? "fuzz.even" : "fuzz.odd";
    spec.args = args;
    spec.priority = n % 7;
    if (n % 4 == 3) spec.queue = "bounded";
    if (n % 10 == 0) spec.scheduled_at_ms = 4'000'000'000'000;
    if (n % 10 == 4) spec.expires_at_ms = 4'000'000'000'000;
    spec.pending = n % 10 == 5;
    spec.lease_ms = n % 10 == 6 ? 50 : 0;
    spec.retry.max_attempts = n % 3 == 0 ? 1 : 3;
    spec.retry.dead_letter = n % 2 == 0;
    const std::string id = "0199461a-0000-7000-8000-0000000000" + std::to_string(10 + n);
    if (n % 9 == 1) spec.id = id;
    const std::string tenant = "t" + std::to_string(n % 3);
    if (n % 4 == 1) spec.tenant = tenant;
    const JobLimit one{"k0", {.concurrency = 1}};
    const JobLimit paced{
        "k1",
        {.rate = 3, .rate_period_ms = 60'000, .sliding = true, .on_limit = OnLimit::kReschedule}};
    const JobLimit spaced{"k2", {.throttle = 100, .throttle_period_ms = 60'000, .burst = 2}};
    if (n % 8 == 6) spec.limit = &one;
    if (n % 16 == 2) spec.limit = &paced;
    if (n % 16 == 9) spec.limit = &spaced;
    const auto made = producer.enqueue(spec);
    require(made.ok(), made.ok() ? "" : made.error().message);
    return made->str();
  }

  void set_cron(std::string_view name, std::string_view args) {
    CronSpec spec;
    spec.name = name;
    spec.expression = "@every 1h";
    spec.overlap = CronOverlap::kAllow;
    spec.job.type = "fuzz.cron";
    spec.job.args = args;
    require(admin.set_cron(spec).ok(), "a cron was refused");
    require(admin.trigger_cron(name).ok(), "a cron did not fire");
  }

  void set_limit(std::string_view key, const RateLimit& limit) {
    const Status set = admin.set_limit(key, limit);
    require(set.ok(), set.ok() ? "" : set.error().message);
  }

  /// Tenants and their shares, limits, a pool, and a queue whose one place is taken, with a lane
  /// in line for it.
  void set_policies() {
    QueueSettings bounds, shares, line;
    bounds.max_depth = 40;
    bounds.strategy = BackpressureStrategy::kDropOldest;
    require(admin.set_queue("bounded", bounds).ok(), "a queue was refused");
    shares.tenant_fairness = {.enabled = true, .default_weight = 1, .weights = {{"t0", 3}}};
    shares.tenant_max_depth = 60;
    shares.tenant_bounds = {{"t1", 50, {}}};
    require(admin.set_queue("default", shares).ok(), "a queue was refused");
    line.max_depth = 1;
    line.strategy = BackpressureStrategy::kBlock;
    require(admin.set_queue("other", line).ok(), "a queue was refused");
    const PoolSettings crew{.queues = {"default", "bounded"},
                            .strategy = PoolStrategy::kWeighted,
                            .weights = {{"default", 3}},
                            .concurrency = 50,
                            .starvation_prevention = {.enabled = true}};
    require(admin.set_pool("crew", crew).ok(), "a pool was refused");
    set_limit("queue:bounded", {.rate = 20, .rate_period_ms = 60'000, .sliding = true});
    set_limit("type:fuzz.odd", {.concurrency = 12});
    set_limit("tenant:t1", {.throttle = 1000, .throttle_period_ms = 1000, .burst = 20});
    WorkerOptions of_crew;
    of_crew.pool = "crew";
    pooled.emplace(*Worker::attach(segment, of_crew));
    const JobSpec spec{.type = "fuzz.even", .queue = "other"};
    require(producer.enqueue(spec).ok(), "the only place was refused");
    waiting.emplace(*producer.begin(std::span(&spec, 1), {.block_timeout = std::chrono::hours(1)}));
    require(!waiting->poll(), "nobody waits");
  }

  void live() {
    set_policies();
    require(admin.set_default_priority("fuzz.even", 3).ok(), "a default was refused");
    require(admin.set_events(true).ok(), "events were refused");
    set_cron("nightly", "[1]");
    set_cron("hourly", "[\"" + std::string(400, 'c') + "\"]");
    std::vector<std::string> ids;
    for (int n = 0; n < 70; ++n) ids.push_back(enqueue(n));
    (void)producer.cancel(ids[2]);
    (void)producer.reprioritize(ids[7], 0);
    Job job;
    for (int n = 0; n < 36; ++n) {
      require(worker.try_fetch(job).ok(), "nothing was there");
      if (n % 6 <= 2) (void)worker.ack(job, "[1, \"a result that does not fit into nothing\"]");
      if (n % 6 == 3) (void)worker.nack(job, {.message = "it failed"});
      if (n % 6 == 4) (void)worker.requeue(job);
    }
    require(worker.try_fetch(held).ok() && pooled->try_fetch(pool_held).ok(), "nothing was there");
  }
};

/// What it is at when it is killed, half of its writes done.
using LastAct = std::function<void(Inhabitant&)>;
const LastAct kLastActs[] = {
    [](Inhabitant& one) { one.enqueue(71); },
    [](Inhabitant& one) { (void)one.worker.try_fetch(one.held); },
    [](Inhabitant& one) { (void)one.worker.ack(one.held, "[\"done\"]"); },
    [](Inhabitant& one) { (void)one.worker.nack(one.held, {.message = "it failed again"}); },
    [](Inhabitant& one) {
      const JobSpec specs[] = {
          {.type = "fuzz.batch"}, {.type = "fuzz.batch"}, {.type = "fuzz.batch"}};
      (void)one.producer.enqueue_batch(specs);
    },
    [](Inhabitant& one) {
      JobFilter waiting;
      waiting.state = State::kAvailable;
      (void)one.producer.reprioritize(Observer::attach(one.segment)->list(waiting).back().id, 50);
    },
    [](Inhabitant& one) {
      (void)one.admin.set_limit("k0", {.concurrency = 2, .rate = 9, .rate_period_ms = 60'000});
    },
    [](Inhabitant& one) { (void)one.pooled->try_fetch(one.pool_held); },
    [](Inhabitant& one) {
      (void)one.admin.set_pool("crew", {.queues = {"default", "other"}, .isolated = true});
    },
    [](Inhabitant& one) { one.waiting.reset(); },
    [](Inhabitant& one) { one.set_cron("hourly", "[2]"); },
    [](Inhabitant& one) { (void)one.admin.trigger_cron("nightly"); },
    [](Inhabitant& one) {
      Import import = *Import::attach(one.segment);
      (void)import.take(R"({"ojs_shm_export":1,"convention":"ojs"})");
      (void)import.take(
          R"({"job":{"type":"fuzz.old","priority":3,"state":"completed","result":[1]}})");
    },
};

thread_local int writes = 0, last_write = 0;

void on_write(shm::Access access, shm::Point, const void*) {
  if (access == shm::Access::kWritten && ++writes == last_write) ::_exit(0);
}

/// A child makes the segment and lives in it. Returns its exit code: the number of writes of its
/// last act, or 0 when it was killed at `die_at`.
int inhabit(const LastAct* last, int die_at) {
  begin_run();
  ::unlink(internal::path_of(segment_name()).c_str());
  const pid_t child = ::fork();
  require(child >= 0, "no child");
  if (child == 0) {
    {
      Inhabitant one = Inhabitant::move_in();
      one.live();
      last_write = die_at;
      shm::thread_hook = on_write;
      if (last != nullptr) (*last)(one);
      shm::thread_hook = nullptr;
    }
    ::_exit(writes);
  }
  int status = 0;
  require(::waitpid(child, &status, 0) == child && WIFEXITED(status), "the inhabitant failed");
  return WEXITSTATUS(status);
}

/// Where the tables begin that the segment has now.
std::vector<std::size_t> tables_of(const Segment& segment) {
  const engine::Store& store = segment.attachment()->store();
  const auto* base = reinterpret_cast<const std::byte*>(&store.segment().header());
  const shm::Offsets o = shm::offsets_of(store.segment().geometry());
  std::vector<std::size_t> tables = {0,
                                     sizeof(shm::Header),
                                     o.processes,
                                     o.lanes,
                                     o.area,
                                     o.slot_map,
                                     o.chunk_map,
                                     o.block_map,
                                     o.rings,
                                     o.chunks,
                                     o.keys,
                                     o.slots,
                                     o.block_words,
                                     o.block_links,
                                     o.blocks,
                                     o.end};
  const auto add = [&](const auto& first) {
    tables.push_back(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&first) - base));
  };
  for (std::uint32_t queue = 0; queue < store.max_queues(); ++queue) {
    add(store.queue(queue));
    add(store.queue(queue).rings);
    add(store.queue(queue).aging);
  }
  add(*(&store.queue(store.max_queues() - 1) + 1));  // rings of parts
  add(store.type_defaults[0]);
  add(store.flows[0]);
  add(store.pools[0]);
  add(store.accounts[0]);
  add(store.limit_keys[0]);
  add(store.lots[0]);
  add(store.permit_pages[0]);
  add(store.wait_pages[0]);
  add(store.event_pages[0]);
  add(store.tally(0, 0));
  add(store.tenant_rules[0]);
  add(store.cron_table());
  add(store.tickets[0]);
  add(store.account_tally(0, 0));
  add(store.event_controls[0]);
  add(store.busy_word(0));
  add(store.permit_runs[0]);
  add(store.backlogs[0]);
  add(store.sample_times());
  add(store.samples[0]);
  std::sort(tables.begin(), tables.end());
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  return tables;
}

Image make_image(const LastAct* last) {
  const int all_writes = inhabit(last, 0);
  if (last != nullptr)
    require(all_writes > 1 && inhabit(last, all_writes / 2) == 0,
            "the inhabitant was not killed; its act has " + std::to_string(all_writes));
  Image image;
  const auto seen = Observer::attach(segment_name());
  require(seen.ok(), "the image is no segment");
  for (const JobInfo& job : seen->list({})) image.ids.push_back(job.id);
  image.tables = tables_of(seen->segment());
  std::ifstream file(internal::path_of(segment_name()), std::ios::binary);
  image.bytes.assign(std::istreambuf_iterator<char>(file), {});
  return image;
}

}  // namespace

const SegmentName& segment_name() {
  static const auto* name = new SegmentName{"fuzz", scratch()};
  return *name;
}

const std::vector<Image>& images() {
  static const auto* all = [] {
    auto* made = new std::vector<Image>{make_image(nullptr)};
    for (const LastAct& last : kLastActs) made->push_back(make_image(&last));
    return made;
  }();
  return *all;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.flush();
  require(file.good(), "cannot write " + path);
}

}  // namespace ojs_shm::fuzz
