// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/tables/new_job.hpp"
#include "engine/tables/store.hpp"

// What an enqueue does so that the keys of its jobs' limits are not given up meanwhile
// (limit_sweep.cpp).

namespace ojs_shm::engine {

/// Moves on when keys are given up. An enqueue under a key reads it before looking the key
/// up.
std::uint64_t limits_turn(const Store& store);

/// While it lives, the keys that the jobs name stay what they were when they were looked up, if
/// they stand.
class LimitsHold {
 public:
  /// `held`: this lane's, which may hold them already.
  LimitsHold(const Store& store, shm::LaneWord& held, std::span<const NewJob> jobs);
  ~LimitsHold();
  LimitsHold(const LimitsHold&) = delete;
  bool stand() const { return stand_; }

 private:
  shm::LaneWord& held_;
  bool ours_ = false, stand_ = true;
};

}  // namespace ojs_shm::engine
