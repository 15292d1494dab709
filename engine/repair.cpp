// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "engine/crons.hpp"
#include "engine/hint_lives.hpp"
#include "engine/job_look.hpp"
#include "engine/limit_setter.hpp"
#include "engine/maintenance.hpp"
#include "engine/pools.hpp"
#include "engine/probes.hpp"
#include "engine/refill.hpp"
#include "engine/registry.hpp"
#include "engine/ring_look.hpp"
#include "engine/unique_keys.hpp"
#include "engine/workflows.hpp"

// After a death. The caller holds the proof (the lock on the dead process's byte), and the Actor of
// a repair has the dead lane itself. So a repair needs nothing that could be used up, and all it
// does is what that lane might have done: a repairer that dies leaves the same lane with one
// unfinished operation at most, and the next one begins again. Two rules keep that true: 1. what
// the lane was in the middle of is ended under the intent that says so, and only then may another
// intent be written over it; 2. tallies are put back to the values that the intent keeps, which may
// be done any number of times.

namespace ojs_shm::engine {

using shm::Point;

/// Puts the lane's tallies back to what they were before its unfinished operation.
void Actor::undo_tallies(Op op, std::uint32_t q) {
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
std::uint32_t Actor::end_operation(std::uint32_t slot, Op op, std::uint64_t target) {
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
        workflows().publish_root(slot);
        return 1;
      }
      if (unborn(store_, job)) return 0;
      slots_.drop_loose_blocks(slot, job);
      const std::uint64_t rival = job.signals.load() & kRivalBits;
      if ((rival & kReplaced) != 0) {
        UniqueKeys{*this, store_}.end(slot);
        return 1;
      }
      if (rival != 0) job.signals.fetch_and(~kRivalBits, Point::kRivalMarked);
      if (rival != 0 || target != 0) job.policy.set(job.flags().with_previous(0).word);
      // A dead letter's retry goes on: it is no longer what it was.
      if (op == Op::kReturn && target == kSlotDiscarded)
        revive(slot, job, found);
      else
        put_back(slot, job, found, known ? static_cast<unsigned>(target) : kSlotAvailable);
      return 1;
    }
    case kSlotSettling:
      if (op != Op::kSettle || target != kSlotActive) return 0;
      slots_.drop_loose_blocks(slot, job);  // a cancel: the holder has lost the job already
      end_cancelled(slot, found, kSlotActive);
      return 1;
    default: return 0;
  }
}

/// Ends the lane's hold on a slot that no intent names. Returns 1 when there was one.
std::uint32_t Actor::let_go(std::uint32_t slot) {
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
  if (found.state() == kSlotMoving && unborn(store_, job)) {
    workflows().uncharge_root(slot);
    slots_.free(slot, Control(job.control.load()));
    return 1;
  }
  if (found.state() == kSlotMoving && (job.signals.load() & kMember) != 0 &&
      job.available_at.get() == 0) {
    workflows().publish_root(slot);
    return 1;
  }
  if (UniqueKeys keys{*this, store_}; keys.ours(slot) || keys.find_named(slot)) {
    keys.end(slot);
    return 1;
  }
  if (found.state() == kSlotActive && (job.pool_word.get() & kForClient) != 0) {
    set_back(slot, found.word, Setback::kDrain, nullptr);  // its client never got it
    return 1;
  }
  if (found.state() == kSlotSettling) slots_.drop_loose_blocks(slot, job);
  if (found.state() == kSlotSettling || found.state() == kSlotActive) {
    const ErrorEntry error = own_error(store_.now_ms(), job.attempt.get(), true, "holder_died",
                                       "the process that held the job died");
    set_back(slot, found.word, Setback::kHolderDeath, &error);
    return 1;
  }
  if (!is_exclusive(found.state())) return 0;
  // Claimed or moving, and in no intent: to be dropped, had the drop been committed. Or a stranger
  // has done that.
  hold_on(Op::kMove, slot, kSlotAvailable);
  put_back(slot, job, found, kSlotAvailable);
  return 1;
}

std::uint32_t Actor::repair(Store& store, std::span<const std::uint32_t> dead_lanes) {
  if (dead_lanes.empty()) return 0;
  std::vector<bool> dead(shm::Control::OwnerBits::kMax + 1, false);
  for (const std::uint32_t lane : dead_lanes) dead[lane + 1] = true;
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> held(store.lanes() + 1);
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot)
    if (const std::uint32_t owner = Control(store.job(slot).control.load()).owner(); dead[owner])
      held[owner].emplace_back(store.job(slot).available_at.get(), slot);
  std::uint32_t mended = 0;
  // The one that gave accounts to tenants is first: jobs of the others that come back may need one.
  std::vector<std::uint32_t> in_turn(dead_lanes.begin(), dead_lanes.end());
  std::stable_partition(in_turn.begin(), in_turn.end(), [&store](std::uint32_t lane) {
    return store.header().account_seat.load() == lane + 1;
  });
  for (const std::uint32_t lane : in_turn) {
    Actor actor(store, lane);
    std::sort(held[lane + 1].begin(), held[lane + 1].end());
    mended += actor.repair(held[lane + 1]);
    OJS_SHM_PROBE2(repair, lane, mended);
    if (lane == in_turn.back()) actor.repair_shared();
    actor.retire();
  }
  return mended;
}

std::uint32_t Actor::repair(const std::vector<std::pair<std::uint64_t, std::uint32_t>>& held) {
  wait_with_limits();
  // 1. Its chunks, rings, batches and events: what follows uses the same words for its own.
  tellings_.close_left();
  rings_.repair(ring_sets(store_), root_rings(store_), store_.header().finished_ring);
  // 2. The operation it was in.
  std::uint32_t mended = 0;
  const std::uint64_t intent = self_.intent.get();
  if (const auto op = static_cast<Op>(OpBits::get(intent)); op != Op::kNone) {
    const auto q = static_cast<std::uint32_t>(OpQueue::get(intent));
    const auto slot = static_cast<std::uint32_t>(OpSlot::get(intent));
    const std::uint64_t target = this->target();
    const bool has_slot = op != Op::kBatch && slot < store_.slots();
    const Control found(has_slot ? store_.job(slot).control.load() : 0);
    const bool holds = found.owner() == owner_ && is_exclusive(found.state());
    // nothing was left but to store that word, and what comes after
    const bool whole = has_slot && target >= 16;
    // Without a slot in hand only an admission can be half done.
    const bool admission = op == Op::kAdmit || op == Op::kGiveBack ||
                           (op == Op::kEnqueue && !has_slot) || (op == Op::kBatch && target == 0);
    if (holds ? !whole : admission) {
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
    if (whole) workflows().mark_again(slot);
    if (whole) republish(slot);
    if (op == Op::kClose) workflows().close(slot);
    if (op == Op::kReport) end_report(slot, false);
    if (op == Op::kBatch && target != 0) mended += finish_batch(held);
    if (op == Op::kBatch && target == 2) {
      if (slot < store_.slots()) {  // the victim that it was ending
        workflows().mark_again(slot);
        slots_.relist(slot);
      }
      mended += finish_drop(q);
    }
    if (op == Op::kBatch && target != 0 && store_.cron_table().seat.load() == owner_)
      crons().apply();  // what the batch committed with its job
    intend_nothing();
  }
  leave_account_seat();
  if (store_.cron_table().seat.load() == owner_) crons().end_change();
  // 3. Everything else that names it, the longest waiting first. Its places among those who wait
  //    for room.
  drop_tickets();
  for (const auto& [time, slot] : held) mended += let_go(slot);
  self_.counters[kRivalNamed].set(0, Point::kIntentSet);
  // 4. Settings that it was writing: the old ones stand. Its place among the sleepers. A lane that
  //    it was to wake, or that slept in its place, looks again.
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
  Registry{*this}.release_dead();
  Maintenance(*this).end_change();
  LimitSetter(*this).end_change();
  Pools(*this).end_change();
  return mended;
}

/// The rest of a death, once for all lanes: blocks without an owner, bounds to be counted again.
void Actor::repair_shared() {
  slots_.sweep_blocks();
  for (std::uint32_t i = 0; i < store_.max_queues() && store_.queue(i).name_hash.load() != 0; ++i) {
    if (Refill(store_.queue(i).refill.load()).pending()) settle_reserved(i);
    if ((store_.queue(i).flags.load() & kCounted) != 0) recount_backlog(store_, i);
    if ((store_.queue(i).flags.load() & kTenants) != 0) gather_accounts(i, 100);
  }
  for (std::uint32_t at = 0; at < store_.accounts(); ++at)
    if (Refill(store_.account(at).refill.load()).pending()) settle_account(at);
  mend_limits();
  workflows().mend();
}

/// Available jobs without a live hint, seen so twice, and timers of the waiting.
std::uint32_t Actor::mend_hints() {
  std::uint32_t mended = 0;
  std::vector<bool> hinted(store_.slots(), false);
  std::vector<std::uint64_t> before(store_.slots());
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    before[slot] = store_.job(slot).control.load();
  for (const shm::RingSet* set : ring_sets(store_))
    for (unsigned n = 0; n < shm::kRingsPerSet; ++n)
      if (const std::uint32_t ring = shm::Rings::find(*set, n); ring != kNoIndex)
        shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
          if (hint_lives(segment_, shm::Hint(value))) hinted[shm::Hint(value).index()] = true;
        });
  each_flow(store_, [&](std::uint32_t flow, std::uint32_t ring) {
    if (!FlowControl(store_.flow(flow).control.load()).in_line()) return;
    shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
      if (hint_lives(segment_, shm::Hint(value))) hinted[shm::Hint(value).index()] = true;
    });
  });
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const Control control(before[slot]);
    if (control.state() != kSlotAvailable || hinted[slot] ||
        store_.job(slot).control.load() != control.word)
      continue;
    republish(slot);
    ++mended;
  }
  return mended;
}

std::uint32_t Actor::mend() {
  std::uint32_t mended = collect_leaks();
  mended += mend_hints();
  crons().mend();
  slots_.sweep();
  repair_shared();
  return mended;
}

}  // namespace ojs_shm::engine
