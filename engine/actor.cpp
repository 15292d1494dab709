// SPDX-License-Identifier: Apache-2.0
#include "engine/actor.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/crons/crons.hpp"
#include "engine/tables/queue_flags.hpp"
#include "engine/workflows/workflows.hpp"

namespace ojs_shm::engine {

using shm::Point;

Actor::Actor(Store& store, std::uint32_t lane) : KnownNames(store, lane) {}

Actor::~Actor() = default;

void Actor::drain() {
  if (taken_ == 0) return;
  struct Held {
    std::uint64_t since, word;
    std::uint32_t slot;
  };
  std::vector<Held> held;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    const Control control(job.control.load());
    if (control.state() == kSlotActive && control.owner() == owner_)
      held.push_back({job.available_at.get(), control.word, slot});
  }
  std::ranges::sort(held, {}, [](const Held& one) { return std::pair(one.since, one.slot); });
  // Under the word that was seen: a job that another lane has taken meanwhile stays with that lane.
  for (const Held& one : held) set_back(one.slot, one.word, Setback::kDrain, nullptr);
}

void Actor::retire() {
  slots_.close();
  if (rings_.has_leaks()) collect_leaks();
  rings_.chunks().release();
  tellings_.close();
  if (limits_held().get() != 0) limits_held().set_ordered(0, Point::kLimitsHeld);
}

void Actor::set_paused(std::uint32_t q, bool paused) {
  QueueRecord& queue = store_.queue(q);
  const std::uint64_t before = set_flags(queue, kPaused, paused ? kPaused : 0);
  if (tellings_.on() && ((before & kPaused) != 0) != paused) tellings_.paused(q, paused);
  if (!paused) bell_.wake_all(queue);
}

}  // namespace ojs_shm::engine
