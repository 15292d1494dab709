// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <ojs_shm/observer.hpp>

#include "engine/rates.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/limit_rule.hpp"

namespace ojs_shm {
namespace {

/// How many jobs each key has at work, and how many it holds back: one walk over all slots.
struct Counted {
  std::vector<std::uint32_t> active, waiting;
};

Counted count(const engine::Store& store) {
  Counted counted{std::vector<std::uint32_t>(store.limit_keys()),
                  std::vector<std::uint32_t>(store.limit_keys())};
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const engine::JobRecord& job = store.job(slot);
    const unsigned state = engine::Control(job.control.load()).state();
    if (state == engine::kSlotAvailable) {
      const std::uint32_t lot = engine::second_limit(job.limits.get());
      if (lot < store.lots() && store.lot(lot).key() < store.limit_keys())
        ++counted.waiting[store.lot(lot).key()];
    } else if (state == engine::kSlotActive || state == engine::kSlotSettling) {
      const engine::LimitList keys = engine::limits_of(store, slot, job, true);
      for (unsigned i = 0; i < keys.count; ++i) ++counted.active[keys.key[i]];
    }
  }
  return counted;
}

LimitInfo describe(const engine::Store& store, std::uint32_t at, const Counted& counted) {
  const engine::LimitKey& key = store.limit_key(at);
  const engine::Rates rates(store);
  LimitInfo info;
  info.key = engine::limit_name(store, at);
  info.limit = internal::limit_of(engine::settings_of(key));
  info.by_operator = (key.config.load() & engine::kLimitSetByOperator) != 0;
  info.active = counted.active[at];
  info.waiting = counted.waiting[at];
  info.begun = rates.begun(key, store.now_ms());
  info.next_at_ms = rates.next(key, store.now_ms());
  info.exceeded_total = key.exceeded.load();
  info.released_total = key.released.load();
  info.dropped_total = key.dropped.load();
  return info;
}

bool stands(const engine::LimitKey& key) { return key.name_hash.load() > engine::kLimitGone; }

}  // namespace

std::vector<LimitInfo> Observer::limits() const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<LimitInfo> infos;
  if (store.header().limiting.load() == 0) return infos;
  const Counted counted = count(store);
  for (std::uint32_t at = 0; at < store.limit_keys(); ++at)
    if (stands(store.limit_key(at)) && !engine::limit_name(store, at).starts_with('\x01'))
      infos.push_back(describe(store, at, counted));
  std::ranges::sort(infos, {}, &LimitInfo::key);
  return infos;
}

Result<LimitInfo> Observer::limit(std::string_view key) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t at = engine::find_limit(store, key);
  if (at != engine::kNoIndex && stands(store.limit_key(at)))
    return describe(store, at, count(store));
  return Error{Code::kNotFound,
               "there is no limit with the key '" + std::string(key) + "'",
               "key",
               0,
               0,
               ""};
}

}  // namespace ojs_shm
