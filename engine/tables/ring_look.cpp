// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/ring_look.hpp"

namespace ojs_shm::engine {

std::uint32_t parts_in_use(const Store& store) {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < store.part_rings.size(); ++i)
    n += store.part_rings[i].owner.load() != 0 ? 1 : 0;
  return n;
}

std::vector<std::uint32_t> own_rings(const Store& store) {
  std::vector<std::uint32_t> roots = {store.header().timers_ring, store.header().finished_ring};
  for (std::uint32_t q = 0; q < store.max_queues() && store.queue(q).name_hash.load() != 0; ++q)
    for (const Half* ring : {&store.queue(q).room_ring, &store.queue(q).tenants_ring})
      if (const std::uint32_t named = ring->load(); named != 0) roots.push_back(named - 1);
  return roots;
}

std::vector<std::uint32_t> root_rings(const Store& store) {
  std::vector<std::uint32_t> roots = own_rings(store);
  each_flow(store, [&roots](std::uint32_t, std::uint32_t ring) { roots.push_back(ring); });
  return roots;
}

std::vector<QueuePart> all_parts(const Store& store) {
  std::vector<QueuePart> parts;
  for (std::uint32_t q = 0; q < store.max_queues() && store.queue(q).name_hash.load() != 0; ++q) {
    parts.push_back({q, 0, &store.queue(q).rings});
    if ((store.queue(q).flags.load() & kParted) == 0) continue;
    for (unsigned part = 1; part < kParts; ++part)
      if (shm::RingSet& rings = store.rings_of(q, part); &rings != &store.queue(q).rings)
        parts.push_back({q, part, &rings});
  }
  for (std::uint32_t lot = 0; lot < store.lots.size() && store.lots[lot].owner.load() != 0; ++lot)
    parts.push_back({store.lots[lot].queue(), kParts + lot, &store.lots[lot].rings});
  return parts;
}

std::vector<shm::RingSet*> ring_sets(const Store& store) {
  std::vector<shm::RingSet*> sets;
  for (const QueuePart& part : all_parts(store)) sets.push_back(part.rings);
  return sets;
}

}  // namespace ojs_shm::engine
