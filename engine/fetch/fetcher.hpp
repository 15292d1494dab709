// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/straight/straight_way.hpp"
#include "engine/tables/fetched.hpp"

namespace ojs_shm::engine {

/// Takes a job out of a queue, or out of the queues of a pool: the straight way where that is open,
/// else in the order that its options ask for (fetch.cpp).
class Fetcher : protected StraightAck {
 protected:
  Fetcher(Store& store, std::uint32_t lane) : StraightAck(store, lane) {}
  ~Fetcher() override = default;

  Outcome fetch(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// From the queue of its pool whose turn it is.
  Outcome fetch_from_pool(std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// kLost: the job has changed since it was seen.
  Outcome fetch_seen(std::uint32_t queue, std::uint32_t slot, Control available,
                     std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  PoolWorker& pool_worker() { return pool_worker_; }  ///< for whom it takes

 private:
  Outcome fetch_in_order(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                         Fetched& job);
};

}  // namespace ojs_shm::engine
