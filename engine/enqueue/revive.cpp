// SPDX-License-Identifier: Apache-2.0
#include "engine/enqueue/filler.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/patience.hpp"
#include "shm/parking.hpp"

// A job that was lost and comes back: a dead letter, another discarded one, a cancelled one.

namespace ojs_shm::engine {

using shm::Point;

/// A unique one needs its key again, for which it gives way to an enqueue that holds it.
Outcome Filler::retry(JobId id, Lost which, JobState& found) {
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    std::uint32_t slot = kNoIndex;
    Control held;
    Outcome outcome = seize_lost(Event::kRevive, which, id, slot, held, found);
    if (outcome != Outcome::kOk) return outcome;
    JobRecord& job = store_.job(slot);
    if (is_unique(job)) outcome = reclaim_key(slot, job);
    if (outcome == Outcome::kOk) return revive(slot, job, held), outcome;
    put_back(slot, job, held, slot_state(found));
    if (outcome != Outcome::kBusy) return outcome;
    shm::wait_for_another(looks);
  }
  return Outcome::kBusy;
}

namespace {

/// What is over already holds no longer.
void forget_past_ends(JobRecord& job, std::uint64_t now) {
  OwnTimes& times = job.own_times();
  if (times.expires_at.get() <= now) times.expires_at.set(0);
  if (enqueue_ttl_end(job) <= now) times.enqueue_ttl_s.set(0);
  if (total_end(job) <= now) times.total_timeout_s.set(0);
  set_end(job, false);
}

}  // namespace

/// The second half of retry(). Its intent says so before the job changes, and a repair comes here
/// again: what has been cleared could not be brought back. One that had expired never does again.
void Filler::revive(std::uint32_t slot, JobRecord& job, Control held) {
  const std::uint32_t q = job.queue.get();
  const std::uint64_t now = store_.now_ms();
  keep<Op::kReturn>(tally(q));
  intend_further(Op::kReturn, q, slot);
  const std::uint32_t errors = job.errors_block.get();
  job.errors_block.set(kNoIndex);
  job.errors_length.set(0);
  if (errors != kNoIndex) slots_.texts().free(errors, slot, job.generation.get());
  withdraw_report(job);
  job.attempt.set(0);
  job.finished_at.set(0);
  if (job.timed()) forget_past_ends(job, now);
  if (job.expires_at.get() <= now) job.expires_at.set(0);
  job.policy.set(job.flags().with_previous(0).word & ~Policy::kEndMarks);
  // Its workflow has counted it as failed: from now on it is a job of its own.
  if ((job.signals.load() & kMember) != 0) job.signals.fetch_and(~kMember, Point::kSlotMoved);
  land(Event::kRevive, kSlotDiscarded, slot, job, held, now);
}

}  // namespace ojs_shm::engine
