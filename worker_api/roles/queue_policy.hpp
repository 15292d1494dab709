// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <ojs_shm/admin.hpp>

#include "engine/actor.hpp"
#include "worker_api/json/envelope_json.hpp"

// The order within a queue, between its settings as people write them and the engine's words. Pure;
// thread-safe.

namespace ojs_shm::internal {

/// Errors: kInvalid, also for a limit that lies beyond the worst priority: no job would rise.
Result<engine::Aging> read_aging(engine::Convention convention, const AgingSettings& settings);
AgingSettings describe_aging(engine::Convention convention, engine::Aging aging);
/// As parse_queue_settings() reads it.
std::string print_aging(const AgingSettings& aging, bool lower_first);

/// Levels that are not listed share one turn of a cycle, unless "*" says how many. Errors:
/// kInvalid.
Result<std::vector<engine::QueueOrder::LevelWeight>> read_weights(
    engine::Convention convention, const std::vector<LevelWeight>& weights);
std::vector<LevelWeight> describe_weights(engine::Convention convention,
                                          const engine::QueueRecord& queue);

/// The weights by the names under which they are looked up. Errors: kInvalid.
Result<std::vector<std::pair<std::string, std::uint32_t>>> read_tenant_weights(
    const TenantFairness& fairness);
TenantFairness describe_fairness(const engine::Store& store, std::uint32_t queue);

/// Bounds of tenants by name. Errors: kInvalid.
Status check_tenant_bounds(const std::vector<TenantBound>& bounds);
std::vector<TenantBound> describe_tenant_bounds(const engine::Store& store, std::uint32_t queue);

/// `tenant_max_depth`, `tenant_max_size_bytes` and `tenant_bounds`.
void print_tenant_bounds(json::ObjectWriter& writer, const QueueInfo& queue);

/// What a queue does when it is full; what is not set stays as it was.
engine::Backpressure read_backpressure(const QueueSettings& settings, engine::Backpressure before);

/// Of two settings of one queue that exclude each other. Errors: kInvalid.
Status check_order(std::string_view queue, bool ages, bool weighted, bool across);

}  // namespace ojs_shm::internal
