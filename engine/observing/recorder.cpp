// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/recorder.hpp"

#include <algorithm>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {
namespace {

TransitionWords words_of(const TransitionRecord& record) {
  return {record.what.get(), record.when.get()};
}

constexpr unsigned kOwner = 15;  ///< no state

/// The place behind the newest record that fits: the ring is written in turn, so times fall there.
std::uint32_t place_behind_newest(const TransitionRecord* ring, std::uint32_t count) {
  std::uint64_t newest = 0;
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const TransitionWords words = words_of(ring[i]);
    if (!words.fits() || words.ms() < newest) continue;
    newest = words.ms();
    next = i + 1;
  }
  return next % count;
}

}  // namespace

Recorder::Recorder(const Store& store, std::uint32_t lane)
    : ring_(store.transitions(lane)),
      mask_(store.transitions_per_lane() - 1),
      next_(place_behind_newest(ring_, store.transitions_per_lane())) {}

void Recorder::sign(std::uint32_t holder, std::uint64_t now) {
  write(ring_[mask_ + 1], TransitionWords::of(0, holder, kOwner, kOwner, now));
}

std::vector<RecordedTransition> recent_transitions(const Store& store, std::size_t most) {
  std::vector<RecordedTransition> found;
  const std::uint32_t count = store.transitions_per_lane();
  for (std::uint32_t lane = 0; lane < store.lanes(); ++lane) {
    const TransitionRecord* ring = store.transitions(lane);
    const std::uint32_t begin = place_behind_newest(ring, count);
    const TransitionWords owner = words_of(ring[count]);
    for (std::uint32_t i = 0; i < count; ++i) {
      const TransitionWords words = words_of(ring[(begin + i) % count]);
      RecordedTransition transition;
      transition.slot = static_cast<std::uint32_t>(TransitionWords::Slot::get(words.what));
      if (!words.fits() || transition.slot >= store.slots()) continue;
      transition.time_ms = words.ms();
      transition.lane = lane;
      if (owner.fits() && owner.ms() <= words.ms())
        transition.holder =
            static_cast<std::uint32_t>(TransitionWords::Generation::get(owner.what));
      transition.from = static_cast<unsigned>(TransitionWords::From::get(words.what));
      transition.to = static_cast<unsigned>(TransitionWords::To::get(words.what));
      const JobRecord& job = store.job(transition.slot);
      const auto generation =
          static_cast<std::uint32_t>(TransitionWords::Generation::get(words.what));
      transition.job = job.id();
      transition.queue = job.queue.get();
      // asked after the id: a lane that uses the slot again changes this first
      transition.known =
          job.generation.get() == generation && Control(job.control.load()).state() != kSlotFree;
      found.push_back(transition);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
  if (found.size() > most)
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(most));
  return found;
}

}  // namespace ojs_shm::engine
