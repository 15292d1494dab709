// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "engine/tables/layout.hpp"

namespace ojs_shm::engine {

/// Asks for the memory of a job that will soon be read and written: to take it the lines of a
/// short one, to fill it all.
template <unsigned kLines>
OJS_SHM_INLINE void prefetch(const JobRecord& job) {
  static_assert(kLines * 64 <= sizeof job);
  const auto* line = reinterpret_cast<const std::byte*>(&job);
#pragma GCC unroll 8
  for (unsigned i = 0; i < kLines; ++i) shm::prefetch_for_write(line + std::size_t{i} * 64);
}
constexpr unsigned kLinesTaken = 4, kLinesFilled = 5;

}  // namespace ojs_shm::engine
