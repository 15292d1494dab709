// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// Fetches the best jobs of one tenant, whatever stands before them. It looks at every slot, some
/// nanoseconds each, so it is for clients that may see one tenant alone; one look at a queue is for
/// as many jobs as are asked for. The order is that of an ordinary fetch, but that weights of
/// levels do not count: best level first, ageing where the queue ages, then by time, of one
/// millisecond by id. Turns of
/// tenants neither count nor move.
class TenantFetch {
 public:
  /// `most`: how many jobs are wanted of it in all; beyond 4,096 it looks again.
  TenantFetch(Actor& actor, Store& store, std::uint64_t tenant, std::size_t most = 1);

  Outcome fetch(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned, Fetched& out);

 private:
  struct Found {
    std::int64_t standing;
    std::uint64_t since;
    unsigned ring;
    JobId id;
    std::uint32_t slot;
    Control control;
    bool goes_before(const Found& other) const;
  };
  struct Line {
    std::vector<Found> jobs = {};  ///< the best is the last
    bool was_whole = false;        ///< the look found no more than these
  };
  Line look(std::uint32_t queue) const;
  bool held_back(std::uint32_t slot, std::uint64_t now) const;

  Actor& actor_;
  Store& store_;
  std::uint64_t tenant_;
  std::size_t most_;
  std::map<std::uint32_t, Line> lines_;  ///< by queue
};

}  // namespace ojs_shm::engine
