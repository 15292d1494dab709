// SPDX-License-Identifier: Apache-2.0
#include "engine/tenants/tenant_rules.hpp"

#include <algorithm>

#include "shm/points.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

/// What is said of that tenant of the queue; null when nothing is, and with `make` when the table
/// is full.
TenantRule* name_tenant(const Store& store, std::uint32_t q, std::string_view tenant, bool make) {
  const std::uint64_t key = mix_key(q, hash_tenant(tenant));
  for (std::uint32_t i = 0; i < kTenantRules; ++i) {
    TenantRule& rule = store.tenant_rules[(key + i) % kTenantRules];
    std::uint64_t found = rule.key.load();
    if (found == 0 && !make) return nullptr;
    if (found == 0 && rule.key.cas(found, key, Point::kTenantNamed)) found = key;
    if (found != key) continue;
    // Any lane that knows the name may write it: all would write the same.
    const std::string_view name = tenant.substr(0, sizeof rule.name);
    shm::copy_in(rule.name, name.data(),
                 name.size());  // NO CRASH POINT: without its length a name is none
    rule.queue_and_length.store(std::uint64_t{q} << 32 | name.size(), Point::kTenantNamed);
    return &rule;
  }
  return nullptr;
}

}  // namespace

const TenantRule* find_tenant_rule(const Store& store, std::uint64_t key) {
  for (std::uint32_t i = 0; i < kTenantRules; ++i) {
    const TenantRule& rule = store.tenant_rules[(key + i) % kTenantRules];
    const std::uint64_t found = rule.key.load();
    if (found == key) return &rule;
    if (found == 0) break;
  }
  return nullptr;
}

std::uint64_t tenant_weight(const Store& store, const QueueRecord& queue, std::uint64_t tenant) {
  const Fairness fairness(queue.fairness.load());
  const TenantRule* rule = fairness.weighted()
                               ? find_tenant_rule(store, mix_key(store.number_of(queue), tenant))
                               : nullptr;
  const std::uint64_t weight = rule == nullptr ? 0 : rule->weight.load();
  return weight == 0 ? fairness.default_weight()
                     : std::min<std::uint64_t>(weight, Fairness::kMostWeight);
}

Bounds tenant_bounds(const Store& store, const QueueRecord& queue, std::uint64_t key) {
  const TenantRule* rule = find_tenant_rule(store, key);
  const std::uint64_t depth = rule == nullptr ? 0 : rule->max_depth.load();
  const std::uint64_t bytes = rule == nullptr ? 0 : rule->max_bytes.load();
  return {depth == 0 ? queue.tenant_max_depth.load() : depth - 1,
          bytes == 0 ? queue.tenant_max_bytes.load() : bytes - 1};
}

bool set_tenant_weight(const Store& store, std::uint32_t q, std::string_view tenant,
                       std::uint32_t weight) {
  TenantRule* rule = name_tenant(store, q, tenant, weight != 0);
  if (rule != nullptr) rule->weight.store(weight, Point::kSetChanged);
  return rule != nullptr || weight == 0;
}

bool set_tenant_rule_bounds(const Store& store, std::uint32_t q, std::string_view tenant,
                            std::optional<std::uint64_t> max_depth,
                            std::optional<std::uint64_t> max_bytes) {
  TenantRule* rule = name_tenant(store, q, tenant, max_depth || max_bytes);
  if (rule == nullptr) return !max_depth && !max_bytes;
  rule->max_depth.store(max_depth ? *max_depth + 1 : 0, Point::kSetChanged);
  rule->max_bytes.store(max_bytes ? *max_bytes + 1 : 0, Point::kSetChanged);
  return true;
}

}  // namespace ojs_shm::engine
