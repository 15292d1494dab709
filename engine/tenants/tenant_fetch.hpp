// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// Fetches the best job of one tenant, whatever stands before it. It looks at every slot, some
/// nanoseconds each, so it is for clients that may see one tenant alone. The order is that of an
/// ordinary fetch, but that weights of levels do not count: best level first, ageing where the queue
/// ages, then by time. Turns of tenants neither count nor move.
struct TenantFetch {
  Actor& actor;
  Store& store;

  Outcome fetch(std::uint32_t queue, std::uint64_t tenant, std::uint32_t lease_ms, bool lease_owned,
                Fetched& out);

 private:
  bool find(std::uint32_t queue, std::uint64_t tenant, std::uint32_t& slot, Control& found) const;
};

}  // namespace ojs_shm::engine
