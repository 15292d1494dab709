// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "engine/actor.hpp"
#include "engine/probes.hpp"

// A batch of plain jobs (plain.cpp says what those are), by the protocol of batch.cpp and without
// its lists: all slots are filled, one store of the lane's intent commits them, and then they are
// published in order. The tallies are charged once, the clock is read once, and lanes are woken until
// no more sleeps.

namespace ojs_shm::engine {

using shm::Point;

Straight Actor::enqueue_batch_plain(std::span<const NewJob> specs, std::span<JobId> ids) {
  if (specs.size() > kPlainBatch || specs.empty() || tellings_.on()) return Straight::kAside;
  come_near(specs.front().queue);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  const std::uint64_t flags = queue.flags.load();
  if (any_option(flags)) [[unlikely]]
    return Straight::kAside;
  met_.fullness.bound = 0;
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
    const unsigned number = normal_ring(specs[i].rank);
    const Control published = Control(words[i]).to(kSlotAvailable, number, 0);
    JobRecord& job = store_.job(slots[i]);
    recorder_.note(slots[i], job.generation.get(), kSlotFree, kSlotAvailable, now);
    job.control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
    OJS_SHM_PROBE4(enqueue, ids[i].hi, ids[i].lo, near_.number, specs[i].rank);
    const shm::Hint hint(slots[i], published.tag());
    const std::uint32_t ring = shm::Rings::find(queue.rings, number);
    if (!rings_.push(ring, hint, &queue.rings, number) &&
        !push_hint(queue.rings, ring, slots[i], published)) [[unlikely]]
      announce_lost_hint();
  }
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  for (std::size_t i = 0; i < specs.size() && bell_.wake_one(queue); ++i) {}
  return Straight::kDone;
}

}  // namespace ojs_shm::engine
