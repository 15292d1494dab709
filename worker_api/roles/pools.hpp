// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/result.hpp>

#include "engine/tables/store.hpp"

namespace ojs_shm::internal {

/// What a segment can run out of.
enum class Pool : std::uint8_t {
  kSlots,
  kBlocks,
  kChunks,
  kLevels,
  kQueues,
  kParts,
  kIds,
  kHandles,
  kProcesses
};
inline constexpr unsigned kPools = 9;

/// What is taken of it right now, counted one by one, and what to set for more.
PoolInfo pool_info(engine::Store& store, Pool pool);
/// Nothing more, or not enough, could be taken from it.
Error exhausted(engine::Store& store, Pool pool);
/// The lanes that handles get; the rest are kept for supervision.
std::uint32_t lanes_for_handles(const engine::Store& store);

}  // namespace ojs_shm::internal
