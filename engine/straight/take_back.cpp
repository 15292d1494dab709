// SPDX-License-Identifier: Apache-2.0
#include "engine/straight/straight_way.hpp"

// An enqueue of the straight way that found no room in the segment takes back what it has done.

namespace ojs_shm::engine {

using shm::Point;

[[gnu::noinline]] void StraightEnqueue::give_room_back(std::uint64_t size) {
  take_back_admission(*current_.tally, current_.number, charge(1, size), {});
  intend_nothing();
}

/// There was no chunk for the hint: packs, and if that does not help takes the job back.
[[gnu::noinline]] bool StraightEnqueue::hint_or_undo(QueueTally& mine, std::uint32_t ring,
                                                     std::uint32_t slot, Control published,
                                                     std::uint64_t size) {
  QueueRecord& queue = store_.queue(current_.number);
  if (push_hint(queue.rings, ring, slot, published)) return true;
  intend_undo();  // it is no longer to be finished
  Word& control = store_.job(slot).control;
  const Control filling = published.to(kSlotFilling, published.ring(), owner_);
  // Taken meanwhile: then it needs no hint.
  if (!control.cas_once(published.word, filling.word, Point::kSlotFilling)) return true;
  take_back_admission(mine, current_.number, charge(1, size), {});
  slots_.free(slot, filling);
  intend_nothing();
  return false;
}

}  // namespace ojs_shm::engine
