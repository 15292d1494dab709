// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tables/hint_lives.hpp"
#include "engine/tables/store.hpp"

// Which rings there are.

namespace ojs_shm::engine {

/// A set of rings of a queue; lots are numbered from kParts.
struct QueuePart {
  std::uint32_t queue = 0;
  unsigned number = 0;
  shm::RingSet* rings = nullptr;
};
std::vector<QueuePart> all_parts(const Store& store);
std::vector<shm::RingSet*> ring_sets(const Store& store);
/// Of parts beyond the first.
std::uint32_t parts_in_use(const Store& store);
/// The rings of timers, of finished batches, and of producers that wait for room.
std::vector<std::uint32_t> own_rings(const Store& store);
/// All rings that stand in no set: these, and those of flows.
std::vector<std::uint32_t> root_rings(const Store& store);
/// Calls `visit(flow, ring)` for each flow that has a ring.
template <class Visit>
void each_flow(const Store& store, const Visit& visit) {
  for (std::uint32_t i = 0; i < store.flows.size(); ++i)
    if (const std::uint32_t ring = store.flows[i].ring.load(); ring != 0) visit(i, ring - 1);
}

/// The rings in which dead hints pile up behind a live one. `visit` gets each with what tells its
/// dead from its live.
template <class Visit>
void each_ring_of_hints(const Store& store, const Visit& visit) {
  for (const shm::RingSet* set : ring_sets(store))
    for (unsigned n = 0; n < shm::kRingsPerSet; ++n)
      if (const std::uint32_t ring = shm::Rings::find(*set, n); ring != kNoIndex)
        visit(ring, any_lives);
  each_flow(store, [&visit](std::uint32_t, std::uint32_t ring) { visit(ring, any_lives); });
  for (std::uint32_t q = 0; q < store.queue_count(); ++q) {
    if (const std::uint32_t ring = store.queue(q).room_ring.load(); ring != 0)
      visit(ring - 1, ticket_lives);
    if (const std::uint32_t ring = store.queue(q).tenants_ring.load(); ring != 0)
      visit(ring - 1, any_lives);
  }
}

}  // namespace ojs_shm::engine
