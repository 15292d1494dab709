// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/type_ranks.hpp"

#include "shm/points.hpp"

namespace ojs_shm::engine {

using shm::Point;

std::optional<std::uint8_t> type_rank(const Store& store, std::string_view type) {
  const std::uint64_t hash = Store::hash_name(type);
  for (std::uint32_t i = 0; i < kTypeDefaults; ++i) {
    const std::uint64_t found = store.type_defaults[i].hash.load();
    if (found == 0) break;
    if (found != hash) continue;
    const std::uint64_t rank = store.type_defaults[i].rank.load();
    return rank == 0 || rank > 256 ? std::nullopt
                                   : std::optional(static_cast<std::uint8_t>(rank - 1));
  }
  return std::nullopt;
}

bool set_type_rank(const Store& store, std::uint64_t hash, std::optional<std::uint8_t> rank) {
  for (std::uint32_t i = 0; i < kTypeDefaults; ++i) {
    TypeDefault& entry = store.type_defaults[i];
    std::uint64_t found = entry.hash.load();
    if (found == 0 && !rank) return true;
    if (found == 0) entry.hash.cas(found, hash, Point::kTypeNamed);
    if (found != 0 && found != hash) continue;
    entry.rank.store(rank ? std::uint64_t{*rank} + 1 : 0, Point::kTypeSet);
    return true;
  }
  return false;
}

}  // namespace ojs_shm::engine
