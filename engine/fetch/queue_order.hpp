// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

struct NewJob;
enum class Outcome : std::uint8_t;

/// The order within a queue, as a lane sets it: ageing, weights of levels, parts.
class QueueOrder {
 public:
  QueueOrder(const Store& store, std::uint32_t lane) : store_(store), lane_(lane) {}

  void set_aging(std::uint32_t queue, Aging aging);
  /// Of all queues that have no ageing of their own, now and later.
  void set_default_aging(Aging aging);
  /// Of a queue that is new.
  void follow_aging(QueueRecord& queue);

  struct LevelWeight {
    std::uint16_t level;  ///< a rank, or Turn::kOthers
    std::uint32_t weight;
  };
  /// Empty: strict again. kTooLarge when a cycle has more than Turn::kMostTurns turns.
  Outcome set_level_weights(std::uint32_t queue, std::span<const LevelWeight> weights);

  Outcome set_shards(std::uint32_t queue, std::uint32_t shards);
  /// Where a new job stands: in this lane's shard, or with the jobs of its rate.
  Outcome choose_part(const NewJob& spec, QueueRecord& queue, unsigned& part);
  /// The number of the part's rings, made if need be; kNoIndex when all are taken.
  std::uint32_t ensure_part(std::uint32_t queue, unsigned part);

 private:
  Outcome open_part(std::uint32_t queue, unsigned part);
  /// Whether ensure_part() would succeed for all parts of the queue below `end`, if none were taken
  /// meanwhile.
  bool has_sets_for(std::uint32_t queue, unsigned end) const;

  const Store& store_;
  std::uint32_t lane_;
};

}  // namespace ojs_shm::engine
