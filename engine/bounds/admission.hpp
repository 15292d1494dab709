// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/bounds/accounts.hpp"
#include "shm/control.hpp"

// What an enqueue into a bounded queue has in hand.

namespace ojs_shm::engine {

/// A bound that has no room: whose, and what is in there.
struct Full {
  Bounds bounds;
  std::uint64_t used = 0, cost = 0;
  const TenantCharge* tenant = nullptr;  ///< null: the queue's
  /// charge of all that is refused with it, when that is more than `cost`
  std::uint64_t refused = 0;
};

/// A waiting job that one of the new ones replaces: it makes room, and is no victim.
struct Leaver {
  std::uint32_t slot = 0;
  std::uint64_t tenant = 0;
  std::uint64_t cost = 0;
  bool counts = false;  ///< in its tenant's account
};

/// A waiting job that goes for new ones.
struct Victim {
  std::uint32_t slot = 0;
  shm::Control held;
  std::uint64_t cost = 0;
};

}  // namespace ojs_shm::engine
