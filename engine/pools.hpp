// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout.hpp"

namespace ojs_shm::engine {

/// What a pool shall be. Everything is already validated, but for what others may change meanwhile.
struct PoolSpec {
  PoolStrategy strategy = PoolStrategy::kRoundRobin;
  std::vector<std::uint32_t> queues;   ///< numbers, in order
  std::vector<std::uint32_t> weights;  ///< of kWeighted: one for each queue
  std::uint64_t concurrency = 0;       ///< 0: unlimited
  bool isolated = false, prevents = false;
  std::uint64_t interval_ms = 30'000;
  double ratio = 0.05;
};

/// The pool of a handle as its setup was when it was last read.
struct PoolView {
  std::uint32_t pool = shm::kNoIndex;
  PoolSetup setup{0};
  PoolPolicy policy;
  std::uint64_t interval_ms = 0;
  std::vector<std::uint32_t> queues;
  /// counters of the pool, by place; null when it has none left
  std::vector<Word*> dispatched;
  std::vector<const Word*> backlogs;  ///< by place: a fetch may look at all of them
};

}  // namespace ojs_shm::engine
