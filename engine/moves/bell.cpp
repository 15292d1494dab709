// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/bell.hpp"

#include <algorithm>
#include <bit>

#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

constexpr int kEveryThread = 1 << 20;

void wake_lane(shm::Lane& lane, int threads) {
  lane.park.fetch_add(1, Point::kParkSet);
  shm::futex_wake(lane.park, threads);
}

}  // namespace

[[gnu::noinline]] void Bell::set_busy(Word& word, std::uint32_t queue) {
  std::uint64_t found = word.load_seq_cst();
  while (BusyWord::of(found, queue) != BusyWord::kBusy &&
         !word.cas(found, BusyWord::with(found, queue, BusyWord::kBusy) + BusyWord::kVersion,
                   Point::kBusySet)) {}  // PAIR busy
}

bool Bell::wake_one(QueueRecord& queue, std::uint32_t number) const {
  mark_busy(number);
  // A lane that is taken after this looks for work before it sleeps, and finds ours.
  const std::uint32_t lanes = store_.segment().header().lanes_high.load_seq_cst();
  if (queue.waiters[0].load_seq_cst() != 0 && wake_among(queue, 0)) return true;  // PAIR idle
  if (lanes <= 64) [[likely]]
    return false;
  for (std::uint32_t i = 1; i * 64 < std::min(lanes, store_.lanes()); ++i)
    if (queue.waiters[i].load_seq_cst() != 0 && wake_among(queue, i)) return true;  // PAIR idle
  return false;
}

[[gnu::noinline]] bool Bell::wake_among(QueueRecord& queue, std::uint32_t word) const {
  std::uint64_t waiting = queue.waiters[word].load_seq_cst();
  while (waiting != 0) {
    const std::uint64_t bit = waiting & (0 - waiting);
    waiting = queue.waiters[word].fetch_and(~bit, Point::kWaiterCleared);
    if ((waiting & bit) == 0) continue;
    wake_lane(store_.segment().lane(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bit))),
              1);
    return true;
  }
  return false;
}

void Bell::wake_all(QueueRecord& queue) const {
  mark_busy(store_.number_of(queue));
  wake_every(queue.waiters);
}

void Bell::wake_every(Sleepers& sleepers) const {
  for (std::uint32_t i = 0; i < (store_.lanes() + 63) / 64; ++i) {
    if (sleepers[i].load_seq_cst() == 0) continue;  // PAIR listen
    for (std::uint64_t waiting = sleepers[i].exchange(0, Point::kWaiterCleared); waiting != 0;
         waiting &= waiting - 1)
      wake_lane(
          store_.segment().lane(i * 64 + static_cast<std::uint32_t>(std::countr_zero(waiting))), 1);
  }
}

void Bell::call(std::uint32_t owner) const {
  if (owner == 0 || owner > store_.lanes()) return;
  wake_lane(store_.segment().lane(owner - 1), kEveryThread);  // its descriptor's thread, too
}

[[gnu::noinline]] void Bell::ring_completion(std::uint32_t slot) const {
  Half& bell = store_.segment().header().completions[slot % 64];
  bell.fetch_add(1, Point::kCompletionRung);
  shm::futex_wake(bell, kEveryThread);
  wake_every(store_.header().listeners);
}

void Bell::ring_completions() const {
  for (Half& bell : store_.segment().header().completions) {
    bell.fetch_add(1, Point::kCompletionRung);
    shm::futex_wake(bell, kEveryThread);
  }
  wake_every(store_.header().listeners);
}

/// The flag goes first: a lane that lies down meanwhile sets it again. Should this one die in
/// between, its repair wakes them.
[[gnu::noinline]] void Bell::ring_listeners() const {
  store_.header().telling.fetch_and(~kListened, Point::kWaiterCleared);
  wake_every(store_.header().listeners);
}

[[gnu::noinline]] void Bell::ring_supervisor() const {
  shm::Header& header = store_.segment().header();
  header.doorbell.fetch_add(1, Point::kDoorbellRung);
  shm::futex_wake(header.doorbell, 1);
}

}  // namespace ojs_shm::engine
