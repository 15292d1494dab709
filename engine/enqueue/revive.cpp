// SPDX-License-Identifier: Apache-2.0
#include "engine/enqueue/filler.hpp"
#include "engine/tables/patience.hpp"
#include "shm/parking.hpp"

// A dead letter that comes back.

namespace ojs_shm::engine {

using shm::Point;

/// A unique one needs its key again, for which it gives way to an enqueue that holds it.
Outcome Filler::retry_dead(JobId id, JobState& found) {
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    std::uint32_t slot = kNoIndex;
    Control held;
    Outcome outcome = seize_dead(Event::kDeadLetterRetry, id, slot, held, found);
    if (outcome != Outcome::kOk) return outcome;
    JobRecord& job = store_.job(slot);
    if (is_unique(job)) outcome = reclaim_key(slot, job);
    if (outcome == Outcome::kOk) return revive(slot, job, held), outcome;
    put_back(slot, job, held, kSlotDiscarded);
    if (outcome != Outcome::kBusy) return outcome;
    shm::wait_for_another(looks);
  }
  return Outcome::kBusy;
}

/// The second half of retry_dead. Its intent says so before the job changes, and a repair comes
/// here again: what has been cleared could not be brought back.
void Filler::revive(std::uint32_t slot, JobRecord& job, Control held) {
  const std::uint32_t q = job.queue.get();
  keep<Op::kReturn>(tally(q));
  intend_further(Op::kReturn, q, slot);
  const std::uint32_t errors = job.errors_block.get();
  job.errors_block.set(kNoIndex);
  job.errors_length.set(0);
  if (errors != kNoIndex) slots_.texts().free(errors, slot, job.generation.get());
  withdraw_report(job);
  job.attempt.set(0);
  job.finished_at.set(0);
  job.policy.set(job.policy.get() & ~Policy::kDead);
  // Its workflow has counted it as failed: from now on it is a job of its own.
  if ((job.signals.load() & kMember) != 0) job.signals.fetch_and(~kMember, Point::kSlotMoved);
  land(Event::kDeadLetterRetry, kSlotDiscarded, slot, job, held, store_.now_ms());
}

}  // namespace ojs_shm::engine
