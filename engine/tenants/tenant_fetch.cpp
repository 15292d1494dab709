// SPDX-License-Identifier: Apache-2.0
#include "engine/tenants/tenant_fetch.hpp"

#include <algorithm>
#include <tuple>

#include "engine/limits/limits.hpp"
#include "engine/tables/patience.hpp"

namespace ojs_shm::engine {

namespace {
constexpr std::size_t kMostOfALook = 4096;
}

TenantFetch::TenantFetch(Actor& actor, Store& store, std::uint64_t tenant, std::size_t most)
    : actor_(actor),
      store_(store),
      tenant_(tenant),
      most_(std::clamp<std::size_t>(most, 1, kMostOfALook)) {}

bool TenantFetch::Found::goes_before(const Found& other) const {
  return std::tie(standing, since, ring, id) <
         std::tie(other.standing, other.since, other.ring, other.id);
}

/// Whether the job waits for a limit, its queue's among them, that has no room: claimed, it would
/// lose its place. A limit that drops or reschedules does so when the job is claimed.
bool TenantFetch::held_back(std::uint32_t slot, std::uint64_t now) const {
  const LimitList keys = limits_of(store_, slot, store_.job(slot), false);
  return std::any_of(keys.key.begin(), keys.key.begin() + keys.count, [&](std::uint32_t at) {
    const LimitKey& key = store_.limit_keys[at];
    return on_limit_of(key.config.load()) == OnLimit::kWait && !may_begin(store_, key, now);
  });
}

/// The best available jobs of the tenant that may begin, as they were found. What a limit holds
/// back stands in no line.
TenantFetch::Line TenantFetch::look(std::uint32_t q) const {
  const QueueRecord& queue = store_.queue(q);
  const Aging aging = store_.aging(queue);
  const bool sharded = (queue.flags.load() & kSharded) != 0;
  const std::uint64_t now = store_.now_ms();
  const bool limiting = store_.header().limiting.load() != 0;
  const auto before = [](const Found& a, const Found& b) { return a.goes_before(b); };
  Line line{.jobs = {}, .was_whole = true};
  for (std::uint32_t i = 0; i < store_.slots(); ++i) {
    const JobRecord& job = store_.job(i);
    const Control control(job.control.load());
    if (control.state() != kSlotAvailable || job.queue.get() != q || job.tenant.get() != tenant_ ||
        store_.parked(job) || (limiting && held_back(i, now)))
      continue;
    const std::uint64_t since = job.available_at.get();
    const std::uint8_t rate = Store::age_rate(queue, sharded ? 0 : job.flags().part(), aging);
    const std::int64_t standing =
        aging.enabled()
            ? aging.effective(rank_of_ring(control.ring()), now > since ? now - since : 0, rate)
            : std::int64_t{control.ring()};
    const Found here{standing, since, control.ring(), job.id(), i, control};
    if (line.jobs.size() == most_) {  // the last of a heap's order is its front
      line.was_whole = false;
      if (!before(here, line.jobs.front())) continue;
      std::ranges::pop_heap(line.jobs, before);
      line.jobs.pop_back();
    }
    line.jobs.push_back(here);
    std::ranges::push_heap(line.jobs, before);
  }
  std::ranges::sort(line.jobs, [&](const Found& a, const Found& b) { return before(b, a); });
  return line;
}

Outcome TenantFetch::fetch(std::uint32_t q, std::uint32_t lease_ms, bool lease_owned,
                           Fetched& out) {
  QueueRecord& queue = store_.queue(q);
  const auto [place, anew] = lines_.try_emplace(q);
  Line& line = place->second;
  bool lost = anew;  // what there was: then it looks, although the last look found all
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    if (actor_.shut(queue, queue.flags.load())) break;
    if (line.jobs.empty() && (lost || !line.was_whole)) line = look(q), lost = false;
    if (line.jobs.empty()) break;
    const Found best = line.jobs.back();
    line.jobs.pop_back();
    const Outcome outcome =
        actor_.fetch_seen(q, best.slot, best.control, lease_ms, lease_owned, out);
    if (outcome != Outcome::kLost) return outcome;
    lost = true;
  }
  actor_.found_nothing(queue, q);
  return Outcome::kEmpty;
}

}  // namespace ojs_shm::engine
