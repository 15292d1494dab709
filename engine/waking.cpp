// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "engine/actor.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

// ---- busy queues --------------------------------------------------------------------------------

[[gnu::noinline]] void Actor::set_busy(Word& word, std::uint32_t queue) {
  std::uint64_t found = word.load_seq_cst();
  while (BusyWord::of(found, queue) != BusyWord::kBusy &&
         !word.cas(found, BusyWord::with(found, queue, BusyWord::kBusy) + BusyWord::kVersion,
                   Point::kBusySet)) {}  // PAIR busy
}

/// After a fetch found nothing: 1. announce it; 2. look, with all that a fetch does; 3. say that
/// the queue is quiet, unless anything in the word has moved. Whoever makes a job available after
/// our look finds the announcement, or what we say then, and takes it back; whoever did so before
/// is seen by it. A queue that is shut is left alone: others may see it. Returns whether it may
/// have a job.
[[gnu::noinline]] bool Actor::settle_quiet(std::uint32_t q) {
  Word& word = store_.busy_word(q);
  std::uint64_t found = word.load_seq_cst();
  if (BusyWord::of(found, q) == BusyWord::kQuiet) return false;
  if (BusyWord::of(found, q) == BusyWord::kBusy) {  // 1
    const std::uint64_t quieting = BusyWord::with(found, q, BusyWord::kQuieting);
    if (!word.cas_once(found, quieting, Point::kBusyCleared)) return true;
    found = quieting;
  }
  past_gates_ = true;  // a limit that has no room hides no job for ever
  const bool has_job = shut(store_.queue(q), store_.queue(q).flags.load()) || sees_work(q);  // 2
  past_gates_ = false;
  if (has_job) {
    set_busy(word, q);
    return true;
  }
  word.cas_once(found, BusyWord::with(found, q, BusyWord::kQuiet),
                Point::kBusyCleared);  // 3. PAIR busy
  return false;
}

// ---- sleepers -----------------------------------------------------------------------------------

bool Actor::wake_one(QueueRecord& queue) {
  mark_busy(store_.number_of(queue));
  // A lane that is taken after this looks for work before it sleeps, and finds ours.
  const std::uint32_t lanes = std::min(segment_.header().lanes_high.load_seq_cst(), store_.lanes());
  std::uint32_t i = 0;
  do
    if (queue.waiters[i].load_seq_cst() != 0 && wake_among(queue, i)) return true;  // PAIR idle
  while (++i * 64 < lanes);
  return false;
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
  mark_busy(store_.number_of(queue));
  for (std::uint32_t i = 0; i < (store_.lanes() + 63) / 64; ++i) {
    if (queue.waiters[i].load_seq_cst() == 0) continue;
    for (std::uint64_t waiting = queue.waiters[i].exchange(0, Point::kWaiterCleared); waiting != 0;
         waiting &= waiting - 1) {
      shm::Lane& lane =
          segment_.lane(i * 64 + static_cast<std::uint32_t>(std::countr_zero(waiting)));
      lane.park.fetch_add(1, Point::kParkSet);
      shm::futex_wake(lane.park, 1);
    }
  }
}

}  // namespace ojs_shm::engine
