// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/bounds/room.hpp"

namespace ojs_shm::engine {

/// Where a lane puts the jobs of tenants that share a queue: each into its tenant's flow, and the
/// flow into the line.
class Flows : protected Room {
 protected:
  Flows(Store& store, std::uint32_t lane) : Room(store, lane) {}
  ~Flows() = default;

  bool join_flow(shm::RingSet& rings, std::uint32_t ring, std::uint32_t slot,
                 Control available) final;
  /// Moves what waits as well.
  void set_fairness(std::uint32_t queue, Fairness fairness);
  /// Puts every tenant that has jobs in line, where they share across levels.
  void gather_tenants(std::uint32_t queue);

 private:
  void gather_flows(std::uint32_t queue);
  void dissolve_flows(std::uint32_t queue);
};

}  // namespace ojs_shm::engine
