// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/rules/spread.hpp"
#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// What one walk over all slots tells of each queue, tenant, lane, pool and limit. What is in a
/// lane's hands for a moment is counted as what it was before.
struct Census {
  /// Times of jobs that ended in this time before `now_ms` and whose slots are not used again yet.
  static constexpr std::uint64_t kWindowMs = 60'000;
  static constexpr std::uint64_t kNever = ~0ULL;

  struct Queue {
    std::array<std::uint64_t, 8> by_state{};     ///< indexed by JobState
    std::array<std::uint32_t, 256> available{};  ///< by rank
    std::uint64_t dead_letters = 0, oldest_available_at = kNever;
    Spread waited, ran;
  };
  /// The jobs of one tenant in one queue.
  struct Tenant {
    std::uint64_t tenant = 0;  ///< hash_tenant()
    std::uint32_t queue = 0;
    std::uint32_t slot = 0;  ///< of one of its jobs, where its name can be read
    std::uint64_t depth = 0, available = 0, active = 0, begun = 0;  ///< begun: within the window
    std::uint64_t oldest_available_at = kNever;
  };
  struct Lane {
    std::uint64_t active = 0, oldest_started_at = kNever, last_sign = 0;
    std::uint32_t oldest_slot = kNoIndex;
    std::vector<std::uint32_t> queues;  ///< of the jobs that it holds, each once
  };
  struct Limit {
    std::uint32_t active = 0, waiting = 0;
  };

  std::uint64_t now_ms = 0;
  std::uint64_t overdue_ms = 0;  ///< how late the timer is that should have fired first
  std::vector<Queue> queues;
  std::vector<Tenant> tenants;
  std::vector<Lane> lanes;
  std::vector<std::uint64_t> active_by_pool;
  std::vector<Limit> limits;
};

Census take_census(const Store& store);

/// The latest time that a job or the supervisor left in the segment: when a copy of a segment was
/// last alive. 0: there is none.
std::uint64_t last_trace_ms(const Store& store);

}  // namespace ojs_shm::engine
