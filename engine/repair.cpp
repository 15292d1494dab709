// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "engine/actor.hpp"
#include "shm/parking.hpp"

// After a death. The caller holds the proof (the lock on the dead process's byte), so nobody else repairs the same lane
// and the dead words do not move. Each step is a cas from a word that names the dead lane, or a store to a word that only
// the dead lane wrote; so the repairer itself may die anywhere, and the next one begins again.

namespace ojs_shm::engine {

using shm::Point;

/// Puts the dead lane's tallies back to what they were before its unfinished operation.
void Actor::undo_tallies(std::uint32_t dead, Op op, std::uint32_t q) {
  const shm::Lane& lane = segment_.lane(dead);
  QueueTally& tally = store_.tally(q, dead);
  auto restore = [&lane](LaneWord& word, unsigned i) { word.set_ordered(lane.intent_data[i].get(), Point::kTallyIn); };
  switch (op) {
    case Op::kAdmit:
    case Op::kEnqueue:
    case Op::kBatch:
      restore(tally.in, 0);
      restore(tally.in_reserved, 1);
      restore(tally.enqueued, 2);
      break;
    case Op::kFetch:
      restore(tally.out, 0);
      restore(tally.dispatched, 1);
      break;
    case Op::kSettle: restore(tally.completed, 0); break;
    case Op::kReturn:
      restore(tally.in, 1);
      restore(tally.in_reserved, 2);
      break;
    case Op::kMove: restore(tally.out, 0); break;
    case Op::kNone: return;
  }
  store_.queue(q).refill.store(1, Point::kCreditSettled);  // `reserved` may be ahead of what the lanes say
}

/// Pushes the hints of a waiting job again. A second hint is harmless: it is dead once the first has been used.
void Actor::republish(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const Control control(job.control.load());
  QueueRecord& queue = store_.queue(job.queue.get());
  if (control.state() == kSlotAvailable) {
    if (!push_hint(queue, rings_.ensure(queue.rings, control.ring()), slot, control)) announce_lost_hint();
    wake_one(queue);
  }
  const std::uint64_t expires = job.expires_at.get();
  if (control.state() == kSlotScheduled || control.state() == kSlotRetryable)
    push_timer(slot, job.generation.get(), job.due_at.get());
  else if (holds_job(control.state()) && !is_finished(control.state()) && expires != 0)
    push_timer(slot, job.generation.get(), expires);
}

/// Blocks that were written for the slot and stand in none of its texts. The slot is in a dead lane's hands, so its
/// texts do not move.
void Actor::drop_loose_blocks(std::uint32_t slot, const JobRecord& job) {
  const std::uint64_t word = shm::Blocks::word_of(slot, job.generation.get());
  std::vector<bool> kept(segment_.geometry().blocks, false);
  for (const auto* first : {&job.body_block, &job.result_block, &job.errors_block})
    for (std::uint32_t b = first->get(); b < kept.size() && !kept[b] && segment_.block_word(b).load() == word;
         b = segment_.block_link(b).load())
      kept[b] = true;
  for (std::uint32_t b = 0; b < kept.size(); ++b)
    if (!kept[b] && segment_.block_word(b).load_relaxed() == word)
      blocks_.free_orphan(b, word);  // relaxed: a cas decides
}

/// Gives a slot from a dead lane's hands back to the state that it had, by way of our own.
std::uint32_t Actor::put_back(std::uint32_t slot, JobRecord& job, Control found, unsigned state) {
  const std::uint32_t q = job.queue.get();
  intend(Op::kMove, q, slot, tally(q).out.get());
  self_.intent_data[3].set(state, Point::kIntentSet);
  const Control held = found.to(kSlotMoving, found.ring(), owner_);
  if (!job.control.cas_once(found.word, held.word, Point::kSlotMoving)) {
    intend_nothing();
    return 0;
  }
  if (state == kSlotAvailable) {
    make_available(store_.queue(q), slot, job, held, front_ring(rank_of_ring(found.ring())), 0, true);
    return 1;
  }
  if (state == kSlotDiscarded) job.policy.set(job.policy.get() | Policy::kDead);
  const Control back = held.to(state);
  intend_word(back);
  job.control.store(back.word, Point::kSlotMoved);
  republish(slot);
  intend_nothing();
  return 1;
}

/// Ends the dead lane's hold on one slot. Returns 1 when there was one.
std::uint32_t Actor::mend_slot(std::uint32_t slot, std::uint32_t dead, Op op, std::uint64_t target,
                               std::uint64_t attempt) {
  JobRecord& job = store_.job(slot);
  const Control found(job.control.load());
  if (found.owner() != dead + 1) return 0;
  if (is_exclusive(found.state()) && target >= 16) {  // nothing was left but this store
    job.control.cas_once(found.word, target, Point::kSlotSettled);
    return 1;
  }
  switch (found.state()) {
    case kSlotFilling: {
      const Control mine = found.to(kSlotFilling, found.ring(), owner_);
      if (job.control.cas_once(found.word, mine.word, Point::kSlotFilling)) free_slot(slot, mine);
      return 1;
    }
    case kSlotClaimed:  // its fetch never returned: as if it had not happened
      if (attempt != 0) job.attempt.set(static_cast<std::uint16_t>(attempt - 1));
      return put_back(slot, job, found, kSlotAvailable);
    case kSlotMoving: {
      const bool known = target != 0 && holds_job(static_cast<unsigned>(target));
      drop_loose_blocks(slot, job);
      return put_back(slot, job, found, known ? static_cast<unsigned>(target) : static_cast<unsigned>(kSlotAvailable));
    }
    case kSlotSettling:
      drop_loose_blocks(slot, job);
      if (op == Op::kSettle && target == kSlotActive) {  // a cancel: the holder has lost the job already
        const Control mine = found.to(kSlotSettling, found.ring(), owner_);
        if (!job.control.cas_once(found.word, mine.word, Point::kSlotSettling)) return 0;
        job.policy.set(job.flags().with_previous(kSlotActive).word);
        job.finished_at.set(store_.now_ms());
        finish(slot, job, mine.to(kSlotCancelled), true);
        return 1;
      }
      [[fallthrough]];
    case kSlotActive: {
      const ErrorEntry error{store_.now_ms(),
                             job.attempt.get(),
                             true,
                             "holder_died",
                             "holder_died",
                             "the process that held the job died",
                             {}};
      set_back(slot, found.word, Setback::kHolderDeath, &error);
      return 1;
    }
    default: return 0;
  }
}

std::uint32_t Actor::repair(std::uint32_t dead) {
  shm::Lane& lane = segment_.lane(dead);
  const std::uint64_t intent = lane.intent.get();
  const auto op = static_cast<Op>(OpBits::get(intent));
  const auto q = static_cast<std::uint32_t>(OpQueue::get(intent));
  const auto intended = static_cast<std::uint32_t>(OpSlot::get(intent));
  const std::uint64_t target = op == Op::kNone ? 0 : lane.intent_data[3].get();
  const std::uint64_t attempt = op == Op::kFetch ? lane.intent_data[2].get() : 0;
  std::uint32_t mended = 0;

  // 1. The operation it was in.
  const bool has_slot = op != Op::kNone && op != Op::kBatch && intended < store_.slots();
  if (op != Op::kNone) {
    const Control found(has_slot ? store_.job(intended).control.load() : 0);
    const bool held = has_slot && op != Op::kBatch && found.owner() == dead + 1 && is_exclusive(found.state());
    if (held ? target < 16 : (op == Op::kAdmit || (op == Op::kEnqueue && !has_slot))) undo_tallies(dead, op, q);
    if (held) mended += mend_slot(intended, dead, op, target, attempt);
    if (has_slot && target >= 16) republish(intended);
    if (op == Op::kBatch && target == 0) undo_tallies(dead, op, q);
    if (op == Op::kBatch && target == 1) mended += finish_batch(dead);
    lane.intent.set(0, Point::kIntentCleared);
  }
  // 2. Everything else that names it, the longest waiting first.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> held;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    if (Control(store_.job(slot).control.load()).owner() == dead + 1)
      held.emplace_back(store_.job(slot).available_at.get(), slot);
  std::sort(held.begin(), held.end());
  for (const auto& [time, slot] : held) mended += mend_slot(slot, dead, Op::kNone, 0, 0);
  // 3. Its chunks, rings and batches.
  rings_.repair(dead, store_.ring_sets(), store_.root_rings(), store_.header().finished_ring);
  // 4. Its place among the sleepers. Whoever was to be woken by it, or instead of it, looks again.
  for (std::uint32_t i = 0; i < store_.max_queues() && store_.queue(i).name_hash.load() != 0; ++i) {
    QueueRecord& queue = store_.queue(i);
    Word& waiters = queue.waiters[dead / 64];
    if ((waiters.load() >> (dead % 64) & 1) != 0) waiters.fetch_and(~(1ULL << (dead % 64)), Point::kWaiterCleared);
    wake_all(queue);
  }
  flush();
  return mended;
}

void Actor::repair_shared() {
  // Blocks whose slot has gone on to another generation, or is free.
  for (std::uint32_t i = 0; i < segment_.geometry().blocks; ++i) {
    const std::uint64_t word = segment_.block_word(i).load_relaxed();  // relaxed: the cas decides
    if (word == 0) continue;
    const std::uint32_t slot = shm::Blocks::slot_of(word);
    if (slot < store_.slots()) {
      const JobRecord& job = store_.job(slot);
      const std::uint32_t generation = job.generation.get();
      const Control control(job.control.load());
      if (control.state() != kSlotFree && generation == shm::Blocks::generation_of(word)) continue;
      if (is_exclusive(control.state())) continue;  // its generation is about to change: the next sweep sees it
      if (control.state() != kSlotFree && job.generation.get() != generation) continue;
    }
    blocks_.free_orphan(i, word);
  }
  keys_.sweep(CarriesId(store_, {}));
  for (std::uint32_t i = 0; i < store_.max_queues() && store_.queue(i).name_hash.load() != 0; ++i)
    if (store_.queue(i).refill.load() != 0) settle_reserved(i);
}

/// Available jobs without a live hint, seen so twice, and timers of the waiting.
std::uint32_t Actor::mend_hints() {
  std::uint32_t mended = 0;
  std::vector<bool> hinted(store_.slots(), false);
  std::vector<std::uint64_t> before(store_.slots());
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) before[slot] = store_.job(slot).control.load();
  for (std::uint32_t i = 0; i < store_.queue_count(); ++i)
    for (unsigned n = 0; n < shm::kRingsPerSet; ++n)
      if (const std::uint32_t ring = shm::Rings::find(store_.queue(i).rings, n); ring != kNoIndex)
        shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
          if (Store::hint_lives(segment_, shm::Hint(value))) hinted[shm::Hint(value).index()] = true;
        });
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const Control control(before[slot]);
    if (control.state() != kSlotAvailable || hinted[slot] || store_.job(slot).control.load() != control.word) continue;
    republish(slot);
    ++mended;
  }
  return mended;
}

std::uint32_t Actor::mend() {
  const std::uint32_t mended = rings_.collect_leaks(store_.ring_sets(), store_.root_rings()) + mend_hints();
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    if (Control(store_.job(slot).control.load()).state() == kSlotFree) slot_hints_.give(slot);
  slot_hints_.flush();
  repair_shared();
  return mended;
}

}  // namespace ojs_shm::engine
