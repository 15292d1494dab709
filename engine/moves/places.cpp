// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/places.hpp"

#include <utility>
#include <vector>

#include "engine/tables/hint_lives.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/ring_look.hpp"
#include "shm/ring_splice.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// When the supervisor is to look at a job that waits, 0 for never.
std::uint64_t Places::timer_of(const JobRecord& job, unsigned state) {
  if (state == kSlotScheduled || state == kSlotRetryable)
    return earlier(job.due_at.get(), end_in(job, state));
  return holds_job(state) && !is_finished(state) ? job.expires_at.get() : 0;
}

/// Publishes a hint to an available job; on a shortage of chunks it first packs what there is.
bool Places::push_hint(shm::RingSet& rings, std::uint32_t ring, std::uint32_t slot,
                       Control available) {
  const unsigned number = available.ring();
  const shm::Hint hint(slot, available.tag());
  if (ring != kNoIndex && rings_.push(ring, hint, &rings, number)) [[likely]]
    return true;
  return relieved([&] {
    ring = rings_.ensure(rings, number);
    return ring != kNoIndex && rings_.push(ring, hint, &rings, number);
  });
}

[[gnu::noinline]] bool Places::push_timer(std::uint32_t slot, std::uint32_t generation,
                                          std::uint64_t due) {
  const std::uint32_t ring = store_.header().timers_ring;
  const auto push = [&] { return rings_.push(ring, shm::Hint(slot, generation), nullptr, 0); };
  const bool done = push() || relieved(push);
  if (!done) announce_lost_hint();
  bell_.ring_supervisor_for(due);
  return done;
}

/// A hint found no room: the supervisor looks for jobs without one.
[[gnu::noinline]] void Places::announce_lost_hint() {
  store_.header().timers_lost.fetch_add(1, Point::kCounterMoved);
  bell_.ring_supervisor();
}

/// Packs rings, until there is enough for a while.
[[gnu::noinline]] void Places::pack_for_a_while() {
  shm::Stretch stretch;
  stretch.enough = 1024;
  const auto pack = [&](std::uint32_t ring, shm::StillLive live) {
    if (stretch.freed < stretch.enough) shm::splice(rings_, ring, live, stretch);
  };
  each_ring_of_hints(store_, pack);
  pack(store_.header().timers_ring, timer_lives);
  if (rings_.has_leaks()) collect_leaks();
}

std::uint32_t Places::collect_leaks() {
  // first of all: other lanes may be making rings
  std::vector<std::uint64_t> linked = rings_.chunks().linked();
  return rings_.collect_leaks(std::move(linked), ring_sets(store_), root_rings(store_));
}

[[gnu::noinline]] shm::Peeked Places::oldest_in_front(std::uint32_t ring, unsigned number,
                                                      shm::Peeked head) {
  shm::Peeked best = head;
  std::uint64_t best_time = store_.job(head.hint().index()).available_at.get();
  unsigned seen = 0;
  shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
    const shm::Hint hint(value);
    if (++seen > 64 || hint.index() >= store_.slots() || hint.hint_first()) return;
    const JobRecord& job = store_.job(hint.index());
    if (job.control.load() != Control(kSlotAvailable, number, 0, hint.tag()).word) return;
    if (const std::uint64_t time = job.available_at.get(); time < best_time) {
      best_time = time;
      best.value = value;
    }
  });
  return best;
}

}  // namespace ojs_shm::engine
