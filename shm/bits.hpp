// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ojs_shm::shm {

/// Bits Low..Low+Width-1 of a 64-bit word.
template <unsigned Low, unsigned Width>
struct Field {
  static_assert(Width >= 1 && Low + Width <= 64);
  static constexpr std::uint64_t kMax = Width == 64 ? ~0ULL : (1ULL << Width) - 1;
  static constexpr std::uint64_t get(std::uint64_t word) { return (word >> Low) & kMax; }
  static constexpr std::uint64_t put(std::uint64_t value) { return (value & kMax) << Low; }
  static constexpr std::uint64_t with(std::uint64_t word, std::uint64_t value) {
    return (word & ~(kMax << Low)) | put(value);
  }
};

constexpr std::uint32_t kNoIndex = 0xFFFF'FFFFU;

}  // namespace ojs_shm::shm
