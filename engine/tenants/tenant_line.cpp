// SPDX-License-Identifier: Apache-2.0
#include "engine/tenants/tenant_line.hpp"

#include "engine/tables/ring_look.hpp"

namespace ojs_shm::engine {

using shm::Point;

FlowLine TenantLine::of(const QueueRecord& queue) const {
  return {store, rings, queue.tenants_ring.load() - 1};  // PAIR ring-name
}

void TenantLine::list(std::uint32_t q, std::uint64_t tenant) {
  const std::uint64_t key = key_of_turn(q, tenant);
  const std::uint32_t ring = rings.ensure_unindexed(store.queue(q).tenants_ring);
  for (unsigned look = 0; ring != kNoIndex && look < kPatience; ++look) {
    const std::uint32_t at = take_flow(store, key);
    if (at == kNoIndex) return;
    FlowRecord& turn = store.flows[at];
    if (turn.tenant.load() != tenant) turn.tenant.store(tenant, Point::kFlowTaken);
    // Else another tenant has been given the flow before it was in line.
    const bool listed = FlowLine{store, rings, ring}.list(at, key);
    if (turn.key.load_seq_cst() == key && (!listed || turn.tenant.load() == tenant)) return;
  }
}

void TenantLine::gather(std::uint32_t q) {
  each_flow(store, [&](std::uint32_t at, std::uint32_t ring) {
    if (!FlowControl(store.flows[at].control.load()).in_line()) return;
    const shm::Peeked first = rings.peek(ring);
    if (first.empty() || first.hint().index() >= store.slots()) return;
    const JobRecord& job = store.job(first.hint().index());
    if (job.queue.get() == q) list(q, job.tenant.get());
  });
  for (const QueuePart& part : all_parts(store))
    for (unsigned number = 0; part.queue == q && number < shm::kRingsPerSet; number += 2) {
      const std::uint32_t ring = shm::Rings::find(*part.rings, number);
      const shm::Peeked first = ring == kNoIndex ? shm::Peeked() : rings.peek(ring);
      if (ring != kNoIndex && !first.empty() && first.hint().index() < store.slots())
        list(q, store.job(first.hint().index()).tenant.get());
    }
}

}  // namespace ojs_shm::engine
