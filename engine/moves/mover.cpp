// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/mover.hpp"

#include <algorithm>

#include "engine/unique/unique.hpp"

namespace ojs_shm::engine {

using shm::Point;

Mover::Mover(Store& store, std::uint32_t lane)
    : Places(store, lane),
      tallies_(&store.tally(0, lane)),
      recorder_(store, lane),
      tellings_(store, lane) {}

// ---- holding ------------------------------------------------------------------------------------

[[gnu::noinline]] void Mover::hold_on(Op op, std::uint32_t slot, unsigned before) {
  const std::uint32_t q = store_.job(slot).queue.get();
  intend(op, q, slot, tally(q));
  intend_back_to(before);
}

[[gnu::noinline]] bool Mover::hold(Event event, std::uint32_t slot, Control before, Control& held) {
  const Move* move = move_of(event, before.state());
  if (move == nullptr) return false;
  JobRecord& job = store_.job(slot);
  hold_on(move->op, slot, before.state());
  held = before.to(move->held, before.ring(), owner_);
  const Point after = move->taken_point();
  if (!job.control.cas_once(before.word, held.word, after)) {
    intend_nothing();
    return false;
  }
  if (before.state() == kSlotAvailable && !store_.parked(job))
    count_backlog(store_.queue(job.queue.get()), ~0ULL);
  return true;
}

[[gnu::noinline]] Control Mover::hold_claimed(std::uint32_t slot, Control claimed) {
  JobRecord& job = store_.job(slot);
  intend_back_to(kSlotAvailable);
  intend_further(Op::kMove, job.queue.get(), slot);
  const Control held = claimed.to(kSlotMoving, owner_);
  job.control.store(held.word, Point::kSlotMoving);
  return held;
}

// ---- landing ------------------------------------------------------------------------------------

/// 1. what is charged and counted, which a death undoes; 2. the permits; 3. the word, which a death
/// stores; 4. the place, which a death finds again; 5. what follows for other jobs.
[[gnu::noinline]] void Mover::land(const Move& move, std::uint32_t slot, JobRecord& job,
                                   Control held, std::uint64_t now, std::uint32_t key) {
  const std::uint32_t q = job.queue.get(), generation = job.generation.get();
  QueueRecord& queue = store_.queue(q);
  const bool ends = move.where == Where::kFinished;
  const bool in_line = move.where == Where::kLine || move.where == Where::kFront;
  const bool had_permits = held.state() == kSlotClaimed || held.state() == kSlotSettling;
  const std::uint64_t signals = job.signals.load();
  const bool is_member = ends && (signals & kMember) != 0;

  if (move.depth == Depth::kOut) charge_leaving(slot, job);  // 1
  if (move.depth == Depth::kIn) charge_return(q, job);
  if (move.counter != nullptr) (queue.*move.counter).fetch_add(1, Point::kCounterMoved);
  if (move.where == Where::kLine) job.available_at.set(now);

  LimitList limits;  // 2; a lane that holds a job back for a limit has given them already
  if (limiting() && move.held != kSlotClaimed) [[unlikely]]
    limits = give_limits(slot, job, had_permits);

  // For a job that becomes available. The ring from which it once came exists; its front ring may
  // be the one too many.
  shm::RingSet& rings = move.to == kSlotAvailable ? store_.rings_of(job) : queue.rings;
  const unsigned rank = rank_of_ring(held.ring());
  unsigned number = held.ring();
  if (in_line) number = move.where == Where::kFront ? front_ring(rank) : normal_ring(rank);
  std::uint32_t ring = kNoIndex;
  if (move.to == kSlotAvailable) ring = rings_.ensure(rings, number);
  if (in_line && ring == kNoIndex) ring = rings_.ensure(rings, number = normal_ring(rank));

  const Control to = held.to(move.to, number, 0);  // 3
  const std::uint64_t timer = move.where == Where::kTimer ? timer_of(job, move.to) : 0;
  const Membership member = is_member ? membership(job) : Membership();
  const std::uint64_t ran = is_member ? now - std::min(now, job.started_at.get()) : 0;
  const Kept kept = ends && (signals & kUnique) != 0 ? kept_for(job, move.to) : Kept();
  const bool recyclable = ends && !job.flags().has(Policy::kDead);
  intend_word(to);
  recorder_.note(slot, generation, held.state(), move.to, now != 0 ? now : store_.now_ms());
  if (now != 0 && tellings_.on()) [[unlikely]]
    tell(move, job, to, now, key);
  const Point after = move.landed_point();
  job.control.store(to.word, after);  // PAIR slot-publish, slot-settle

  if (move.to == kSlotAvailable) {  // 4
    if (!stand_in_line(queue.flags.load(), rings, ring, slot, to)) announce_lost_hint();
  } else if (move.where == Where::kTimer) {
    push_timer(slot, generation, timer);
  } else if (is_member) {
    mark_member(member, move.to != kSlotCompleted, ran);
  } else if (recyclable) {
    list_ended(slot, to, kept);
  }
  intend_nothing();

  if (in_line) {  // 5
    count_backlog(queue, 1);
    bell_.wake_one(queue);
  }
  if (!limits.empty() && (ends || had_permits)) let_begin(limits, q);
  if (is_member) advance_workflow(member);
  if (ends && (signals & kWaited) != 0) bell_.ring_completion(slot);
  if (move.depth == Depth::kOut && queue.attention.load() != 0) room_made(queue, q);
}

[[gnu::noinline]] void Mover::tell(const Move& move, const JobRecord& job, Control to,
                                   std::uint64_t now, std::uint32_t key) {
  if (move.where == Where::kFinished) return tellings_.ended(job, to);
  if (move.failed) tellings_.failed(job, to, now);
  if (move.where == Where::kLot)
    return tellings_.tell(EventKind::kRateLimitExceeded, job, to, describe_rule(store_, key, now));
  if (move.where != Where::kTimer) return tellings_.tell(EventKind::kJobEnqueued, job, to);
  tellings_.tell(move.to == kSlotRetryable ? EventKind::kJobRetrying : EventKind::kJobScheduled,
                 job, to, job.due_at.get());
}

[[gnu::noinline]] void Mover::put_back(std::uint32_t slot, JobRecord& job, Control held,
                                       unsigned before) {
  // Marks of an end that did not come about.
  if (!is_finished(before)) job.policy.set(job.policy.get() & ~Policy::kEndMarks);
  if (before == kSlotAvailable) return land(kPutBack, slot, job, held, 0);
  const Control back = held.to(before);
  intend_word(back);
  job.control.store(back.word, Point::kSlotMoved);
  republish(slot);
  intend_nothing();
}

[[gnu::noinline]] void Mover::drop_held(std::uint32_t slot, Control held, EventKind told) {
  const Control filling = held.to(kSlotFilling, held.ring(), owner_);  // from here a death frees it
  store_.job(slot).control.store(filling.word, Point::kSlotFilling);
  if (told != EventKind::kNone && tellings_.on()) tellings_.tell(told, store_.job(slot), held);
  slots_.free(slot, filling);
  intend_nothing();
}

void Mover::finish(std::uint32_t slot, JobRecord& job, Control held) {
  static constexpr Move kAck = *move_of(Event::kAck, kSlotActive);
  const bool options = (job.signals.load() & (kWaited | kMember | kUnique)) != 0;
  if (options || limiting()) [[unlikely]]
    return land(kAck, slot, job, held, job.finished_at.get());
  const Control settled = held.to(kAck.to);
  intend_word(settled);
  recorder_.note(slot, job.generation.get(), kSlotSettling, kAck.to, job.finished_at.get());
  if (tellings_.on()) [[unlikely]]
    tellings_.completed(job, settled);
  job.control.store(settled.word, Point::kSlotSettled);  // PAIR slot-settle
  slots_.list(slot, settled);
  intend_nothing();
}

/// Puts the slot of a job that has ended where it is used again, at once or when new ones of its
/// key no longer mind it.
void Mover::list_ended(std::uint32_t slot, Control settled, const Kept& kept) {
  if (kept.until == 0) [[likely]]
    slots_.list(slot, settled);
  else if (kept.until != Uniqueness::kForEver)
    push_timer(slot, kept.generation, kept.until);
}

/// A second hint is harmless: it is dead once the first has been used.
[[gnu::noinline]] void Mover::republish(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const Control control(job.control.load());
  QueueRecord& queue = store_.queue(job.queue.get());
  if (control.state() == kSlotAvailable) {
    shm::RingSet& rings = store_.rings_of(job);
    if (!stand_in_line(queue.flags.load(), rings, rings_.ensure(rings, control.ring()), slot,
                       control))
      announce_lost_hint();
    bell_.wake_one(queue);
  }
  slots_.relist(slot);
  std::uint64_t timer = timer_of(job, control.state());
  if (is_finished(control.state()) && is_minded(job, control.state()) &&
      minded_until(job) != Uniqueness::kForEver)
    timer = minded_until(job);
  if (timer != 0) push_timer(slot, job.generation.get(), timer);
}

// ---- charges ------------------------------------------------------------------------------------

/// A job that comes back is never refused, so a bounded queue may stand above its bound by the jobs
/// that were active.
void Mover::charge_return(QueueRecord& queue, std::uint32_t q, std::uint64_t cost) {
  QueueTally& mine = tally(q);
  if ((queue.flags.load() & kBounded) == 0) {
    mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
    return;
  }
  queue.reserved.fetch_add(cost, Point::kCreditReserved);
  mine.in_reserved.set_ordered(mine.in_reserved.get() + cost, Point::kTallyReserved);
}

void Mover::charge_return(std::uint32_t q, JobRecord& job) {
  QueueRecord& queue = store_.queue(q);
  const std::uint64_t cost = charge(1, job.body_length());
  if ((queue.flags.load() & kTenants) != 0 || AccountMark(job.account.load()).marked()) [[unlikely]]
    charge_return_to_tenant(queue, q, job, cost);
  charge_return(queue, q, cost);
}

void Mover::charge_leaving(std::uint32_t slot, JobRecord& job) {
  QueueTally& mine = tally(job.queue.get());
  uncharge_tenant(slot, job);
  mine.out.set_ordered(mine.out.get() + charge(1, job.body_length()), Point::kTallyOut);
}

}  // namespace ojs_shm::engine
