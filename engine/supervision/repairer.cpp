// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/repairer.hpp"

#include <algorithm>

#include "engine/crons/crons.hpp"
#include "engine/limits/limit_setter.hpp"
#include "engine/pools/pools.hpp"
#include "engine/supervision/maintenance.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/probes.hpp"
#include "engine/tables/ring_look.hpp"
#include "engine/workers/registry.hpp"
#include "engine/workflows/workflows.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Puts the lane's tallies back to what they were before its unfinished operation.
void Repairer::undo_tallies(Op op, std::uint32_t q) {
  const Undo* undo = undo_of(op);
  if (undo == nullptr) return;
  for (unsigned place = 0; place < 4; ++place)
    if (const auto word = undo->tally[place]; word != nullptr)
      (tally(q).*word).set_ordered(self_.intent_data[place].get(), Point::kTallyIn);
  QueueRecord& queue = store_.queue(q);
  // `reserved` may be ahead of what the lanes say
  queue.refill.fetch_add(1, Point::kCreditSettled);
  // and a cached sum may have counted what is undone
  queue.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
}

/// Ends the operation on a slot that the lane's intent names and the lane holds, still under that
/// intent. Returns 1 when the slot is settled, 0 when it is to be given back with whatever else the
/// lane holds.
std::uint32_t Repairer::end_operation(std::uint32_t slot, Op op, std::uint64_t target) {
  JobRecord& job = store_.job(slot);
  const Control found(job.control.load());
  const bool known = holds_job(static_cast<unsigned>(target));
  switch (found.state()) {
    case kSlotFilling: slots_.free(slot, found); return 1;
    case kSlotClaimed:  // its fetch never returned: as if it had not happened
      if (const std::uint64_t attempt = attempt_before(); op == Op::kFetch && attempt != 0)
        job.attempt.set(static_cast<std::uint16_t>(attempt - 1));
      put_back(slot, job, found, kSlotAvailable);
      return 1;
    case kSlotMoving: {
      if (op == Op::kRelease) {  // it waits again, and is let run with the rest of its workflow
        job.control.store(found.to(kSlotWaiting, found.ring(), 0).word, Point::kSlotMoved);
        return 1;
      }
      if (op == Op::kEnqueue) {
        publish_unborn(slot);
        return 1;
      }
      if (job.unborn() || unborn(store_, job)) return 0;
      slots_.texts().drop_loose(slot, job);
      const std::uint64_t rival = job.signals.load() & kRivalBits;
      if ((rival & kReplaced) != 0) {
        end_rival(slot);
        return 1;
      }
      if (rival != 0) job.signals.fetch_and(~kRivalBits, Point::kRivalMarked);
      // A revival goes on: the job is no longer what it was.
      if (rival != 0 || (target != 0 && target != kSlotCancelled))
        job.policy.set(job.flags().with_previous(0).word);
      if (op == Op::kReturn && (target == kSlotDiscarded || target == kSlotCancelled)) {
        revive(slot, job, found);
        return 1;
      }
      put_back(slot, job, found, known ? static_cast<unsigned>(target) : kSlotAvailable);
      return 1;
    }
    case kSlotSettling:
      if (op != Op::kSettle || target != kSlotActive) return 0;
      slots_.texts().drop_loose(slot, job);  // a cancel: the holder has lost the job already
      end_cancelled(slot, found, kSlotActive);
      return 1;
    default: return 0;
  }
}

/// Rolls a committed batch forward. The last job published before the death may lack its hints.
/// What is being filled without a ring is no part of the batch: room that was being made for a
/// hint.
std::uint32_t Repairer::finish_batch(const Held& held) {
  Held rest;  // with their places in the batch
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    const Control control(job.control.load());
    if (control.state() == kSlotFilling && control.owner() == owner_ && control.ring() != 0)
      rest.emplace_back(job.signals.load() >> kPlaceShift, slot);
  }
  std::sort(rest.begin(), rest.end());
  std::vector<std::uint32_t> slots;
  for (const auto& [place, slot] : rest) slots.push_back(slot);
  // The hint of the one before them first, so that the order holds.
  mend_hints();
  publish_batch(slots);
  for (const auto& [time, slot] : held)
    if (is_our_rival(slot)) mark_replaced(slot);
  return static_cast<std::uint32_t>(slots.size());
}

/// The charge of a batch's share in that queue is undone as a whole: no slot has one of its own.
void Repairer::fill_again(const Held& held, std::uint32_t q) {
  for (const auto& [time, slot] : held) {
    JobRecord& job = store_.job(slot);
    const Control found(job.control.load());
    if (found.state() == kSlotMoving && found.owner() == owner_ && job.unborn() &&
        job.queue.get() == q)
      job.control.store(found.to(kSlotFilling, found.ring(), owner_).word, Point::kSlotFilling);
  }
}

/// Rolls a committed batch over several queues forward: unborn jobs are published in their order,
/// and what else the lane holds goes for them.
std::uint32_t Repairer::finish_spread(const Held& held) {
  std::uint32_t finished = 0;
  for (const auto& [time, slot] : held)
    if (is_our_rival(slot)) mark_replaced(slot);
  for (const auto& [time, slot] : held) {
    const JobRecord& job = store_.job(slot);
    const Control found(job.control.load());
    if (found.state() != kSlotMoving || found.owner() != owner_ || !job.unborn()) continue;
    publish_unborn(slot);
    ++finished;
  }
  finished += drop_rest();
  return finished;
}

/// Rolls committed fetches forward: the jobs are at work, and then their holder's death counts. The
/// attempt of the one at hand may have been counted already.
std::uint32_t Repairer::finish_fetches(const Held& held) {
  std::uint32_t finished = 0;
  for (const auto& [time, slot] : held) {
    JobRecord& job = store_.job(slot);
    const Control control(job.control.load());
    if (control.state() != kSlotClaimed || control.owner() != owner_) continue;
    const std::uint16_t before = at_hand().is(slot) ? at_hand().attempt() : job.attempt.get();
    intend_at_hand(slot, before);
    job.attempt.set(static_cast<std::uint16_t>(before + 1));
    job.control.store(control.to(kSlotActive, owner_).word, Point::kSlotActive);
    ++finished;
  }
  return finished;
}

/// Rolls committed acks forward. The one at hand may have ended and be listed nowhere yet.
std::uint32_t Repairer::finish_acks(const Held& held) {
  std::uint32_t finished = 0;
  if (at_hand().word != 0) slots_.relist(at_hand().slot());
  for (const auto& [time, slot] : held) {
    JobRecord& job = store_.job(slot);
    const Control control(job.control.load());
    if (control.state() != kSlotSettling || control.owner() != owner_) continue;
    intend_at_hand(slot);
    job.control.store(control.to(kSlotCompleted).word, Point::kSlotSettled);
    slots_.relist(slot);
    if ((job.signals.load() & kWaited) != 0) bell_.ring_completion(slot);
    ++finished;
  }
  return finished;
}

/// Ends the lane's hold on a slot that no intent names. Returns 1 when there was one.
std::uint32_t Repairer::let_go(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const Control found(job.control.load());
  if (found.owner() != owner_) return 0;
  if (found.state() == kSlotFilling) {
    if (workflows().ended_before(job))
      workflows().publish_ended(slot);
    else if (workflows().waits_again(job))
      job.control.store(found.to(kSlotWaiting, found.ring(), 0).word, Point::kSlotMoved);
    else
      slots_.free(slot, found);
    return 1;
  }
  if (found.state() == kSlotMoving && (job.unborn() || unborn(store_, job))) {
    uncharge_unborn(slot);
    slots_.free(slot, Control(job.control.load()));
    return 1;
  }
  if (found.state() == kSlotMoving && (job.signals.load() & kMember) != 0 &&
      job.available_at.get() == 0) {
    publish_unborn(slot);
    return 1;
  }
  if (is_our_rival(slot) || find_named_rival(slot)) {
    end_rival(slot);
    return 1;
  }
  if (found.state() == kSlotActive && (job.pool_word.get() & kForClient) != 0) {
    set_back(slot, found.word, Setback::kDrain, nullptr);  // its client never got it
    return 1;
  }
  if (found.state() == kSlotSettling) slots_.texts().drop_loose(slot, job);
  if (found.state() == kSlotSettling || found.state() == kSlotActive) {
    const ErrorEntry error = own_error(store_.now_ms(), job.attempt.get(), true, "holder_died",
                                       "the process that held the job died");
    set_back(slot, found.word, Setback::kHolderDeath, &error);
    return 1;
  }
  if (!is_exclusive(found.state())) return 0;
  // Claimed or moving, and in no intent: to be dropped, had the drop been committed. Or another
  // process's stray write did that.
  hold_on(Op::kMove, slot, kSlotAvailable);
  put_back(slot, job, found, kSlotAvailable);
  return 1;
}

std::uint32_t Repairer::repair(Store& store, std::span<const std::uint32_t> dead_lanes) {
  if (dead_lanes.empty()) return 0;
  std::vector<bool> dead(shm::Control::OwnerBits::kMax + 1, false);
  for (const std::uint32_t lane : dead_lanes) dead[lane + 1] = true;
  std::vector<Held> held(store.lanes() + 1);
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot)
    if (const std::uint32_t owner = Control(store.job(slot).control.load()).owner(); dead[owner])
      held[owner].emplace_back(store.job(slot).available_at.get(), slot);
  std::uint32_t mended = 0;
  // The lane that gave accounts to tenants is first: jobs of the rest that come back may need one.
  std::vector<std::uint32_t> in_turn(dead_lanes.begin(), dead_lanes.end());
  std::stable_partition(in_turn.begin(), in_turn.end(), [&store](std::uint32_t lane) {
    return store.header().account_seat.load() == lane + 1;
  });
  for (const std::uint32_t lane : in_turn) {
    Repairer repairer(store, lane);
    std::sort(held[lane + 1].begin(), held[lane + 1].end());
    mended += repairer.repair(held[lane + 1]);
    OJS_SHM_PROBE2(repair, lane, mended);
    if (lane == in_turn.back()) repairer.repair_shared();
    repairer.retire();
  }
  return mended;
}

/// Ends the operation that the lane's intent tells of. Returns slots mended.
std::uint32_t Repairer::end_intent(const Held& held) {
  const std::uint64_t intent = self_.intent.get();
  const auto op = static_cast<Op>(OpBits::get(intent));
  if (op == Op::kNone) return 0;
  std::uint32_t mended = 0;
  const auto q = static_cast<std::uint32_t>(OpQueue::get(intent));
  const auto slot = static_cast<std::uint32_t>(OpSlot::get(intent));
  const std::uint64_t target = this->target();
  const bool has_slot = op != Op::kBatch && slot < store_.slots();
  const Control found(has_slot ? store_.job(slot).control.load() : 0);
  const bool holds = found.owner() == owner_ && is_exclusive(found.state());
  const bool committed = self_.counters[kSpread].get() != 0;
  // nothing was left but to store that word, and what comes after
  const bool whole = has_slot && target >= 16;
  // Without a slot in hand only an admission can be half done, or what several slots share.
  const bool admission = op == Op::kAdmit || op == Op::kGiveBack ||
                         (op == Op::kEnqueue && !has_slot) ||
                         ((op == Op::kBatch || is_of_several(op)) && target == 0);
  if (holds ? !whole : admission) {
    if (op == Op::kBatch && !committed) fill_again(held, q);
    undo_tallies(op, q);
    if ((intent & kOfAccounts) != 0) undo_accounts();
    if (holds && (op == Op::kFetch || op == Op::kMove)) keep_charge(slot);
  }
  // A victim whose charge was being given back: it is dropped anew.
  const bool dropping = op == Op::kBatch && target == 2 && slot < store_.slots() &&
                        (intent & kOfAccounts) != 0 &&
                        Control(store_.job(slot).control.load()).owner() == owner_;
  if (dropping || (op == Op::kMark && (intent & kOfAccounts) != 0 && !mark_stands(slot)))
    undo_accounts();
  if (dropping) keep_charge(slot);
  if (holds && whole) {
    store_.job(slot).control.store(target, Point::kSlotSettled);
    ++mended;
  } else if (holds) {
    mended += end_operation(slot, op, target);
  }
  if (whole) workflows().mark_again(slot, Control(target));
  // Also of an enqueue that was about to take its job back.
  if (whole || (op == Op::kEnqueue && has_slot && !holds)) republish(slot);
  if (op == Op::kClose) workflows().close(slot);
  if (op == Op::kReport) end_report(slot, false);
  if (op == Op::kBatch && target != 0) mended += finish_batch(held);
  if (op == Op::kFetchBatch && target != 0) mended += finish_fetches(held);
  if (op == Op::kAckBatch && target != 0) mended += finish_acks(held);
  if (op == Op::kBatch && target == 2) {
    if (slot < store_.slots()) {  // the victim that it was ending
      workflows().mark_again(slot, Control(store_.job(slot).control.load()));
      slots_.relist(slot);
    }
    mended += finish_drop(q);
  }
  if (op == Op::kBatch && target != 0 && store_.cron_table().seat.load() == owner_)
    crons().apply();  // what the batch committed with its job
  intend_nothing();
  return mended;
}

/// Settings that the lane was writing: the old ones stand. Its place among the sleepers. A lane
/// that it was to wake, or that slept in its place, looks again.
void Repairer::leave_queues() {
  for (std::uint32_t i = 0; i < store_.max_queues() && store_.queue(i).name_hash.load() != 0; ++i) {
    QueueRecord& queue = store_.queue(i);
    settler(queue.settler, lane_).leave_if_ours();
    dropper(queue).leave_if_ours();
    Word& waiters = queue.waiters[lane_ / 64];
    if ((waiters.load() >> (lane_ % 64) & 1) != 0)
      waiters.fetch_and(~(1ULL << (lane_ % 64)), Point::kWaiterCleared);
    bell_.wake_all(queue);
    call_next(queue, Call::kAnyway);
  }
  bell_.ring_completions();
}

std::uint32_t Repairer::repair(const Held& held) {
  wait_with_limits();
  // 1. Its chunks, rings, batches and events: what follows uses the same words for its own.
  tellings_.close_left();
  const auto kept = rings_.repair(ring_sets(store_), root_rings(store_));
  shm::Batches(rings_).repair(store_.header().finished_ring, kept);
  // 2. The operation it was in.
  std::uint32_t mended = end_intent(held);
  leave_account_seat();
  if (store_.cron_table().seat.load() == owner_) crons().end_change();
  if (self_.counters[kSpread].get() != 0) mended += finish_spread(held);
  // 3. Everything else that names it, the longest waiting first. Its places in the lines
  //    of producers that wait for room.
  drop_tickets();
  for (const auto& [time, slot] : held) mended += let_go(slot);
  self_.counters[kRivalNamed].set(0, Point::kIntentSet);
  self_.counters[kSpread].set(0, Point::kSpreadCommitted);
  // 4. What it was setting, and what waits for it.
  leave_queues();
  Registry{*this}.release_dead();
  Maintenance(*this).end_change();
  LimitSetter(*this).end_change();
  Pools(*this).end_change();
  return mended;
}

}  // namespace ojs_shm::engine
