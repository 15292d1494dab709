// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/worker.hpp>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/support/storm/ojs_lanes.hpp"

namespace ojs_shm::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFetchTimeout{20};
constexpr std::string_view kBigResult =
    "\"a result that does not fit where small ones are kept, a result that does not fit where "
    "small ones are kept\"";

class WorkerLane {
 public:
  /// `dice`: of this handle, so that one which broke off at its first throw does not for ever.
  WorkerLane(Lane& lane, const OjsPlan& plan, bool pooled, bool passing, std::uint32_t thread,
             Dice dice, Worker worker)
      : lane_(lane),
        plan_(plan),
        pooled_(pooled),
        passing_(passing),
        me_{lane.life, thread},
        dice_(dice),
        worker_(std::move(worker)) {}

  /// True: with another handle it would go on.
  bool run() {
    Job job;
    while (!lane_.asked_to_leave()) {
      lane_.step();
      Status status;
      if (plan_.everything && dice_.chance(0.0005)) return break_off();
      if (plan_.everything && lane_.member == 0 && dice_.chance(0.05)) {
        status = fetch_when_called(job);
      } else if (dice_.chance(0.2)) {
        if (fetch_some()) continue;
        status = worker_.try_fetch(job);
      } else {
        status = worker_.fetch(job, kFetchTimeout);
      }
      if (status.ok()) {
        if (auto held = begin(job, 0)) end(*held);
      } else if (status.code() == Code::kEmpty || status.code() == Code::kTimeout) {
        help_the_drain();
      } else if (status.code() == Code::kNotFound && passing_) {
        return true;  // its pool was removed
      } else {
        unexpected("fetch", status.error(), {});
        return false;
      }
    }
    return false;
  }

 private:
  struct Held {
    Job& job;
    PayloadKey key;
    std::uint32_t place;
    std::uint64_t lease_end_ms;
    bool mine;  // false: a newer attempt has begun, so each answer must be kLost
  };

  /// As an event loop does. The handle of the bell may find no room for a moment.
  Status fetch_when_called(Job& job) {
    const auto bell = worker_.event_fd();
    if (!bell.ok() && bell.code() != Code::kSegmentFull) unexpected("event_fd", bell.error(), {});
    pollfd waiting{bell.ok() ? *bell : -1, POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(kFetchTimeout.count()));
    return worker_.try_fetch(job);
  }

  /// From an interruption on a handle gives nothing out.
  bool break_off() {
    worker_.interrupt();
    Job job;
    const Status fetched = worker_.fetch(job, kFetchTimeout);
    if (fetched.code() == Code::kClosed) return true;
    lane_.accuse(Offence::kUnexpectedAnswer, {},
                 fmt::format("interrupted, yet {}", code_name(fetched.code())));
    return false;
  }

  void find_nothing_while_quiet() {
    worker_.quiet();
    Job job;
    if (worker_.try_fetch(job))
      lane_.accuse(Offence::kUnexpectedAnswer, {}, "quiet, yet it fetched a job");
    worker_.resume();
  }

  bool fetch_some() {
    auto jobs = worker_.fetch_batch(dice_.between(2, kHeldPerThread), kFetchTimeout);
    if (!jobs.ok()) {
      const bool without_pool = jobs.code() == Code::kNotFound && passing_;
      if (jobs.code() != Code::kTimeout && jobs.code() != Code::kEmpty && !without_pool)
        unexpected("fetch_batch", jobs.error(), {});
      return false;
    }
    std::vector<Held> held;
    std::uint32_t place = 0;
    for (Job& job : jobs.value())
      if (auto one = begin(job, place++)) held.push_back(*one);
    for (Held& one : held) end(one);
    return !held.empty();
  }

  std::optional<Held> begin(Job& job, std::uint32_t place) {
    const std::uint64_t now = monotonic_ns();
    const auto key = judge_payload(job.args(), payload_context(job.queue(), job.type()));
    if (!key || lane_.ledger.find(*key) == nullptr) {
      lane_.accuse(key ? Offence::kUnknownJob : Offence::kCorruptPayload,
                   key.value_or(PayloadKey{}),
                   fmt::format("id {}, {}, {} bytes: {:.60}", job.id(), job.queue(),
                               job.args().size(), job.args()));
      return std::nullopt;
    }
    if (!plan_.everything) judge_priority(job, *key);
    Held held{job, *key, place, job.deadline_ms(), true};
    held.mine = lane_.ledger.dispatched(
        *key, me_, {job.fence(), job.deadline_ms(), now, job.attempt(), job.id()});
    InFlight& note = lane_.book().in_flight[me_.thread][place];
    std::memcpy(note.id, job.id().data(), 36);
    note.key_plus_one.store(std::uint64_t{key->producer} << 40 | (key->sequence + 1));
    lane_.book().dispatched.fetch_add(1);
    if (has_policy(job.queue())) count_permits(job, note, *key);
    return held;
  }

  /// A holder counts against the limit of its job's key, and against that of its pool.
  void count_permits(const Job& job, InFlight& note, PayloadKey key) {
    const std::uint32_t limits[] = {limit_in(job.extra()), pooled_ ? kPoolLimit : 0};
    for (int i = 0; i < 2; ++i) {
      if (limits[i] == 0) continue;
      note.permits[i].store(std::uint64_t{limits[i]} << 40 | std::uint64_t{lane_.life} << 20 |
                            (++permits_ & 0xFFFFF));
      const std::uint32_t now = lane_.ledger.at_work(limits[i]);
      if (now > concurrency_of(limits[i]))
        lane_.accuse(
            Offence::kOverLimit, key,
            fmt::format("{} at work, limit {} of {}", now, concurrency_of(limits[i]),
                        limits[i] == kPoolLimit ? "the pool" : fmt::format("key k{}", limits[i])));
    }
  }

  void judge_priority(const Job& job, PayloadKey key) {
    const PlannedJob planned(key, plan_);
    if (job.priority() != planned.priority || (!planned.id.empty() && planned.id != job.id()))
      lane_.accuse(Offence::kCorruptPayload, key,
                   fmt::format("priority {} or id {} is another's", job.priority(), job.id()));
  }

  void end(Held& held) {
    labour(held);
    for (auto& permit : lane_.book().in_flight[me_.thread][held.place].permits) permit.store(0);
    const bool newest = held.mine && lane_.ledger.released(held.key, me_, held.job.fence());
    const bool may_die = (lane_.ledger.find(held.key)->marks.load() & kMayDie) != 0;
    const std::uint64_t how = may_die ? 80 + dice_.below(20) : dice_.below(100);
    if (how < 93 || !newest)
      ack(held, newest);
    else if (how < 97)
      nack(held);
    else
      requeue(held);
    lane_.book().in_flight[me_.thread][held.place].key_plus_one.store(0);
    lane_.step();
  }

  void labour(Held& held) {
    worker_.beat();
    (void)worker_.directive();  // told to be quiet it finds nothing for a moment
    const std::uint64_t kind = dice_.below(1000);
    if (kind < 10) {
      (void)worker_.say(WorkerDirective::kQuiet);
      (void)worker_.say(WorkerDirective::kRunning);
      find_nothing_while_quiet();
    }
    if (kind < 940) return;
    if (kind < 988) {
      for (const std::uint64_t until = monotonic_ns() + dice_.between(10, 100) * 1000;
           monotonic_ns() < until;) {}
      return;
    }
    if (kind < 998) return nap_us(dice_.between(500, 3000));
    for (std::uint64_t beats = dice_.between(1, 6), beat = 1; beat <= beats && held.mine; ++beat) {
      nap_us(dice_.between(5, 40) * 1000);
      const auto lease_end = worker_.heartbeat(held.job);
      if (!lease_end.ok())
        return lost_or_unexpected("heartbeat", lease_end.error(), held, held.mine);
      held.lease_end_ms = lease_end.value();
      lane_.ledger.lease_extended(held.key, held.lease_end_ms);
      const double fraction = static_cast<double>(beat) / static_cast<double>(beats);
      const Status reported =
          dice_.between(0, 1) == 0
              ? worker_.progress(held.job, fraction)
              : worker_.progress(held.job, fraction, std::string(dice_.between(0, 900), 'p'));
      if (!reported.ok() && reported.code() != Code::kSegmentFull)
        return lost_or_unexpected("progress", reported.error(), held, held.mine);
      const Status kept =
          dice_.chance(0.5) ? worker_.checkpoint(held.job, std::to_string(beat)) : Status();
      if (!kept.ok() && kept.code() != Code::kSegmentFull)
        return lost_or_unexpected("checkpoint", kept.error(), held, held.mine);
    }
  }

  /// One at a time, or a batch of one, which answers otherwise.
  Status ack_in_batch(Job& job) {
    if (dice_.chance(0.5)) return worker_.ack(job);
    const auto done = worker_.ack_batch(std::span(&job, 1));
    if (!done.ok()) return done.error();
    if (done->acked == 1) return {};
    return Error{Code::kLost, "it was passed over"};
  }

  void ack(Held& held, bool newest) {
    lane_.ledger.ack_begins(held.key);
    const bool talkative = dice_.chance(0.1);
    Status status = talkative ? worker_.ack(held.job, kBigResult) : ack_in_batch(held.job);
    if (status.code() == Code::kSegmentFull) status = worker_.ack(held.job);
    if (status.ok()) {
      lane_.ledger.ack_returned(held.key, me_, newest);
      lane_.book().completed.fetch_add(1);
    } else {
      lane_.ledger.ack_failed(held.key);
      lost_or_unexpected("ack", status.error(), held, newest);
    }
  }

  void nack(Held& held) {
    Failure failure;
    failure.code = "storm";
    failure.message = "the storm wanted it so";
    const JobRecord& job = *lane_.ledger.find(held.key);
    const bool may_die = (job.marks.load() & kMayDie) != 0;
    failure.retryable = !may_die || dice_.chance(0.3);
    const std::uint32_t requeues = job.requeues.load();
    const auto outcome = worker_.nack(held.job, failure);
    if (!outcome.ok()) return lost_or_unexpected("nack", outcome.error(), held, true);
    if (outcome->state != State::kDiscarded) {
      lane_.book().retried.fetch_add(1);
      return;
    }
    if (may_die) return dead(held, requeues);
    if ((job.marks.load() & (kMayDiscard | kMayExpire)) == 0)
      lane_.accuse(Offence::kUnexpectedAnswer, held.key,
                   fmt::format("nack discarded attempt {}", held.job.attempt()));
    lane_.ledger.mark(held.key, kDiscardReturned);
    lane_.book().discarded.fetch_add(1);
  }

  /// A dead letter stays until a process sends it out again or drops it, which the ledger learns
  /// before.
  void dead(const Held& held, std::uint32_t requeues_before) {
    lane_.book().dead.fetch_add(1);
    const JobRecord& job = *lane_.ledger.find(held.key);
    if (plan_.tight || (job.marks.load() & kMayExpire) != 0) return;
    const auto info = Observer::attach(worker_.segment()).value().get(held.job.id());
    const bool tended =
        (job.marks.load() & kBuryAttempted) != 0 || job.requeues.load() != requeues_before;
    if ((!info.ok() || info->state != State::kDiscarded || !info->dead_letter) && !tended)
      lane_.accuse(Offence::kEndNotKept, held.key,
                   fmt::format("{} is not among the dead letters", held.job.id()));
  }

  void requeue(Held& held) {
    lane_.ledger.requeue_begins(held.key);
    const Status status = worker_.requeue(held.job);
    if (!status.ok()) return lost_or_unexpected("requeue", status.error(), held, true);
    lane_.book().requeued.fetch_add(1);
  }

  void lost_or_unexpected(std::string_view what, const Error& error, const Held& held,
                          bool newest) {
    if (error.code != Code::kLost) return unexpected(what, error, held.key);
    lane_.book().lost.fetch_add(1);
    lane_.ledger.told_lost(held.key, me_, held.lease_end_ms, newest);
  }

  void unexpected(std::string_view what, const Error& error, PayloadKey key) {
    lane_.accuse(Offence::kUnexpectedAnswer, key,
                 fmt::format("{}: {} ({})", what, error.message, code_name(error.code)));
  }

  /// Producers killed before their activate(), or their resume, leave pending jobs and paused
  /// queues behind, and no process tends the dead letters. When no producer is left, this does.
  void help_the_drain() {
    if (!plan_.everything || lane_.ledger.phase() == Phase::kRun || lane_.member != 0 ||
        me_.thread != 0)
      return;
    const auto observer = Observer::attach(worker_.segment());
    auto admin = Admin::attach(worker_.segment());
    if (!observer.ok() || !admin.ok()) return;
    for (const std::string& queue : queues_of(plan_)) {
      const Status resumed =
          admin->set_queue(queue, {.max_depth = {}, .max_size_bytes = {}, .paused = false});
      if (!resumed.ok()) unexpected("set_queue", resumed.error(), {});
    }
    tend_the_dead(lane_, dice_, *admin, 0);
    JobFilter filter;
    filter.state = State::kPending;
    for (const JobInfo& job : observer->list(filter)) {
      const Status freed = admin->producer().activate(job.id);
      if (!freed.ok() && freed.code() != Code::kWrongState && freed.code() != Code::kNotFound)
        unexpected("activate", freed.error(), key_of(job).value_or(PayloadKey{}));
    }
  }

  Lane& lane_;
  const OjsPlan& plan_;
  const bool pooled_, passing_;  ///< in the pool of the storm; in the other one, while there is one
  Holder me_;
  Dice dice_;
  Worker worker_;
  std::uint64_t permits_ = 0;  // noted so far
};

}  // namespace

void work_on_jobs(Lane& lane, const OjsPlan& plan) {
  const auto segment = attach_patiently<Segment>(lane, [&] { return Segment::attach(plan.name); });
  if (!segment) return;
  WorkerOptions options;
  options.queues = queues_of(plan);
  // Each its own order, so that no queue is always the last.
  const auto first =
      options.queues.begin() + static_cast<std::ptrdiff_t>(lane.seed % options.queues.size());
  std::rotate(options.queues.begin(), first, options.queues.end());
  const bool pooled = plan.policies && lane.member % 2 == 1;
  if (pooled) options.pool = kStormPool;
  if (plan.policies) options.id = fmt::format("storm-{}", lane.member);
  const bool passing = plan.policies && lane.member % 4 == 2;
  const auto attach = [&] {
    if (!passing) return Worker::attach(*segment, options);
    WorkerOptions of_pool = options;
    of_pool.pool = kPassingPool;
    auto worker = Worker::attach(*segment, of_pool);
    return worker.code() == Code::kNotFound ? Worker::attach(*segment, options) : std::move(worker);
  };
  const auto run = [&](std::uint32_t thread) {
    Dice dice(lane.seed + thread);
    for (bool again = true; again;) {
      auto worker = attach_patiently<Worker>(lane, attach);
      again = worker &&
              WorkerLane(lane, plan, pooled, passing, thread, Dice(dice.next()), std::move(*worker))
                  .run();
    }
  };
  // Every other worker has two threads, for a death takes all of them at once and a lease does not.
  if (lane.member % 2 == 0) return run(0);
  std::thread second(run, 1);
  run(0);
  second.join();
}

}  // namespace ojs_shm::test
