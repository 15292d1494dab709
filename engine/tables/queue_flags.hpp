// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/tables/layout.hpp"

namespace ojs_shm::engine {

/// Changes bits of a queue's flags, and its epoch. Returns what they were.
inline std::uint64_t set_flags(QueueRecord& queue, std::uint64_t clear, std::uint64_t set) {
  std::uint64_t flags = queue.flags.load();
  while (!queue.flags.cas(flags, ((flags & ~clear) | set) + kFlagsEpoch, shm::Point::kSetChanged)) {
  }
  return flags;
}

}  // namespace ojs_shm::engine
