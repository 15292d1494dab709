// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/smooth.hpp"

namespace ojs_shm::engine {

/// Whose turn it is among parties with weights. A party that has nothing when its turn comes is
/// passed over, so the others share its turns by their own weights; and one that has something is
/// never passed over, so while it has, at most W - weight others are served between two of its
/// services (W: the reduced weights' sum).
class Turns {
 public:
  explicit Turns(std::span<const std::uint32_t> weights)
      : cycle_(smooth_schedule(weights)), asked_(weights.size()) {}

  /// Calls `serve(party)` for each party once, in the order of their turns, until one call returns
  /// true. The next round begins after that turn; where all calls return false, it begins where
  /// this one did.
  template <class Serve>
  bool serve_next(Serve serve) {
    std::fill(asked_.begin(), asked_.end(), false);
    for (std::size_t step = 0; step < cycle_.size(); ++step) {
      const std::size_t at = (turn_ + step) % cycle_.size();
      const std::uint16_t party = cycle_[at];
      if (asked_[party]) continue;
      asked_[party] = true;
      if (!serve(party)) continue;
      turn_ = (at + 1) % cycle_.size();
      return true;
    }
    return false;
  }

 private:
  std::vector<std::uint16_t> cycle_;
  std::vector<bool> asked_;
  std::size_t turn_ = 0;
};

}  // namespace ojs_shm::engine
