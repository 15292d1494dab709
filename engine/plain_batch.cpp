// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "engine/actor.hpp"
#include "engine/probes.hpp"
#include "engine/unique_keys.hpp"

// A batch of plain jobs (plain.cpp says what those are), by the protocol of batch.cpp and without
// its lists: all slots are filled, one store of the lane's intent commits them, and then they are
// published in order. The tallies are charged once, the clock is read once, and lanes are woken until
// no more sleeps.

namespace ojs_shm::engine {

using shm::Point;

/// One of a batch that is committed.
OJS_SHM_INLINE void Actor::publish_straight(QueueRecord& queue, std::uint32_t slot, Control filling,
                                            std::uint64_t now) {
  const unsigned number = filling.ring();
  const Control published = filling.to(kSlotAvailable, number, 0);
  JobRecord& job = store_.job(slot);
  recorder_.note(slot, job.generation.get(), kSlotFree, kSlotAvailable, now);
  job.control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
  const shm::Hint hint(slot, published.tag());
  const std::uint32_t ring = shm::Rings::find(queue.rings, number);
  if (!rings_.push(ring, hint, &queue.rings, number) &&
      !push_hint(queue.rings, ring, slot, published)) [[unlikely]]
    announce_lost_hint();
}

Straight Actor::enqueue_batch_plain(std::span<const NewJob> specs, std::span<JobId> ids) {
  if (specs.size() > kPlainBatch || specs.empty() || tellings_.on()) return Straight::kAside;
  come_near(specs.front().queue);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  const std::uint64_t flags = queue.flags.load();
  if (any_option(flags)) [[unlikely]]
    return Straight::kAside;
  meet_nothing();
  std::uint64_t cost = 0;
  for (const NewJob& spec : specs) {
    const std::uint64_t size = spec.size();
    if (!spec.straight() || size > store_.max_body() ||
        shm::Rings::find(queue.rings, normal_ring(spec.rank)) == kNoIndex) [[unlikely]]
      return Straight::kAside;
    cost += charge(1, size);
  }

  // 1. The slots, filled in private. Until the commit a death frees them.
  intend<Op::kBatch>(near_.number, kNoIndex, mine);
  const std::uint64_t now = store_.now_ms();
  std::array<std::uint32_t, kPlainBatch> slots;
  std::array<std::uint64_t, kPlainBatch> words;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::uint64_t filling = 0;
    slots[i] = slots_.take(filling);
    if (slots[i] == kNoIndex) [[unlikely]] {
      while (i-- > 0) slots_.free(slots[i], Control(words[i]));
      intend_nothing();
      return Straight::kAside;
    }
    JobRecord& job = store_.job(slots[i]);
    fill<true>(specs[i], specs[i].policy(), slots[i], job, now, ids[i]);
    // NO CRASH POINT: the slot is held exclusively
    job.signals.store(place_in_batch(i), Point::kNone);
    words[i] = Control(filling).to(kSlotFilling, normal_ring(specs[i].rank), owner_).word;
    job.control.store(words[i], Point::kSlotFilling);
  }

  // 2. The counts, and the commit.
  mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
  mine.enqueued.set_ordered(mine.enqueued.get() + specs.size(), Point::kCounterMoved);
  commit_batch(kWhole);

  // 3. The publication, in order; a death leaves the rest to the repair (finish_batch).
  for (std::size_t i = 0; i < specs.size(); ++i) {
    publish_straight(queue, slots[i], Control(words[i]), now);
    OJS_SHM_PROBE4(enqueue, ids[i].hi, ids[i].lo, near_.number, specs[i].rank);
  }
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  for (std::size_t i = 0; i < specs.size() && bell_.wake_one(queue); ++i) {}
  return Straight::kDone;
}

// ---- a replacement ------------------------------------------------------------------------------

/// A batch of one, whose commit decides over the job that has its key as well (unique.cpp).
Straight Actor::replace_straight(const NewJob& spec, JobId& id, Outcome& outcome) {
  come_near(spec.queue);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  const std::uint64_t flags = queue.flags.load();
  const unsigned number = normal_ring(spec.rank);
  const std::uint64_t size = spec.size();
  if (any_option(flags) || tellings_.on() || size > store_.max_body() ||
      shm::Rings::find(queue.rings, number) == kNoIndex) [[unlikely]]
    return Straight::kAside;
  meet_nothing();

  // 1. The slot, filled in private. Until the commit a death frees it.
  intend<Op::kBatch>(near_.number, kNoIndex, mine);
  std::uint64_t taken = 0;
  const std::uint32_t slot = slots_.take(taken);
  if (slot == kNoIndex) [[unlikely]] {
    intend_nothing();
    return Straight::kAside;
  }
  UniqueKeys keys{*this, store_};
  const bool others = keys.ask_for_rival(spec);
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  fill<true>(spec, spec.policy(), slot, job, now, id);
  write_key(*spec.annex, job);
  const Control filling = Control(taken).to(kSlotFilling, number, owner_);
  job.control.store(filling.word, Point::kSlotFilling);

  // 2. The key, and the job that has it.
  Rivals rivals;
  outcome =
      others ? keys.claim_among(spec, slot, now, rivals) : keys.claim(spec, slot, now, rivals);
  const bool met = outcome == Outcome::kMustReplace;
  if (met) outcome = keys.seize_one(spec, rivals) ? Outcome::kOk : Outcome::kRivalMoved;
  if (outcome != Outcome::kOk) [[unlikely]] {
    slots_.free(slot, filling);
    intend_nothing();
    return outcome == Outcome::kBusy ? Straight::kDone : Straight::kAside;
  }

  // 3. The counts, the commit, and what follows from it.
  mine.in.set_ordered(mine.in.get() + charge(1, size), Point::kTallyIn);
  mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
  commit_batch(kWhole);
  publish_straight(queue, slot, filling, now);
  OJS_SHM_PROBE4(enqueue, id.hi, id.lo, near_.number, spec.rank);
  if (met) keys.mark_replaced(rivals.front().slot);
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  if (met) {
    keys.end(rivals.front().slot);
    queue.conflicts.fetch_add(1, Point::kCounterMoved);
  }
  bell_.wake_one(queue);
  return Straight::kDone;
}

}  // namespace ojs_shm::engine
