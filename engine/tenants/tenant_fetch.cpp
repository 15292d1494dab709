// SPDX-License-Identifier: Apache-2.0
#include "engine/tenants/tenant_fetch.hpp"

#include <tuple>

#include "engine/tables/patience.hpp"

namespace ojs_shm::engine {

/// The best available job of the tenant, as it was found. What a limit holds back stands in no line.
bool TenantFetch::find(std::uint32_t q, std::uint64_t tenant, std::uint32_t& slot,
                       Control& found) const {
  const QueueRecord& queue = store.queue(q);
  const Aging aging = store.aging(queue);
  const bool sharded = (queue.flags.load() & kSharded) != 0;
  const std::uint64_t now = store.now_ms();
  slot = kNoIndex;
  std::tuple<std::int64_t, std::uint64_t, unsigned, JobId> best;
  for (std::uint32_t i = 0; i < store.slots(); ++i) {
    const JobRecord& job = store.job(i);
    const Control control(job.control.load());
    if (control.state() != kSlotAvailable || job.queue.get() != q || job.tenant.get() != tenant ||
        store.parked(job))
      continue;
    const std::uint64_t since = job.available_at.get();
    const std::uint8_t rate = Store::age_rate(queue, sharded ? 0 : job.flags().part(), aging);
    const std::int64_t standing =
        aging.enabled()
            ? aging.effective(rank_of_ring(control.ring()), now > since ? now - since : 0, rate)
            : std::int64_t{control.ring()};
    const std::tuple here(standing, since, control.ring(), job.id());
    if (slot != kNoIndex && !(here < best)) continue;
    slot = i, found = control, best = here;
  }
  return slot != kNoIndex;
}

Outcome TenantFetch::fetch(std::uint32_t q, std::uint64_t tenant, std::uint32_t lease_ms,
                           bool lease_owned, Fetched& out) {
  QueueRecord& queue = store.queue(q);
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    std::uint32_t slot = kNoIndex;
    Control available;
    if (actor.shut(queue, queue.flags.load()) || !find(q, tenant, slot, available)) break;
    const Outcome outcome = actor.fetch_seen(q, slot, available, lease_ms, lease_owned, out);
    if (outcome != Outcome::kLost) return outcome;
  }
  actor.found_nothing(queue, q);
  return Outcome::kEmpty;
}

}  // namespace ojs_shm::engine
