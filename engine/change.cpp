// SPDX-License-Identifier: Apache-2.0
#include "engine/job_look.hpp"
#include "engine/queue_flags.hpp"
#include "engine/unique_keys.hpp"
#include "engine/workflow_look.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Takes the job with that id for an event. 1. it can happen: take it; 2. it cannot: tell what the
/// job is; 3. a lane has it in its hands, which takes some hundred nanoseconds: look again; 4. it
/// changed under our cas: look again.
Outcome Actor::seize(Event event, JobId id, std::uint32_t& slot, Control& held, JobState& found) {
  slot = find_job(store_, id);
  if (slot == kNoIndex) return Outcome::kNotFound;
  JobRecord& job = store_.job(slot);
  for (unsigned look = 0; look < kPatience; ++look) {
    const Control before(job.control.load());
    if (is_exclusive(before.state())) {  // 3
      shm::wait_for_another(look);
      continue;
    }
    if (before.state() == kSlotFree || job.id() != id) return Outcome::kNotFound;
    found = job_state(before.state());
    if (move_of(event, before.state()) == nullptr) return Outcome::kWrongState;  // 2
    if (!hold(event, slot, before, held)) continue;                              // 1, 4
    if (job.id() == id) return Outcome::kOk;
    // recycled in between
    job.control.store(held.to(before.state(), before.owner()).word, Point::kSlotMoved);
    intend_nothing();
    return Outcome::kNotFound;
  }
  return Outcome::kBusy;
}

Outcome Actor::cancel(JobId id, JobState& found) {
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome = seize(Event::kCancel, id, slot, held, found);
  if (outcome == Outcome::kOk) end_cancelled(slot, held, slot_state(found));
  return outcome;
}

/// Of a job that this lane holds under an intent that says what it was before.
void Actor::end_cancelled(std::uint32_t slot, Control held, unsigned before) {
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  job.policy.set(job.flags().with_previous(before).word);
  job.finished_at.set(now);
  constexpr Move kWaiting = *move_of(Event::kCancel, kSlotAvailable),
                 kAtWork = *move_of(Event::kCancel, kSlotActive);
  land(before == kSlotActive ? kAtWork : kWaiting, slot, job, held, now);
}

/// A move that fails because the job was moved meanwhile counts as done when a helper may have done
/// it, or when it fits between two moves of others. One move to another rank may have its place in
/// line from before ours was called: ours comes after it.
Outcome Actor::reprioritize(JobId id, std::uint8_t rank, std::uint8_t& previous, JobState& found) {
  const std::uint32_t slot = find_job(store_, id);
  if (slot == kNoIndex) return Outcome::kNotFound;
  JobRecord& job = store_.job(slot);
  for (unsigned look = 0; look < kPatience; ++look) {
    const Control before(job.control.load());
    if (is_exclusive(before.state())) {
      shm::wait_for_another(look);
      continue;
    }
    if (before.state() == kSlotFree || job.id() != id) return Outcome::kNotFound;
    found = job_state(before.state());
    previous = rank_of_ring(before.ring());
    if (move_of(Event::kReprioritize, before.state()) == nullptr) return Outcome::kWrongState;
    if (previous == rank) return Outcome::kOk;
    const std::uint32_t q = job.queue.get();
    QueueRecord& queue = store_.queue(q);
    QueueTally& mine = tally(q);
    shm::RingSet& rings = store_.rings_of(job);
    const unsigned ring = normal_ring(rank);
    const Control after = before.moved_to(ring);
    const bool available = before.state() == kSlotAvailable;
    std::uint32_t index = kNoIndex;
    const auto push = [&] {
      const shm::Hint hint(slot, after.tag(), shm::Hint::kHintFirst);
      index = rings_.ensure(rings, ring);
      return index != kNoIndex && rings_.push(index, hint, &rings, ring);
    };
    if (available && !push() && !relieved(push))
      return index == kNoIndex ? Outcome::kNoRings : Outcome::kNoChunks;
    std::uint64_t word = before.word;
    const bool moved = job.control.cas(word, after.word, Point::kSlotReranked);
    if (!moved && !available) continue;
    if (!moved) {  // if it was not moved, it was taken: our hint is dead
      const Control now(word);
      const unsigned moves = now.moves_since(before);
      if (moves == 0 || (moves == 1 && rank_of_ring(now.ring()) != rank && job.id() == id))
        continue;
    }
    mine.reprioritized.set_ordered(mine.reprioritized.get() + 1, Point::kCounterMoved);
    if (tellings_.on()) [[unlikely]]
      tellings_.moved(id, q, before, after);
    if (available) bell_.wake_one(queue);
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

Outcome Actor::activate(JobId id, Activation what, JobState& found) {
  const Event event = what == Activation::kPending ? Event::kActivate : Event::kDue;
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome = seize(event, id, slot, held, found);
  if (outcome == Outcome::kOk)
    land(event, slot_state(found), slot, store_.job(slot), held, store_.now_ms());
  return outcome;
}

/// Takes a dead letter into this lane's hands. A job that is only discarded stays as it was.
Outcome Actor::seize_dead(Event event, JobId id, std::uint32_t& slot, Control& held,
                          JobState& found) {
  slot = find_job(store_, id);
  // Its end is not yet known to its workflow.
  if (slot != kNoIndex && is_unmarked(store_, store_.job(slot))) return Outcome::kBusy;
  const Outcome outcome = seize(event, id, slot, held, found);
  if (outcome != Outcome::kOk || store_.job(slot).flags().has(Policy::kDead)) return outcome;
  put_back(slot, store_.job(slot), held, kSlotDiscarded);
  return Outcome::kWrongState;
}

/// A unique one needs its key again, for which it gives way to an enqueue that holds it.
Outcome Actor::retry_dead(JobId id, JobState& found) {
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    std::uint32_t slot = kNoIndex;
    Control held;
    Outcome outcome = seize_dead(Event::kDeadLetterRetry, id, slot, held, found);
    if (outcome != Outcome::kOk) return outcome;
    JobRecord& job = store_.job(slot);
    if (is_unique(job)) outcome = UniqueKeys{*this, store_}.reclaim(slot, job);
    if (outcome == Outcome::kOk) return revive(slot, job, held), outcome;
    put_back(slot, job, held, kSlotDiscarded);
    if (outcome != Outcome::kBusy) return outcome;
    shm::wait_for_another(looks);
  }
  return Outcome::kBusy;
}

/// The second half of retry_dead. Its intent says so before the job changes, and a repair comes
/// here again: what has been cleared could not be brought back.
void Actor::revive(std::uint32_t slot, JobRecord& job, Control held) {
  const std::uint32_t q = job.queue.get();
  keep<Op::kReturn>(tally(q));
  intend_further(Op::kReturn, q, slot);
  const std::uint32_t errors = job.errors_block.get();
  job.errors_block.set(kNoIndex);
  job.errors_length.set(0);
  if (errors != kNoIndex) slots_.free_text(errors, slot, job.generation.get());
  withdraw_report(job);
  job.attempt.set(0);
  job.finished_at.set(0);
  job.policy.set(job.policy.get() & ~Policy::kDead);
  // Its workflow has counted it as failed: from now on it is a job of its own.
  if ((job.signals.load() & kMember) != 0) job.signals.fetch_and(~kMember, Point::kSlotMoved);
  land(Event::kDeadLetterRetry, kSlotDiscarded, slot, job, held, store_.now_ms());
}

Outcome Actor::drop_dead(JobId id, JobState& found) {
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome = seize_dead(Event::kDeadLetterDrop, id, slot, held, found);
  if (outcome == Outcome::kOk) drop_held(slot, held);
  return outcome;
}

/// Ends what is kept of a job that is over, whatever way it went. Not while its workflow runs, which
/// asks for results.
Outcome Actor::drop(JobId id, JobState& found) {
  const std::uint32_t slot = find_job(store_, id);
  if (slot == kNoIndex) return Outcome::kNotFound;
  const JobRecord& job = store_.job(slot);
  for (unsigned look = 0; look < kPatience; ++look) {
    const Control before(job.control.load());
    if (before.state() == kSlotFree || job.id() != id) return Outcome::kNotFound;
    if (is_exclusive(before.state())) {
      shm::wait_for_another(look);
      continue;
    }
    found = job_state(before.state());
    if (!is_finished(before.state())) return Outcome::kWrongState;
    if (kept_for_workflow(store_, job)) return Outcome::kBusy;
    if (job.flags().has(Policy::kDead)) return drop_dead(id, found);
    if (slots_.drop(slot, before)) return Outcome::kOk;
  }
  return Outcome::kBusy;
}

void Actor::set_paused(std::uint32_t q, bool paused) {
  QueueRecord& queue = store_.queue(q);
  const std::uint64_t before = set_flags(queue, kPaused, paused ? kPaused : 0);
  if (tellings_.on() && ((before & kPaused) != 0) != paused) tellings_.paused(q, paused);
  if (!paused) bell_.wake_all(queue);
}

}  // namespace ojs_shm::engine
