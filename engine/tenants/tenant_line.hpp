// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/tenants/flow_line.hpp"

namespace ojs_shm::engine {

inline std::uint64_t key_of_turn(std::uint32_t queue, std::uint64_t tenant) {
  return mix_key(place_of_flows(queue, 0, kNoLevel), tenant);
}

/// The line of the tenants that share a queue across its levels (tenant_turns.hpp).
struct TenantLine {
  shm::Rings& rings;
  Store& store;

  FlowLine of(const QueueRecord& queue) const;
  /// After a job of the tenant has come into a flow.
  void list(std::uint32_t queue, std::uint64_t tenant);
  /// Puts every tenant that has jobs in flows, or one at the head of a front, in line.
  void gather(std::uint32_t queue);
};

}  // namespace ojs_shm::engine
