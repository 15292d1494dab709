// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "shm/bits.hpp"

namespace ojs_shm::engine {

/// How a waiting job's effective rank improves, in one word, so that it changes at once:
///
///     effective = rank - rate * floor(age / interval), but no better than `best`
///
/// and a job that is better than `best` by itself stays as it is. Age runs from the time at which
/// the job became available. The stored rank never changes. Source: OJS Job Priority 8.2, its
/// summary (no `best`), qo (`best` is its cap). Requirements C10.
///
///   63 set  62 enabled  56 preset  55..40 best + 32,768 (0: none)  39..32 rate
///   31..0 interval in ms
struct Aging {
  std::uint64_t word = 0;

  using Interval = shm::Field<0, 32>;
  using Rate = shm::Field<32, 8>;
  using Best = shm::Field<40, 16>;
  using IsQo = shm::Field<56, 1>;
  using Enabled = shm::Field<62, 1>;
  using Set = shm::Field<63, 1>;
  static constexpr int kNoBest = -32'768;

  constexpr explicit Aging(std::uint64_t w = 0) : word(w) {}
  constexpr Aging(bool enabled, bool qo, std::uint32_t interval_ms, std::uint8_t rate, int best)
      : word(Set::put(1) | Enabled::put(enabled ? 1 : 0) | IsQo::put(qo ? 1 : 0) |
             Interval::put(interval_ms) | Rate::put(rate) |
             Best::put(static_cast<std::uint64_t>(std::clamp(best, kNoBest, 32'767) - kNoBest))) {}

  constexpr bool set() const {
    return Set::get(word) != 0;
  }  ///< false: the queue follows the segment
  constexpr bool enabled() const { return Enabled::get(word) != 0 && interval_ms() != 0; }
  constexpr bool qo() const { return IsQo::get(word) != 0; }
  constexpr std::uint32_t interval_ms() const {
    return static_cast<std::uint32_t>(Interval::get(word));
  }
  constexpr std::uint8_t rate() const { return static_cast<std::uint8_t>(Rate::get(word)); }
  constexpr int best() const { return static_cast<int>(Best::get(word)) + kNoBest; }

  /// The rank under which a job of `rank` competes after waiting for `age_ms`; below 0 is possible.
  constexpr std::int64_t effective(std::uint8_t rank, std::uint64_t age_ms,
                                   std::uint8_t at_rate) const {
    const std::uint32_t interval = std::max<std::uint32_t>(interval_ms(), 1);
    if (age_ms < interval) return rank;
    // Half as wide a division takes half the time.
    const std::uint64_t intervals =
        age_ms <= 0xFFFF'FFFF ? static_cast<std::uint32_t>(age_ms) / interval : age_ms / interval;
    return std::max<std::int64_t>(rank - static_cast<std::int64_t>(intervals) * at_rate,
                                  std::min<std::int64_t>(rank, best()));
  }
};

}  // namespace ojs_shm::engine
