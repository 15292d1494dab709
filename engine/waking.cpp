// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "engine/actor.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

void Actor::wake_one(QueueRecord& queue) {
  // A lane that is taken after this looks for work before it sleeps, and finds ours.
  const std::uint32_t lanes = std::min(segment_.header().lanes_high.load_seq_cst(), store_.lanes());
  std::uint32_t i = 0;
  do
    if (queue.waiters[i].load_seq_cst() != 0 && wake_among(queue, i)) return;  // PAIR idle
  while (++i * 64 < lanes);
}

[[gnu::noinline]] bool Actor::wake_among(QueueRecord& queue, std::uint32_t word) {
  std::uint64_t waiting = queue.waiters[word].load_seq_cst();
  while (waiting != 0) {
    const std::uint64_t bit = waiting & (0 - waiting);
    waiting = queue.waiters[word].fetch_and(~bit, Point::kWaiterCleared);
    if ((waiting & bit) == 0) continue;
    shm::Lane& lane = segment_.lane(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bit)));
    lane.park.fetch_add(1, Point::kParkSet);
    shm::futex_wake(lane.park, 1);
    return true;
  }
  return false;
}

void Actor::wake_all(QueueRecord& queue) {
  for (std::uint32_t i = 0; i < (store_.lanes() + 63) / 64; ++i) {
    if (queue.waiters[i].load_seq_cst() == 0) continue;
    for (std::uint64_t waiting = queue.waiters[i].exchange(0, Point::kWaiterCleared); waiting != 0;
         waiting &= waiting - 1) {
      shm::Lane& lane = segment_.lane(i * 64 + static_cast<std::uint32_t>(std::countr_zero(waiting)));
      lane.park.fetch_add(1, Point::kParkSet);
      shm::futex_wake(lane.park, 1);
    }
  }
}

}  // namespace ojs_shm::engine
