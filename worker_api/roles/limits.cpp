// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <ojs_shm/observer.hpp>

#include "engine/limits/rates.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/limit_info.hpp"
#include "worker_api/roles/limit_rule.hpp"

namespace ojs_shm {
namespace {

LimitInfo describe(const engine::Store& store, std::uint32_t at,
                   const engine::Census::Limit& counted) {
  const engine::LimitKey& key = store.limit_keys[at];
  const engine::Rates rates(store);
  LimitInfo info;
  info.key = engine::limit_name(store, at);
  info.limit = internal::limit_of(engine::settings_of(key));
  info.by_operator = (key.config.load() & engine::kLimitSetByOperator) != 0;
  info.expires_at_ms = std::uint64_t{key.ends_at.load()} * 1000;
  info.active = counted.active;
  info.waiting = counted.waiting;
  info.begun = rates.begun(key, store.now_ms());
  info.next_at_ms = rates.next(key, store.now_ms());
  info.closed_until_ms = engine::Rates::closed_until(key, store.now_ms());
  info.exceeded_total = key.exceeded.load();
  info.released_total = key.released.load();
  info.dropped_total = key.dropped.load();
  return info;
}

bool stands(const engine::LimitKey& key) { return key.name_hash.load() > engine::kLimitGone; }

}  // namespace

namespace internal {

std::vector<LimitInfo> describe_limits(const engine::Store& store,
                                       const std::vector<engine::Census::Limit>& counted) {
  std::vector<LimitInfo> infos;
  for (std::uint32_t at = 0; at < counted.size(); ++at)
    if (stands(store.limit_keys[at]) && !engine::limit_name(store, at).starts_with('\x01'))
      infos.push_back(describe(store, at, counted[at]));
  std::ranges::sort(infos, {}, &LimitInfo::key);
  return infos;
}

}  // namespace internal

std::vector<LimitInfo> Observer::limits() const {
  const engine::Store& store = segment_.attachment()->store();
  if (store.header().limiting.load() == 0) return {};
  return internal::describe_limits(store, engine::take_census(store).limits);
}

Result<LimitInfo> Observer::limit(std::string_view key) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t at = engine::find_limit(store, key);
  if (at != engine::kNoIndex && stands(store.limit_keys[at])) {
    const engine::Census census = engine::take_census(store);
    return describe(store, at,
                    at < census.limits.size() ? census.limits[at] : engine::Census::Limit{});
  }
  return Error{Code::kNotFound, "there is no limit with the key '" + std::string(key) + "'"}.about(
      "key");
}

}  // namespace ojs_shm
