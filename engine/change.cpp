// SPDX-License-Identifier: Apache-2.0
#include "engine/unique_keys.hpp"
#include "engine/workflow_look.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {
constexpr unsigned bit(unsigned state) { return 1U << state; }
constexpr unsigned kWaiting =
    bit(kSlotScheduled) | bit(kSlotAvailable) | bit(kSlotPending) | bit(kSlotRetryable);
}  // namespace

/// 1. the slot is in one of the allowed states: take it; 2. it is in another one: tell which; 3. a
///    lane has it in
/// its hands, which takes some hundred nanoseconds: look again; 4. it changed under our cas: look
/// again.
Outcome Actor::seize_waiting(std::uint32_t slot, JobId id, unsigned allowed, Control& held,
                             Control& before) {
  JobRecord& job = store_.job(slot);
  for (unsigned look = 0; look < kPatience; ++look) {
    before = Control(job.control.load());
    if (is_exclusive(before.state())) {  // 3
      shm::wait_for_another(look);
      continue;
    }
    if (before.state() == kSlotFree || job.id() != id) return Outcome::kNotFound;
    if ((allowed & bit(before.state())) == 0) return Outcome::kWrongState;  // 2
    const std::uint32_t q = job.queue.get();
    const unsigned state = before.state() == kSlotActive ? kSlotSettling : kSlotMoving;
    if (state == kSlotMoving)
      intend<Op::kMove>(q, slot, tally(q));
    else
      intend<Op::kSettle>(q, slot, tally(q));
    intend_back_to(before.state());
    held = before.to(state, before.ring(), owner_);
    if (job.control.cas_once(before.word, held.word, Point::kSlotMoving)) {  // 1, 4
      if (job.id() == id) {
        if (before.state() == kSlotAvailable) count_backlog(store_.queue(q), ~0ULL);
        return Outcome::kOk;
      }
      // recycled in between
      job.control.store(held.to(before.state(), before.owner()).word, Point::kSlotMoved);
      intend_nothing();
      return Outcome::kNotFound;
    }
    intend_nothing();
  }
  return Outcome::kBusy;
}

Outcome Actor::cancel(JobId id, JobState& found) {
  const std::uint32_t slot = store_.find_job(id);
  if (slot == kNoIndex) return Outcome::kNotFound;
  JobRecord& job = store_.job(slot);
  Control held, before;
  const Outcome outcome = seize_waiting(slot, id, kWaiting | bit(kSlotActive), held, before);
  if (outcome != Outcome::kOk) {
    if (outcome == Outcome::kWrongState) found = job_state(before.state());
    return outcome;
  }
  found = job_state(before.state());
  end_cancelled(slot, job, held, before.state());
  return Outcome::kOk;
}

/// Of a job that this lane holds under an intent that says what it was before.
void Actor::end_cancelled(std::uint32_t slot, JobRecord& job, Control held, unsigned before) {
  const std::uint32_t q = job.queue.get();
  QueueTally& mine = tally(q);
  if (before != kSlotActive) {
    uncharge_tenant(slot, job);
    mine.out.set_ordered(mine.out.get() + charge(1, job.body_length()), Point::kTallyOut);
  }
  job.policy.set(job.flags().with_previous(before).word);
  job.finished_at.set(store_.now_ms());
  store_.queue(q).cancelled.fetch_add(1, Point::kCounterMoved);
  finish(slot, job, held.to(kSlotCancelled), true);
  if (store_.queue(q).attention.load() != 0) room_made(store_.queue(q), q);
}

/// A move that fails because the job was moved meanwhile counts as done when a helper may have done
/// it, or when it fits between two moves of others. One move to another rank may have its place in
/// line from before ours was called: ours comes after it.
Outcome Actor::reprioritize(JobId id, std::uint8_t rank, std::uint8_t& previous, JobState& found) {
  const std::uint32_t slot = store_.find_job(id);
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
    if (before.state() != kSlotAvailable && before.state() != kSlotScheduled)
      return Outcome::kWrongState;
    if (previous == rank) return Outcome::kOk;
    const std::uint32_t q = job.queue.get();
    QueueRecord& queue = store_.queue(q);
    QueueTally& mine = tally(q);
    shm::RingSet& rings = store_.rings_of(job);
    const unsigned ring = normal_ring(rank);
    const Control after = before.moved_to(ring);
    if (before.state() == kSlotScheduled) {
      if (!job.control.cas_once(before.word, after.word, Point::kSlotReranked)) continue;
      mine.reprioritized.set_ordered(mine.reprioritized.get() + 1, Point::kCounterMoved);
      if (tellings_.on()) [[unlikely]]
        tellings_.moved(id, q, before, after);
      return Outcome::kOk;
    }
    const shm::Hint hint(slot, after.tag(), shm::Hint::kHintFirst);
    std::uint32_t index = kNoIndex;
    const auto push = [&] {
      index = rings_.ensure(rings, ring);
      return index != kNoIndex && rings_.push(index, hint, &rings, ring);
    };
    if (!push() && !relieved(push))
      return index == kNoIndex ? Outcome::kNoRings : Outcome::kNoChunks;
    std::uint64_t word = before.word;
    const bool moved = job.control.cas(word, after.word, Point::kSlotReranked);
    if (!moved) {  // if it was not moved, it was taken: our hint is dead
      const Control now(word);
      const unsigned moves = now.moves_since(before);
      if (moves == 0 || (moves == 1 && rank_of_ring(now.ring()) != rank && job.id() == id))
        continue;
    }
    mine.reprioritized.set_ordered(mine.reprioritized.get() + 1, Point::kCounterMoved);
    if (tellings_.on()) [[unlikely]]
      tellings_.moved(id, q, before, after);
    bell_.wake_one(queue);
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

Outcome Actor::activate(JobId id, Activation what, JobState& found) {
  const std::uint32_t slot = store_.find_job(id);
  if (slot == kNoIndex) return Outcome::kNotFound;
  Control held, before;
  const unsigned allowed =
      what == Activation::kPending ? bit(kSlotPending) : bit(kSlotScheduled) | bit(kSlotRetryable);
  const Outcome outcome = seize_waiting(slot, id, allowed, held, before);
  if (outcome != Outcome::kOk) {
    if (outcome == Outcome::kWrongState) found = job_state(before.state());
    return outcome;
  }
  JobRecord& job = store_.job(slot);
  make_available(store_.queue(job.queue.get()), slot, job, held,
                 normal_ring(rank_of_ring(before.ring())), store_.now_ms(), false);
  return Outcome::kOk;
}

/// Takes a dead letter into this lane's hands. A job that is only discarded stays as it was.
Outcome Actor::seize_dead(JobId id, std::uint32_t& slot, Control& held, JobState& found) {
  slot = store_.find_job(id);
  if (slot == kNoIndex) return Outcome::kNotFound;
  JobRecord& job = store_.job(slot);
  Control before;
  // Its end is not yet known to its workflow.
  if (is_unmarked(store_, job)) return Outcome::kBusy;
  const Outcome outcome = seize_waiting(slot, id, bit(kSlotDiscarded), held, before);
  if (outcome == Outcome::kWrongState) found = job_state(before.state());
  if (outcome != Outcome::kOk || job.flags().has(Policy::kDead)) return outcome;
  job.control.store(held.to(kSlotDiscarded).word, Point::kSlotMoved);
  intend_nothing();
  found = JobState::kDiscarded;
  return Outcome::kWrongState;
}

Outcome Actor::retry_dead(JobId id, JobState& found) {
  std::uint32_t slot = kNoIndex;
  Control held;
  Outcome outcome = seize_dead(id, slot, held, found);
  if (outcome != Outcome::kOk || !is_unique(store_.job(slot))) {
    if (outcome == Outcome::kOk) revive(slot, store_.job(slot), held);
    return outcome;
  }
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    outcome = UniqueKeys{*this, store_}.reclaim(slot, store_.job(slot));
    if (outcome == Outcome::kOk) {
      revive(slot, store_.job(slot), held);
      return outcome;
    }
    store_.job(slot).control.store(held.to(kSlotDiscarded).word, Point::kSlotMoved);
    intend_nothing();
    if (outcome != Outcome::kBusy) return outcome;
    shm::wait_for_another(looks);
    outcome = seize_dead(id, slot, held, found);
    if (outcome != Outcome::kOk) return outcome;
  }
  store_.job(slot).control.store(held.to(kSlotDiscarded).word, Point::kSlotMoved);
  intend_nothing();
  return Outcome::kBusy;
}

/// The second half of retry_dead. Its intent says so before the job changes, and a repair comes
/// here again: what has been cleared could not be brought back.
void Actor::revive(std::uint32_t slot, JobRecord& job, Control held) {
  const std::uint32_t q = job.queue.get();
  keep<Op::kReturn>(tally(q));
  intend_further(Op::kReturn, q, slot);
  charge_return(store_.queue(q), q, job, charge(1, job.body_length()));
  const std::uint32_t errors = job.errors_block.get();
  job.errors_block.set(kNoIndex);
  job.errors_length.set(0);
  if (errors != kNoIndex) slots_.free_text(errors, slot, job.generation.get());
  job.attempt.set(0);
  job.finished_at.set(0);
  job.policy.set(job.policy.get() & ~Policy::kDead);
  // Its workflow has counted it as failed: from now on it is a job of its own.
  if ((job.signals.load() & kMember) != 0) job.signals.fetch_and(~kMember, Point::kSlotMoved);
  make_available(store_.queue(q), slot, job, held, normal_ring(rank_of_ring(held.ring())),
                 store_.now_ms(), false);
}

Outcome Actor::drop_dead(JobId id, JobState& found) {
  std::uint32_t slot = kNoIndex;
  Control held;
  const Outcome outcome = seize_dead(id, slot, held, found);
  if (outcome != Outcome::kOk) return outcome;
  const Control filling = held.to(kSlotFilling, held.ring(), owner_);  // from here a death frees it
  store_.job(slot).control.store(filling.word, Point::kSlotFilling);
  slots_.free(slot, filling);
  intend_nothing();
  return Outcome::kOk;
}

void Actor::set_bounds(std::uint32_t q, std::uint64_t max_depth, std::uint64_t max_bytes) {
  QueueRecord& queue = store_.queue(q);
  queue.max_depth.store(max_depth, Point::kSetChanged);
  queue.max_bytes.store(max_bytes, Point::kSetChanged);
  set_flags(queue, kBounded, max_depth != 0 || max_bytes != 0 ? kBounded : 0);
  depth_cache_[q].removals_left = 0;
  if (queue.attention.load() != 0) room_made(queue, q);
  call_all(q);
}

void Actor::set_backpressure(std::uint32_t q, Backpressure policy) {
  QueueRecord& queue = store_.queue(q);
  queue.backpressure.store(policy.word, Point::kSetChanged);
  depth_cache_[q].removals_left = 0;
  if (queue.attention.load() != 0) room_made(queue, q);
  call_all(q);
}

void Actor::set_paused(std::uint32_t q, bool paused) {
  QueueRecord& queue = store_.queue(q);
  const std::uint64_t before = set_flags(queue, kPaused, paused ? kPaused : 0);
  if (tellings_.on() && ((before & kPaused) != 0) != paused) tellings_.paused(q, paused);
  if (!paused) bell_.wake_all(queue);
}

bool Actor::set_type_rank(std::uint64_t hash, std::optional<std::uint8_t> rank) {
  for (std::uint32_t i = 0; i < kTypeDefaults; ++i) {
    TypeDefault& entry = store_.type_default(i);
    std::uint64_t found = entry.hash.load();
    if (found == 0 && !rank) return true;
    if (found == 0) entry.hash.cas(found, hash, Point::kTypeNamed);
    if (found != 0 && found != hash) continue;
    entry.rank.store(rank ? std::uint64_t{*rank} + 1 : 0, Point::kTypeSet);
    return true;
  }
  return false;
}

}  // namespace ojs_shm::engine
