// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/supervisor.hpp"

#include <algorithm>

#include "engine/limits/limit_setter.hpp"
#include "engine/tenants/tenant_turns.hpp"

namespace ojs_shm::engine {
namespace {
constexpr std::uint64_t kLongestSleepMs = 60'000, kTurnsLookMs = 1'000;
}  // namespace

/// Puts tenants back in line whose turn in their queue was lost by a death.
std::uint64_t Supervisor::look_at_turns(std::uint64_t now) {
  Store& store = actor_.store();
  const bool due = next_turns_ <= now;
  if (due) next_turns_ = now + kTurnsLookMs;
  std::uint64_t next = now + kLongestSleepMs;
  for (std::uint32_t q = 0; q < store.queue_count(); ++q) {
    if ((store.queue(q).flags.load() & kAcross) == 0) continue;
    next = next_turns_;
    if (due) actor_.gather_tenants(q);
  }
  return next;
}

/// The clock was set back: what was to be looked at later is looked at now.
void Supervisor::look_anew() {
  leases_.look_anew();
  next_retention_ = next_turns_ = next_workers_ = 0;
  dead_letters_.look_anew();
  ended_jobs_.look_anew();
}

std::uint64_t Supervisor::tick(std::uint64_t now, Report& report) {
  Store& store = actor_.store();
  if (now < last_tick_) look_anew();
  last_tick_ = now;
  std::uint64_t next = std::min(now + kLongestSleepMs, timers_.look(now, report));
  next = std::min(
      {next, leases_.look(now, report.leases_ended), std::max(actor_.tend_limits(now), now + 1)});
  next = std::min(next, look_at_turns(now));
  if (const std::uint64_t end = LimitSetter(actor_).end_overrides(now); end != 0)
    next = std::min(next, std::max(end, now + 1));
  if (next_retention_ <= now) {
    const std::uint64_t again = actor_.slots().drop_expired(now);
    next_retention_ =
        again != 0 ? again : now + std::max<std::uint64_t>(store.header().retention_ms / 4, 1000);
  }
  if (store.header().retention_ms != 0) next = std::min(next, next_retention_);
  next = std::min({next, watch_.look(now), dead_letters_.look(now), ended_jobs_.look(now)});
  if (next_workers_ <= now) next_workers_ = registry_.look(now, report.lost_workers);
  next = std::min(next, std::max(next_workers_, now + 1));
  if (const std::uint64_t again = actor_.watch_pressure(now); again != 0)
    next = std::min(next, again);
  if (const std::uint64_t again = packer_.look(now); again != 0) next = std::min(next, again);
  actor_.slots().rest();
  return next;
}

}  // namespace ojs_shm::engine
