// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// The actor of a dead lane, after a death (repairer.cpp). The caller holds the proof of it (the
/// lock on the dead process's byte), and the Repairer has the dead lane itself. So a repair needs
/// nothing that could be used up, and all it does is what that lane might have done: a repairer
/// that dies leaves the same lane with one unfinished operation at most, and the next one begins
/// again. Two rules keep that true: 1. what the lane was in the middle of is ended under the intent
/// that says so, and only then may another intent be written over it; 2. tallies are put back to
/// the values that the intent keeps, which may be done any number of times.
class Repairer final : private Actor {
 public:
  /// Settles everything that the lanes of the dead left; the caller gives the lanes back
  /// afterwards. May be cut off anywhere and begun again. Returns slots mended.
  static std::uint32_t repair(Store& store, std::span<const std::uint32_t> dead_lanes);

 private:
  /// Slots that name the lane, with the time since which their jobs wait, the longest first.
  using Held = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

  using Actor::Actor;
  std::uint32_t repair(const Held& held);
  std::uint32_t end_intent(const Held& held);
  void undo_tallies(Op op, std::uint32_t queue);
  std::uint32_t end_operation(std::uint32_t slot, Op op, std::uint64_t target);
  std::uint32_t finish_batch(const Held& held);
  void fill_again(const Held& held, std::uint32_t queue);
  std::uint32_t finish_spread(const Held& held);
  std::uint32_t finish_fetches(const Held& held);
  std::uint32_t finish_acks(const Held& held);
  std::uint32_t let_go(std::uint32_t slot);
  void leave_queues();
};

}  // namespace ojs_shm::engine
