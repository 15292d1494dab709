// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// What a pool shall be. Everything is already validated, but for what others may change meanwhile.
struct PoolSpec {
  PoolStrategy strategy = PoolStrategy::kRoundRobin;
  std::vector<std::uint32_t> queues{};   ///< numbers, in order
  std::vector<std::uint32_t> weights{};  ///< of kWeighted: one for each queue
  std::uint64_t concurrency = 0;         ///< 0: unlimited
  bool isolated = false, prevents = false;
  std::uint64_t interval_ms = 30'000;
  double ratio = 0.05;
};

/// Available jobs of a queue become what its backlog says.
void recount_backlog(const Store& store, std::uint32_t queue);

/// Makes, changes and removes pools, one lane at a time.
class Pools {
 public:
  explicit Pools(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// Makes or changes the pool. Its next fetch follows it, over the whole backlog.
  Outcome define(std::string_view name, const PoolSpec& spec, bool& made);
  Outcome remove(std::string_view name);
  /// After a death: ends the change that the dead lane was at, if it was.
  void end_change();

 private:
  void settle();
  void follow();
  Seat<Word> seat() const { return settler(store_.header().pools_settler, actor_.lane()); }

  Actor& actor_;
  Store& store_;
};

}  // namespace ojs_shm::engine
