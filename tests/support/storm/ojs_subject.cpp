// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storm/ojs_subject.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ojs_shm/admin.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "engine/tables/ring_look.hpp"
#include "engine/tables/store.hpp"
#include "shm/ring.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

Broker* living_broker = nullptr;

/// Does something in a process of its own, so that this one never becomes a member of the segment.
template <class Deed>
void in_a_child(Deed deed) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(deed() ? 0 : 1);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || status != 0)
    throw std::runtime_error("the segment cannot be made");
}

bool set_policies(Admin& admin) {
  Dice dice(1);
  for (const std::string& queue : policy_queues()) {
    QueueSettings settings = storm_policy(queue, dice);
    if (settings.tenant_fairness) settings.tenant_fairness->enabled = true;
    if (const Status set = admin.set_queue(queue, settings); !set.ok())
      return fmt::print(stderr, "set_queue {}: {}\n", queue, set.error().message), false;
  }
  auto pool = admin.set_pool(kStormPool, storm_pool(dice));
  if (pool.ok()) pool = admin.set_pool(kPassingPool, passing_pool(dice));
  if (!pool.ok()) fmt::print(stderr, "set_pool: {}\n", pool.error().message);
  return pool.ok();
}

/// Chunks beside one each that the rings of tenants without jobs keep: dead hints, from when a
/// queue ceased to be fair, stay until the flow is another tenant's.
std::uint64_t left_in_flows(const Observer& observer) {
  internal::Attachment& attachment = *observer.segment().attachment();
  std::uint64_t chunks = 0;
  engine::each_flow(attachment.store(), [&](std::uint32_t, std::uint32_t ring) {
    std::uint32_t last = shm::kNoIndex;
    shm::Rings::walk(attachment.segment(), ring, [&](std::uint32_t chunk, unsigned, std::uint64_t) {
      chunks += last != shm::kNoIndex && chunk != last ? 1 : 0;
      last = chunk;
    });
  });
  return chunks;
}

}  // namespace

OjsSubject::OjsSubject(const OjsPlan& plan) : plan_(plan) { plan_.epoch_ms = wall_ms(); }
OjsSubject::~OjsSubject() = default;

void OjsSubject::create() {
  in_a_child([this] {
    const auto segment = Segment::create(plan_.name, plan_.options);
    if (!segment.ok()) return fmt::print(stderr, "create: {}\n", segment.error().message), false;
    auto admin = Admin::attach(*segment);
    if (!admin.ok()) return fmt::print(stderr, "admin: {}\n", admin.error().message), false;
    for (const std::string& queue : storm_queues()) {
      QueueSettings settings;
      settings.max_depth = queue == storm_queues().back() ? kStormBound : 0;
      if (const Status set = admin->set_queue(queue, settings); !set.ok())
        return fmt::print(stderr, "set_queue: {}\n", set.error().message), false;
    }
    if (plan_.policies && !set_policies(*admin)) return false;
    // The ledger knows who drops a dead letter.
    (void)admin->set_dead_retention({.max_age_ms = 0, .max_count = 0});
    (void)admin->set_queue(kPassingQueue, {});  // its place is taken before places are counted
    (void)admin->set_strict_envelopes(plan_.everything);
    (void)admin->set_immutable_priorities(false);
    if (const Status set = admin->set_events(plan_.everything); !set.ok())
      return fmt::print(stderr, "set_events: {}\n", set.error().message), false;
    return true;
  });
  auto observer = Observer::attach(plan_.name);
  if (!observer.ok()) throw std::runtime_error("observe: " + observer.error().message);
  observer_ = std::move(observer).value();
  first_pools_ = observer_->segment_info().pools;
}

void OjsSubject::remove() noexcept {
  observer_.reset();
  try {
    (void)remove_segment(plan_.name, Removal::kForced);
    (void)remove_segment(copy_of(plan_.name), Removal::kForced);
  } catch (...) {  // nothing is left to tell it to
  }
}

void OjsSubject::produce(Lane& lane) { produce_jobs(lane, plan_); }
void OjsSubject::work(Lane& lane) { work_on_jobs(lane, plan_); }
void OjsSubject::observe(Lane& lane) { observe_jobs(lane, plan_); }

void OjsSubject::broke(Lane& lane) {
  auto broker =
      attach_patiently<Broker>(lane, [&] { return Broker::start(plan_.name, plan_.options); });
  if (!broker) return;
  living_broker = &*broker;
  std::signal(SIGTERM, [](int) { living_broker->stop(); });
  const Status ran = lane.asked_to_leave() ? Status() : broker->run([](std::string_view) {});
  std::signal(SIGTERM, SIG_IGN);  // the broker goes now, and one that asks again must not find it
  if (!ran.ok()) lane.accuse(Offence::kUnexpectedAnswer, {}, "broker: " + ran.error().message);
}

std::optional<pid_t> OjsSubject::supervisor() {
  for (const ProcessInfo& process : observer_->segment_info().processes)
    if (process.supervisor && process.alive) return static_cast<pid_t>(process.pid);
  return std::nullopt;
}

bool OjsSubject::knows(std::string_view id, std::uint64_t since_ns) {
  // A tight segment forgets finished jobs within milliseconds, any other one when their retention
  // has passed: from then on a job not found says nothing.
  if (plan_.tight || observer_->get(id).code() != Code::kNotFound) return true;
  return monotonic_ns() - since_ns > plan_.options.retention_ms * 500'000;
}

bool OjsSubject::is_empty() const {
  JobFilter dead;
  dead.dead_letter = true;
  dead.limit = 1;
  const auto queues = observer_->queues();
  return observer_->list(dead).empty() &&
         std::all_of(queues.begin(), queues.end(), [](const QueueInfo& queue) {
           std::uint64_t unfinished = queue.depth;
           for (const State state : {State::kScheduled, State::kAvailable, State::kPending,
                                     State::kActive, State::kRetryable})
             unfinished += queue.by_state[static_cast<int>(state)];
           return unfinished == 0;
         });
}

/// A job may fail for good, or a dead letter come back, between the two looks of is_empty(); when
/// none was dispatched or tended meanwhile, the second time sees where it went.
bool OjsSubject::drained(const Ledger& ledger) {
  const auto moves = [&] {
    return ledger.sum(&LaneBook::dispatched) + ledger.sum(&LaneBook::revived) +
           ledger.sum(&LaneBook::buried);
  };
  const std::uint64_t before = moves();
  return is_empty() && is_empty() && moves() == before;
}

void OjsSubject::accuse_violations(Ledger& ledger, std::string_view when) {
  for (const Violation& violation : observer_->audit())
    ledger.accuse(Offence::kAuditFinding, 0, {},
                  fmt::format("{}: invariant {}: {}", when, violation.invariant, violation.text));
}

/// While all work a death without a repair shows. Only what two looks in a row show is
/// there to stay.
void OjsSubject::look(Ledger& ledger) {
  ++looks_;
  std::set<std::string> found;
  for (const Violation& violation : observer_->audit())
    found.insert(fmt::format("invariant {}: {}", violation.invariant, violation.text));
  for (const std::string& text : found)
    if (last_look_.contains(text))
      ledger.accuse(Offence::kAuditFinding, 0, {}, "twice while all work: " + text);
  last_look_ = std::move(found);
}

std::vector<PayloadKey> OjsSubject::unfinished(Ledger& ledger) {
  std::vector<PayloadKey> keys;
  for (const JobInfo& job : observer_->list({})) {
    if (is_terminal(job.state)) continue;
    const auto key = key_of(job);
    if (key) keys.push_back(*key);
    const JobRecord* const known = key ? ledger.find(*key) : nullptr;
    ledger.accuse(
        Offence::kStuck, 0, key.value_or(PayloadKey{}),
        fmt::format(
            "{} is {} in {}, priority {}, attempt {}; {} dispatches, {} requeues seen, lease {} ms",
            job.id, state_name(job.state), job.queue, job.priority, job.attempt,
            known ? known->dispatches.load() : 0, known ? known->requeues.load() : 0,
            job.lease_ms));
  }
  return keys;
}

/// What is gone without an end that any process learnt was dropped, and the queue has counted it.
void OjsSubject::compare(Ledger& ledger, const LedgerVerdict& verdict) {
  if (!plan_.policies) return;
  const std::uint64_t counted =
      observer_->queue(kDroppingQueue).value().dropped_total - dropped_before_;
  dropped_before_ += counted;
  if (counted < verdict.dropped || counted > verdict.maybe_dropped)
    ledger.accuse(Offence::kLost, 0, {},
                  fmt::format("{} says that it dropped {} jobs; {} to {} are gone", kDroppingQueue,
                              counted, verdict.dropped, verdict.maybe_dropped));
}

void OjsSubject::inspect(Ledger& ledger) {
  accuse_violations(ledger, "after the storm");
  check_ends(ledger, observer_->list({}));
  for (const QueueInfo& queue : observer_->queues())
    if (queue.depth != 0 || queue.size_bytes != 0)
      ledger.accuse(Offence::kLeak, 0, {},
                    fmt::format("{} is empty, and says depth {}, {} bytes", queue.name, queue.depth,
                                queue.size_bytes));
  check_policies(ledger);
  check_pools(ledger);
}

/// No process waits for room, nothing counts against a limit.
void OjsSubject::check_policies(Ledger& ledger) {
  const auto accuse_rest = [&](std::string_view what, std::string_view name, std::uint64_t active,
                               std::uint64_t waiting) {
    if (active + waiting != 0)
      ledger.accuse(Offence::kLeak, 0, {},
                    fmt::format("{} {}: {} active, {} waiting", what, name, active, waiting));
  };
  for (const QueueInfo& queue : observer_->queues())
    accuse_rest("queue", queue.name, 0, queue.waiting);
  for (const LimitInfo& limit : observer_->limits())
    accuse_rest("limit", limit.key, limit.active, limit.waiting);
  for (const WorkerPoolInfo& pool : observer_->pools())
    accuse_rest("pool", pool.name, pool.active_jobs + pool.active_workers, pool.waiting_jobs);
}

/// What the segment says of a finished job is what the process was told that finished it.
void OjsSubject::check_ends(Ledger& ledger, const std::vector<JobInfo>& jobs) {
  for (const JobInfo& info : jobs) {
    const auto key = key_of(info);
    const JobRecord* const job = key ? ledger.find(*key) : nullptr;
    if (job == nullptr) {
      ledger.accuse(key ? Offence::kUnknownJob : Offence::kCorruptPayload, 0,
                    key.value_or(PayloadKey{}), info.id);
      continue;
    }
    const std::uint32_t marks = job->marks.load();
    if (info.state == State::kDiscarded) {
      // Who was dropped for room never failed.
      const bool dropped =
          (marks & kMayDrop) != 0 && info.completed_at_ms == 0 && !info.dead_letter;
      if ((marks & (kMayDiscard | kMayExpire)) == 0 && !dropped)
        ledger.accuse(Offence::kEndNotKept, 0, *key,
                      fmt::format("{} is discarded for no reason", info.id));
    }
    if ((marks & kBuryReturned) != 0)
      ledger.accuse(Offence::kEndNotKept, 0, *key,
                    fmt::format("{} is there, but drop_dead returned", info.id));
    const bool acked = job->completions.load() != 0, cancelled = (marks & kCancelReturned) != 0;
    if ((acked && info.state != State::kCompleted) ||
        (cancelled && info.state != State::kCancelled))
      ledger.accuse(Offence::kEndNotKept, 0, *key,
                    fmt::format("{} is {}, but {} returned", info.id, state_name(info.state),
                                acked ? "ack" : "cancel"));
  }
}

/// When the retention has passed, everything is where it was before the first job.
void OjsSubject::check_pools(Ledger& ledger) {
  std::vector<PoolInfo> pools;
  const auto home = [&](const PoolInfo& pool) {
    const auto first = std::find_if(first_pools_.begin(), first_pools_.end(),
                                    [&](const PoolInfo& other) { return other.name == pool.name; });
    const std::uint64_t before = first == first_pools_.end() ? 0 : first->used;
    // Levels and parts stay with their queue once they were used, and each level keeps the chunk it
    // would fill next.
    if (pool.name == "levels" || pool.name == "parts") return true;
    // The broker has come since.
    if (pool.name == "handles" || pool.name == "processes") return pool.used <= before + 1;
    if (pool.name == "chunks")
      return std::any_of(pools.begin(), pools.end(), [&](const PoolInfo& other) {
        return other.name == "levels" &&
               // spares of the broker
               pool.used <= before + other.used + left_in_flows(*observer_) + 8;
      });
    return pool.used <= before;
  };
  const std::uint64_t began = monotonic_ns();
  do {
    pools = observer_->segment_info().pools;
    if (std::all_of(pools.begin(), pools.end(), home)) return;
    nap_us(20'000);
  } while (monotonic_ns() - began < 30'000'000'000U);
  for (const PoolInfo& pool : pools)
    if (!home(pool))
      ledger.accuse(Offence::kLeak, 0, {},
                    fmt::format("pool {}: {} of {} used", pool.name, pool.used, pool.capacity));
}

void OjsSubject::inspect_abandoned(Ledger& ledger) {
  accuse_violations(ledger, "when all have left");
  if (const Status removed = remove_segment(plan_.name, Removal::kWithJobs); !removed.ok())
    ledger.accuse(Offence::kLeak, 0, {},
                  "the empty segment cannot be removed: " + removed.error().message);
}

std::vector<std::string> OjsSubject::remarks() {
  const SegmentInfo info = observer_->segment_info();
  std::vector<std::string> lines{
      fmt::format("segment: {} MiB, deaths {}, repairs {}, {} audits on the way",
                  info.size_bytes >> 20, info.deaths_total, info.repairs_total, looks_),
      "pools:"};
  for (const PoolInfo& pool : info.pools)
    lines.back() += fmt::format(" {} {}/{}", pool.name, pool.used, pool.capacity);
  for (const QueueInfo& queue : observer_->queues())
    lines.push_back(
        fmt::format("{}: enqueued {}, dispatched {}, completed {}, cancelled {}, discarded {}, "
                    "retried {}, returned {}, rejected "
                    "{}, dropped {}",
                    queue.name, queue.enqueued_total, queue.dispatched_total, queue.completed_total,
                    queue.cancelled_total, queue.discarded_total, queue.retried_total,
                    queue.returned_total, queue.rejected_total, queue.dropped_total));
  return lines;
}

}  // namespace ojs_shm::test
