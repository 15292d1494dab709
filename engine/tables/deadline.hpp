// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ojs_shm::engine {

/// 63..20 Unix ms  19..0 low bits of the tag under which the job is active. 0 ms: the lease was
/// declared over.
struct Deadline {
  std::uint64_t word = 0;
  constexpr Deadline(std::uint64_t w) : word(w) {}
  constexpr Deadline(std::uint64_t ms, std::uint64_t tag) : word(ms << 20 | (tag & 0xF'FFFF)) {}
  constexpr std::uint64_t ms() const { return word >> 20; }
  constexpr bool belongs_to(std::uint64_t tag) const {
    return (word & 0xF'FFFF) == (tag & 0xF'FFFF);
  }
};

}  // namespace ojs_shm::engine
