// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/store.hpp"

// What the store knows of tenants: what they have of their own, and their accounts.

namespace ojs_shm::engine {

const TenantRule* Store::find_rule(std::uint64_t key) const {
  for (std::uint32_t i = 0; i < kTenantRules; ++i) {
    const TenantRule& rule = tenant_rule(static_cast<std::uint32_t>(key + i));
    const std::uint64_t found = rule.key.load();
    if (found == key) return &rule;
    if (found == 0) break;
  }
  return nullptr;
}

std::uint64_t Store::weight_of(const QueueRecord& queue, std::uint64_t tenant) const {
  const Fairness fairness(queue.fairness.load());
  const TenantRule* rule =
      fairness.weighted() ? find_rule(mix_key(number_of(queue), tenant)) : nullptr;
  const std::uint64_t weight = rule == nullptr ? 0 : rule->weight.load();
  return weight == 0 ? fairness.default_weight()
                     : std::min<std::uint64_t>(weight, Fairness::kMostWeight);
}

Bounds Store::tenant_bounds(const QueueRecord& queue, std::uint64_t key) const {
  const TenantRule* rule = find_rule(key);
  const std::uint64_t depth = rule == nullptr ? 0 : rule->max_depth.load();
  const std::uint64_t bytes = rule == nullptr ? 0 : rule->max_bytes.load();
  return {depth == 0 ? queue.tenant_max_depth.load() : depth - 1,
          bytes == 0 ? queue.tenant_max_bytes.load() : bytes - 1};
}

std::uint32_t Store::find_account(std::uint64_t key) const {
  for (std::uint32_t i = 0; i < account_places(); ++i) {
    const std::uint32_t at = account_place(key, i);
    const AccountRecord& found = accounts_[at];
    const bool open = (found.reserved.load() & kAccountClosed) == 0;
    const std::uint64_t its = found.key.load();
    if (its == key && open) return at;
    if (its == 0 && open) break;
  }
  return kNoIndex;
}

std::uint64_t Store::account_out(std::uint32_t at) const {
  std::uint64_t sum = 0;
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), lanes_);
  for (std::uint32_t l = 0; l < high; ++l) sum += account_tally(at, l).out.get_ordered();
  return sum;
}

std::uint64_t Store::account_beside(std::uint32_t at) const {
  return 0 - account(at).written_off.load() - account_out(at);
}

}  // namespace ojs_shm::engine
