// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "engine/layout.hpp"

namespace ojs_shm::engine {

/// Asks for the memory of a job that will soon be read and written.
OJS_SHM_INLINE void prefetch(const JobRecord& job) {
  const auto* line = reinterpret_cast<const std::byte*>(&job);
  static_assert(sizeof job == 5 * 64);
  shm::prefetch_for_write(line), shm::prefetch_for_write(line + 64), shm::prefetch_for_write(line + 128),
      shm::prefetch_for_write(line + 192), shm::prefetch_for_write(line + 256);
}

}  // namespace ojs_shm::engine
