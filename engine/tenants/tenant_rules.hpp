// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/tables/store.hpp"

// What is set for a tenant of a queue: its weight among the tenants, and bounds of its own.

namespace ojs_shm::engine {

inline std::uint64_t hash_tenant(std::string_view tenant) {
  return tenant.empty() ? 0 : mix_key(Store::hash_name(tenant), 0);
}

/// What the tenant of that key (mix_key of queue and tenant) has of its own; nothing when none has
/// named it.
const TenantRule* find_tenant_rule(const Store& store, std::uint64_t key);
Bounds tenant_bounds(const Store& store, const QueueRecord& queue, std::uint64_t key);
/// Turns that a tenant's flow has before the next one.
std::uint64_t tenant_weight(const Store& store, const QueueRecord& queue, std::uint64_t tenant);

/// 0: the queue's default. False when the table is full.
bool set_tenant_weight(const Store& store, std::uint32_t queue, std::string_view tenant,
                       std::uint32_t weight);
/// Its own, in force with the next Actor::set_tenant_bounds(); nothing: the queue's. False: no
/// room.
bool set_tenant_rule_bounds(const Store& store, std::uint32_t queue, std::string_view tenant,
                            std::optional<std::uint64_t> max_depth,
                            std::optional<std::uint64_t> max_bytes);

}  // namespace ojs_shm::engine
