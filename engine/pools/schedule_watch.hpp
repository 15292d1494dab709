// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/actor.hpp"
#include "engine/pools/pool_look.hpp"

namespace ojs_shm::engine {

/// What a supervisor notes about the queues once a second: how much they have handed out, which
/// starve, and which pool has more than it can do. Acts on nothing. One thread.
class ScheduleWatch {
 public:
  explicit ScheduleWatch(Actor& actor) : actor_(actor), store_(actor.store()) {}
  /// Returns when it wants to be called again.
  std::uint64_t look(std::uint64_t now);

 private:
  struct Seen {
    std::uint64_t dispatched = ~0ULL;
    std::uint64_t since_ms = 0;  ///< no job has waited in vain for longer
  };
  void take_sample(std::uint64_t now);
  void watch_queue(std::uint32_t queue, std::uint64_t now);
  void watch_pool(std::uint32_t pool, const PoolPlan& plan);
  bool has_permit(std::uint32_t pool) const;
  void note_overload(std::uint32_t pool, const PoolLoad* load);

  Actor& actor_;
  Store& store_;
  std::uint64_t looked_ms_ = 0;
  std::vector<Dispatched> so_far_;
  std::vector<Seen> seen_;
  std::vector<std::uint64_t> interval_ms_;  ///< by queue: after which it starves
};

}  // namespace ojs_shm::engine
