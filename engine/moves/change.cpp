// SPDX-License-Identifier: Apache-2.0
#include "engine/limits/limits.hpp"
#include "engine/moves/changer.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/queue_flags.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Takes the job with that id for an event. 1. it can happen: take it; 2. it cannot: tell what the
/// job is; 3. a lane has it in its hands, which takes some hundred nanoseconds: look again; 4. it
/// changed under our cas: look again.
Outcome Changer::seize(Event event, JobId id, std::uint32_t& slot, Control& held, JobState& found) {
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

Outcome Changer::cancel(JobId id, JobState& found) {
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome = seize(Event::kCancel, id, slot, held, found);
  if (outcome == Outcome::kOk) end_cancelled(slot, held, slot_state(found));
  return outcome;
}

void Changer::end_cancelled(std::uint32_t slot, Control held, unsigned before) {
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  // A death may have left the marks of an end that was undone.
  job.policy.set(job.flags().with_previous(before).word & ~Policy::kEndMarks);
  job.finished_at.set(now);
  constexpr Move kWaiting = *move_of(Event::kCancel, kSlotAvailable),
                 kAtWork = *move_of(Event::kCancel, kSlotActive);
  land(before == kSlotActive ? kAtWork : kWaiting, slot, job, held, now);
}

/// A move that fails because the job was moved meanwhile counts as done when a helper may have done
/// it, or when it fits between two moves of other lanes. A move to another rank may have its place
/// in line from before ours was called: ours comes after it.
Outcome Changer::reprioritize(JobId id, std::uint8_t rank, std::uint8_t& previous, JobState& found,
                              bool raises) {
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
    if (previous == rank || (raises && previous < rank)) return Outcome::kOk;
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
    // A move that others overtook may count as one before theirs; a raise must outlast them.
    if (!moved && (raises || !available)) continue;
    if (!moved) {  // if it was not moved, it was taken: our hint is dead
      const Control now(word);
      const unsigned moves = now.moves_since(before);
      if (moves == 0 || (moves == 1 && rank_of_ring(now.ring()) != rank && job.id() == id))
        continue;
    }
    mine.reprioritized.set_ordered(mine.reprioritized.get() + 1, Point::kCounterMoved);
    if (tellings_.on()) [[unlikely]]
      tellings_.moved(id, q, before, after);
    if (available) follow_rerank(slot, job, queue, index, after);
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

/// The best of a lot may be another now, and so may the best of a tenant. Both may find that the
/// slot has gone on.
[[gnu::noinline]] void Changer::follow_rerank(std::uint32_t slot, JobRecord& job,
                                              QueueRecord& queue, std::uint32_t ring,
                                              Control available) {
  const std::uint64_t flags = queue.flags.load();
  if (store_.parked(job))
    let_begin(limits_of(store_, slot, job, false), store_.number_of(queue));
  else if ((flags & kAcross) != 0)  // a second hint, where its tenant's turn finds it
    (void)stand_in_line(flags, store_.rings_of(job), ring, slot, available);
  bell_.wake_one(queue);
}

Outcome Changer::activate(JobId id, Activation what, JobState& found) {
  const Event event = what == Activation::kPending ? Event::kActivate : Event::kDue;
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome = seize(event, id, slot, held, found);
  if (outcome == Outcome::kOk)
    land(event, slot_state(found), slot, store_.job(slot), held, store_.now_ms());
  return outcome;
}

Outcome Changer::discard(JobId id) {
  std::uint32_t slot = kNoIndex;
  Control held;
  JobState before{};
  const Outcome outcome = seize(Event::kQueueEnd, id, slot, held, before);
  if (outcome != Outcome::kOk) return outcome;
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  append_error(slot, job,
               own_error(now, job.attempt.get(), false, "queue_deleted", "the queue was deleted"));
  job.finished_at.set(now);
  land(Event::kQueueEnd, slot_state(before), slot, job, held, now);
  return Outcome::kOk;
}

Outcome Changer::seize_lost(Event event, Lost which, JobId id, std::uint32_t& slot, Control& held,
                            JobState& found) {
  slot = find_job(store_, id);
  // Its end is not yet known to its workflow.
  if (slot != kNoIndex && is_unmarked(store_, store_.job(slot))) return Outcome::kBusy;
  const Outcome outcome = seize(event, id, slot, held, found);
  if (outcome != Outcome::kOk || which == Lost::kAny || store_.job(slot).flags().has(Policy::kDead))
    return outcome;
  put_back(slot, store_.job(slot), held, slot_state(found));
  return Outcome::kWrongState;
}

Outcome Changer::drop_dead(JobId id, JobState& found) {
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome =
      seize_lost(Event::kDeadLetterDrop, Lost::kDeadLetter, id, slot, held, found);
  if (outcome == Outcome::kOk) drop_held(slot, held, EventKind::kDeadLetterDeleted);
  return outcome;
}

/// Ends what is kept of a job that is over, whatever way it went. Not while its workflow runs,
/// which asks for results.
Outcome Changer::drop(JobId id, JobState& found) {
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

bool Changer::prune(std::uint32_t slot, Control found) {
  Control held;
  if (!hold(Event::kDeadLetterDrop, slot, found, held)) return false;
  store_.queue(store_.job(slot).queue.get()).pruned.fetch_add(1, Point::kCounterMoved);
  drop_held(slot, held);
  return true;
}

}  // namespace ojs_shm::engine
