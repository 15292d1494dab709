// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tables/store.hpp"

// Pools of workers, for reading.

namespace ojs_shm::engine {

/// The pool of that name, kNoIndex when there is none.
std::uint32_t find_pool(const Store& store, std::string_view name);
/// By Store::hash_name() of its name.
std::uint32_t find_pool(const Store& store, std::uint64_t hash);
std::string pool_name(const Store& store, std::uint32_t pool);

/// What a pool has been told, and under which setup; nothing when it was never made.
struct PoolPlan {
  PoolSetup setup{0};
  std::uint64_t concurrency = 0, interval_ms = 0;
  double ratio = 0;
  std::vector<std::uint32_t> queues;
  std::vector<std::uint8_t> cycle;  ///< places in `queues`
};
std::optional<PoolPlan> pool_plan(const Store& store, std::uint32_t pool);

/// The workers in a pool, as each of them declared.
struct PoolCrew {
  std::uint32_t workers = 0;
  std::uint64_t concurrency = 0;          ///< of those that have declared any
  bool all_declared = true, full = true;  ///< all of them
};
PoolCrew pool_crew(const Store& store, std::uint32_t pool);

/// By a walk over all slots.
struct PoolLoad {
  std::uint64_t active = 0, waiting = 0;
};
PoolLoad pool_load(const Store& store, std::uint32_t pool, const PoolPlan& plan);

}  // namespace ojs_shm::engine
