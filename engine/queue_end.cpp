// SPDX-License-Identifier: Apache-2.0
#include "engine/queue_end.hpp"

#include <algorithm>

namespace ojs_shm::engine {

using shm::Point;

namespace {
constexpr unsigned state_bit(unsigned state) { return 1U << state; }
/// What can be discarded, and what has not ended: a job that a lane holds is as it was before.
constexpr unsigned kToDiscard = state_bit(kSlotScheduled) | state_bit(kSlotAvailable) |
                                state_bit(kSlotPending) | state_bit(kSlotRetryable) |
                                state_bit(kSlotActive);
constexpr unsigned kUnfinished = kToDiscard | state_bit(kSlotClaimed) | state_bit(kSlotSettling) |
                                 state_bit(kSlotMoving) | state_bit(kSlotWaiting);
constexpr unsigned kRoundsOfDiscards = 16;
}  // namespace

std::uint64_t QueueEnd::count_unfinished(std::uint32_t queue) const {
  std::uint64_t jobs = 0;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    if ((kUnfinished & state_bit(Control(job.control.load()).state())) != 0 &&
        job.queue.get() == queue)
      ++jobs;
  }
  return jobs;
}

/// 1. what has come so far; 2. of that nothing is on its way into a slot, 3. nor in one. What comes
/// after 1 changes the sum.
Outcome QueueEnd::begin(std::uint32_t queue, std::uint64_t& jobs) {
  mark_ = Store::deletion_mark(store_.charged_in(queue));                // 1
  const std::uint64_t depth = charged_jobs(store_.depth_charge(queue));  // 2
  jobs = std::max(count_unfinished(queue), depth);                       // 3
  return jobs == 0 ? Outcome::kOk : Outcome::kWrongState;
}

/// Killed in between, it has discarded some and the queue is there.
Outcome QueueEnd::empty(std::uint32_t queue, std::uint64_t& discarded, std::uint64_t& left) {
  Outcome outcome = begin(queue, left);
  for (unsigned round = 0; round < kRoundsOfDiscards && outcome != Outcome::kOk; ++round) {
    std::uint64_t done = 0;
    for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
      const JobRecord& job = store_.job(slot);
      const unsigned state = Control(job.control.load()).state();
      if ((kToDiscard & state_bit(state)) != 0 && job.queue.get() == queue &&
          discard(slot, job.id()) == Outcome::kOk)
        ++done;
    }
    discarded += done;
    outcome = begin(queue, left);
    if (done == 0 && outcome != Outcome::kOk)
      return outcome;  // what is left waits for other queues
  }
  return outcome == Outcome::kOk ? outcome : Outcome::kBusy;
}

Outcome QueueEnd::discard(std::uint32_t slot, JobId id) {
  Control held, before;
  const Outcome outcome = actor_.seize_waiting(slot, id, kToDiscard, held, before);
  if (outcome != Outcome::kOk) return outcome;
  JobRecord& job = store_.job(slot);
  const std::uint32_t q = job.queue.get();
  const std::uint64_t now = store_.now_ms();
  actor_.append_error(slot, job,
                      {now,
                       job.attempt.get(),
                       false,
                       "queue_deleted",
                       "queue_deleted",
                       "the queue was deleted",
                       {}});
  if (before.state() != kSlotActive) {
    QueueTally& mine = actor_.tally(q);
    actor_.uncharge_tenant(slot, job);
    mine.out.set_ordered(mine.out.get() + charge(1, job.body_length()), Point::kTallyOut);
  }
  job.finished_at.set(now);
  store_.queue(q).emptied.fetch_add(1, Point::kCounterMoved);
  actor_.finish(slot, job, held.to(kSlotDiscarded), true);
  if (store_.queue(q).attention.load() != 0) actor_.room_made(store_.queue(q), q);
  return Outcome::kOk;
}

void QueueEnd::finish(std::uint32_t queue, std::uint64_t discarded) {
  store_.queue(queue).deleted.store(mark_, Point::kSetChanged);
  if (actor_.tellings().on())
    actor_.tellings().about_queue(EventKind::kQueueDeleted, queue, discarded);
}

}  // namespace ojs_shm::engine
