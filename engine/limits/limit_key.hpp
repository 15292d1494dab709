// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/limits/permits.hpp"
#include "shm/atomics.hpp"
#include "shm/layout.hpp"

// What limits keep in a segment: keys, and the lots in which jobs stand that a key holds back.
// Offsets only, no behaviour.

namespace ojs_shm::engine {

using shm::Plain;

/// What happens to a job that its limit holds back.
enum class OnLimit : std::uint8_t { kWait, kReschedule, kDrop };

/// A limit as it is set. All members at their defaults: none.
struct LimitSettings {
  std::uint32_t concurrency = PermitSet::kNone;
  std::uint32_t rate = 0, rate_period_ms = 0;  ///< 0: none
  bool sliding = false;
  std::uint32_t throttle = 0, throttle_period_ms = 0;  ///< 0: none
  std::uint32_t burst = 1;
  OnLimit on_limit = OnLimit::kWait;

  bool any() const { return concurrency != PermitSet::kNone || rate != 0 || throttle != 0; }
  bool operator==(const LimitSettings&) const = default;
};

/// 63 sliding  62..32 most  31..0 period in ms. 0: no window
struct WindowRule {
  std::uint64_t word = 0;
  constexpr explicit WindowRule(std::uint64_t w) : word(w) {}
  constexpr WindowRule(bool sliding, std::uint32_t most, std::uint32_t period_ms)
      : word(most == 0 ? 0
                       : std::uint64_t{sliding} << 63 | std::uint64_t{most & 0x7FFF'FFFF} << 32 |
                             period_ms) {}
  constexpr bool sliding() const { return word >> 63 != 0; }
  constexpr std::uint32_t most() const {
    return static_cast<std::uint32_t>(word >> 32 & 0x7FFF'FFFF);
  }
  constexpr std::uint64_t period_ms() const {
    return std::max<std::uint64_t>(word & 0xFFFF'FFFF, 1);
  }
};
constexpr std::uint32_t kMostInFixedWindow = (1U << 28) - 1, kMostInSlidingWindow = kMostPermits;

/// 63..48 burst  47..32 most  31..0 period in ms. 0: no throttle
struct ThrottleRule {
  std::uint64_t word = 0;
  constexpr explicit ThrottleRule(std::uint64_t w) : word(w) {}
  constexpr ThrottleRule(std::uint32_t most, std::uint32_t period_ms, std::uint32_t burst)
      : word(most == 0 ? 0
                       : std::uint64_t{std::clamp(burst, 1U, 0xFFFFU)} << 48 |
                             std::uint64_t{most & 0xFFFF} << 32 | period_ms) {}
  constexpr std::uint32_t most() const { return static_cast<std::uint32_t>(word >> 32 & 0xFFFF); }
  constexpr std::uint32_t period_ms() const { return static_cast<std::uint32_t>(word); }
  constexpr std::uint32_t burst() const { return static_cast<std::uint32_t>(word >> 48); }
  constexpr std::uint64_t interval_us() const {
    return std::max<std::uint64_t>(most() == 0 ? 0 : std::uint64_t{period_ms()} * 1000 / most(), 1);
  }
};
constexpr std::uint32_t kMostThrottle = 0xFFFF;

/// config: 63..32 version, moves with every change of the settings
/// 6, 5 it stands on a tenant, a type, for ever  4..3 OnLimit
/// 2 set by an operator, so jobs do not change it
constexpr std::uint64_t kLimitOfTenant = 64, kLimitOfType = 32, kLimitSetByOperator = 4,
                        kLimitVersion = 1ULL << 32;
constexpr OnLimit on_limit_of(std::uint64_t config) {
  return static_cast<OnLimit>(
      std::min<std::uint64_t>(config >> 3 & 3, static_cast<unsigned>(OnLimit::kDrop)));
}

constexpr std::size_t kMaxLimitName = 256;
constexpr unsigned kLotsPerKey = 8;  ///< queues in which a key can hold jobs back at once

/// The hash of a key that was given up: those behind it in its row are still found.
constexpr std::uint64_t kLimitGone = 1;

/// A key. All zero: no key. The name is written first and the hash last, by the holder of
/// EngineHeader::limit_settler, which also gives it up (limit_sweep.cpp).
struct alignas(128) LimitKey {
  Word name_hash;  ///< PAIR limit-name. kLimitGone: given up
  Half name_length;
  /// When what an operator set is taken back, Unix s; 0: never. Written by limit_settler before the
  /// settings; a crash leaves it as it is.
  Half ends_at;
  Word config;
  Word rate;                         ///< WindowRule
  Word throttle;                     ///< ThrottleRule
  Word exceeded, released, dropped;  ///< rare, so shared
  alignas(64) Word window;           ///< fixed: 63..28 which window  27..0 begun in it
  Word begun;                        ///< sliding: how many have begun since the segment was made
  Word next_us;                      ///< throttle: when the next would begin at an even pace
  Half lot[kLotsPerKey];             ///< plus one, 0: none. PAIR lot-name
  /// Until then no job of the key begins, Unix ms; 0: it is open. Raised by the lane that ends an
  /// attempt, zeroed by limit_settler; read with the windows. A crash leaves it as it is.
  Word closed_until;
  PermitSet permits;
  PermitSet log;  ///< sliding: when the last ones began
  std::uint64_t name[kMaxLimitName / 8];
};
static_assert(sizeof(LimitKey) == 512);

/// The owner of a lot whose key was given up. Its rings stay.
constexpr std::uint64_t kLotGone = 0xFFFF'FFFF;

/// Where jobs of one queue stand that one key holds back. Given to them for as long as there is the
/// key.
struct alignas(128) ParkingLot {
  Word owner;  ///< 63..32 key  31..0 queue, both plus one; 0: free, kLotGone: given up
  shm::RingSet rings;
  static constexpr std::uint64_t owner_of(std::uint32_t key, std::uint32_t queue) {
    return (key + 1ULL) << 32 | (queue + 1ULL);
  }
  std::uint32_t key() const { return static_cast<std::uint32_t>(owner.load() >> 32) - 1; }
  std::uint32_t queue() const { return static_cast<std::uint32_t>(owner.load()) - 1; }
};

/// How many keys and lots go with so many slots.
constexpr std::uint32_t limit_keys_for(std::uint32_t slots) {
  return std::clamp(slots / 100, 16U, 4096U);
}
constexpr std::uint32_t lots_for(std::uint32_t slots) { return std::clamp(slots / 400, 4U, 1024U); }

/// JobRecord::limits: 15..0 the job's own key plus one
/// 31..16 while it waits: its lot plus one, while it is held: the key of the worker that took it
/// plus one.
constexpr std::uint32_t own_limit(std::uint32_t limits) { return (limits & 0xFFFF) - 1; }
constexpr std::uint32_t second_limit(std::uint32_t limits) { return (limits >> 16) - 1; }
constexpr std::uint32_t with_second(std::uint32_t limits, std::uint32_t second) {
  return (limits & 0xFFFF) | (second + 1) << 16;
}

/// EngineHeader::limiting: which kinds of limit there are. Nothing of limits runs while it is 0.
constexpr std::uint64_t kLimitsJobs = 1, kLimitsTypes = 2, kLimitsQueues = 4, kLimitsWorkers = 8,
                        kLimitsTenants = 16;

}  // namespace ojs_shm::engine
