// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ojs_shm::engine {

/// QueueRecord::refill, AccountRecord::refill: deaths after which `reserved` may be too high, and
/// how many of them have been accounted for since. A word never comes back, so a count that began
/// before another death can't end in its name.
///   63..32 deaths that are accounted for  31..0 deaths
struct Refill {
  std::uint64_t word = 0;
  constexpr explicit Refill(std::uint64_t w) : word(w) {}
  constexpr bool pending() const { return word >> 32 != (word & 0xFFFF'FFFF); }
  constexpr Refill settled() const {
    return Refill((word & 0xFFFF'FFFF) << 32 | (word & 0xFFFF'FFFF));
  }
};

}  // namespace ojs_shm::engine
