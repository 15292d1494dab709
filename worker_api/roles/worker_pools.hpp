// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/worker_pool.hpp>

#include "engine/pools/pool_look.hpp"
#include "engine/pools/pools.hpp"
#include "engine/tables/store.hpp"

// Pools of workers, between what people write and the engine's words. Pure; thread-safe.

namespace ojs_shm::internal {

/// What a pool refuses whatever the segment holds. Errors: kInvalid.
Status check_pool(std::string_view name, const PoolSettings& settings);
/// Without the numbers of the queues. `settings` have been checked.
engine::PoolSpec spec_of(const PoolSettings& settings);
WorkerPoolInfo describe_pool(const engine::Store& store, std::uint32_t pool,
                             const engine::PoolPlan& plan);
/// The same, for a caller that knows the pool's load already.
WorkerPoolInfo describe_pool(const engine::Store& store, std::uint32_t pool,
                             const engine::PoolPlan& plan, const engine::PoolLoad& load);
Error no_pool(std::string_view name);

}  // namespace ojs_shm::internal

namespace ojs_shm {

/// What parse_pool_settings() reads, without what is at its default.
std::string print_pool_settings(const PoolSettings& settings);

}  // namespace ojs_shm
