// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/tables/lane_counters.hpp"
#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// What a queue does when it is full, and how full it is. Words and pure functions of numbers.
// Thread-safe.

namespace ojs_shm::engine {

/// Jobs and bytes in one number: sums and differences of charges are charges, whatever wraps.
constexpr std::uint64_t charge(std::uint64_t jobs, std::uint64_t bytes) {
  return (jobs << 40) + bytes;
}
constexpr std::uint64_t charged_bytes(std::uint64_t c) { return c & ((1ULL << 40) - 1); }
constexpr std::uint64_t charged_jobs(std::uint64_t c) { return c >> 40; }

/// What becomes of a job for which a bounded queue has no room.
enum class Strategy : std::uint8_t { kReject, kBlock, kDropOldest };

/// 1..0 strategy  2 a drop takes the lowest priority first
/// 16..3 warning threshold in 1/10,000, plus one; 0: the default
/// 30..17 threshold below which the warning ends, likewise; 0: the warning threshold.
struct Backpressure {
  std::uint64_t word = 0;
  using StrategyBits = shm::Field<0, 2>;
  using LowestBit = shm::Field<2, 1>;
  using ThresholdBits = shm::Field<3, 14>;
  using ClearBits = shm::Field<17, 14>;
  static constexpr unsigned kWhole = 10'000, kDefaultThreshold = 8'000;

  constexpr explicit Backpressure(std::uint64_t w) : word(w) {}
  constexpr Backpressure(Strategy strategy, bool lowest, unsigned threshold,
                         unsigned clear = kWhole)
      : word(StrategyBits::put(static_cast<std::uint64_t>(strategy)) |
             LowestBit::put(lowest ? 1 : 0) |
             ThresholdBits::put(threshold == kDefaultThreshold ? 0 : threshold + 1) |
             ClearBits::put(clear >= threshold ? 0 : clear + 1)) {}
  constexpr Strategy strategy() const {
    const std::uint64_t found = StrategyBits::get(word);
    return found > 2 ? Strategy::kReject : static_cast<Strategy>(found);
  }
  constexpr bool lowest_first() const { return LowestBit::get(word) != 0; }
  constexpr unsigned threshold() const {
    const auto found = static_cast<unsigned>(ThresholdBits::get(word));
    return found == 0 ? kDefaultThreshold : std::min(found - 1, kWhole);
  }
  /// Never above the warning threshold.
  constexpr unsigned clear_threshold() const {
    const auto found = static_cast<unsigned>(ClearBits::get(word));
    return found == 0 ? threshold() : std::min(found - 1, threshold());
  }
  bool operator==(const Backpressure&) const = default;
};

/// A queue against that of its bounds which it fills more.
struct Fullness {
  std::uint64_t depth = 0, bound = 0;  ///< bound 0: the queue has none
  bool bytes = false;

  constexpr static Fullness of(std::uint64_t used, std::uint64_t max_depth,
                               std::uint64_t max_bytes) {
    const Fullness jobs{charged_jobs(used), max_depth, false},
        size{charged_bytes(used), max_bytes, true};
    if (max_bytes == 0) return jobs;
    if (max_depth == 0) return size;
    return size.pressure() > jobs.pressure() ? size : jobs;
  }
  constexpr double pressure() const {
    return bound == 0 ? 0.0
                      : std::min(static_cast<double>(depth) / static_cast<double>(bound), 1.0);
  }
  /// Above the threshold the queue warns ...
  constexpr bool above(Backpressure policy) const {
    return bound != 0 && depth * Backpressure::kWhole > bound * policy.threshold();
  }
  /// ... and no more once it has fallen below it, or below a lower one that was set, so that a
  /// queue which sways around its threshold does not chatter. Below a threshold of 0 is empty.
  constexpr bool calm(Backpressure policy) const {
    return depth == 0 || depth * Backpressure::kWhole < bound * policy.clear_threshold();
  }
};
/// The bounds of a queue, or of a tenant in it; 0: none.
struct Bounds {
  std::uint64_t max_depth = 0, max_bytes = 0;

  constexpr bool any() const { return max_depth != 0 || max_bytes != 0; }
  /// Whether a charge stays within them, with `held` above them.
  constexpr bool fit(std::uint64_t used, std::uint64_t held = 0) const {
    return (max_depth == 0 || charged_jobs(used) <= max_depth + charged_jobs(held)) &&
           (max_bytes == 0 || charged_bytes(used) <= max_bytes + charged_bytes(held));
  }
  constexpr Fullness fullness(std::uint64_t used) const {
    return Fullness::of(used, max_depth, max_bytes);
  }
  /// The dimension that speaks is the one in which there is no room; when others come first, the
  /// fuller one.
  constexpr Fullness refusal(std::uint64_t used, std::uint64_t cost) const {
    if (max_depth != 0 && charged_jobs(used + cost) > max_depth)
      return {charged_jobs(used), max_depth, false};
    if (max_bytes != 0 && charged_bytes(used + cost) > max_bytes)
      return {charged_bytes(used), max_bytes, true};
    return fullness(used);
  }
};
static_assert(Fullness{6, 10, false}.above(Backpressure(Strategy::kReject, false, 5'000)) &&
              !Fullness{5, 10, false}.above(Backpressure(Strategy::kReject, false, 5'000)));

/// How an enqueue met its queue's bound.
struct Meeting {
  Fullness fullness;  ///< with the job when it was accepted, else without; bound 0: nothing to tell
  Strategy strategy = Strategy::kReject;
  std::uint32_t retry_after_ms = 0;  ///< of a refusal
  bool of_tenant = false;            ///< the bound is a tenant's ...
  std::uint32_t refused = 0;         ///< ... whose first job in the batch this is
};

/// Whether a waiting producer is woken: not while it rests; not when it was called already; or
/// anyway.
enum class Call : std::uint8_t { kUnlessItRests, kUnlessCalled, kAnyway };

/// 0 has warned  1 a lane may wait for room  63..8 version, moves when a lane begins to wait.
struct Attention {
  static constexpr std::uint64_t kWarned = 1, kAwaited = 2, kVersion = 1ULL << 8;
};

/// How fast jobs leave, as seen between refusals; an estimate.
struct Drain {
  shm::Word sampled_at, sampled_out;  ///< ms; charges
  shm::Word rate;                     ///< jobs in 1,000 s, plus one
};

/// Which refusals are told: each of the first 1,000 in a second, then one in 10 ms, with how many
/// it speaks for.
///   63..32 10 ms since 1970  31..20 told in that second  19..0 refused and not told
struct Refusals {
  std::uint64_t word = 0;
  using Time = shm::Field<32, 32>;
  using Told = shm::Field<20, 12>;
  using Untold = shm::Field<0, 20>;
  static constexpr std::uint64_t kEach = 1'000, kTick = 10;

  constexpr explicit Refusals(std::uint64_t w) : word(w) {}
  constexpr std::uint64_t untold() const { return Untold::get(word); }
  /// After `count` more of them, at that time. `tell`: how many are to be told now, in one event.
  constexpr Refusals after(std::uint64_t count, std::uint64_t now_ms, std::uint64_t& tell) const {
    const std::uint64_t time = now_ms / kTick & Time::kMax;
    const bool same_second = time / 100 == Time::get(word) / 100;
    const std::uint64_t told = same_second ? Told::get(word) : 0;
    const std::uint64_t all = std::min<std::uint64_t>(untold() + count, Untold::kMax);
    tell = told < kEach || time != Time::get(word) ? all : 0;
    return Refusals(Time::put(time) | Told::put(std::min(told + 1, kEach)) |
                    Untold::put(tell == 0 ? all : 0));
  }
};

/// The place of an enqueue that waits for room; the hints of a queue's room_ring lead to it, the
/// first one first.
struct RoomTicket {
  shm::Word control;   ///< TicketControl
  shm::Word until;     ///< ms of the steady clock; later, anyone may void it
  shm::Word called;    ///< 1: its owner has been woken and has not looked yet
  shm::Word entering;  ///< 1: its owner is trying, and may have charged its tenant
  /// key of the tenant for whose room it waits as well; 0: for the queue's alone
  shm::Word account;
  shm::Word cost;  ///< of what waits, in that account
  shm::Word rest;  ///< RoomRest
  std::uint64_t spare;
};
static_assert(sizeof(RoomTicket) == 64);
/// Whose owner looks by itself then, and need not be woken until so many jobs more have left: to
/// wake a waiter costs the lane that takes a job out more than all the rest.
///   63..16 ms of the steady clock  15..0 jobs
struct RoomRest {
  std::uint64_t word = 0;
  using Until = shm::Field<16, 48>;
  using Left = shm::Field<0, 16>;

  constexpr explicit RoomRest(std::uint64_t w) : word(w) {}
  /// A waiter before which so many jobs wait: a sixteenth of them may leave, so that workers never
  /// run dry meanwhile.
  constexpr RoomRest(std::uint64_t until_ms, std::uint64_t depth)
      : word(Until::put(until_ms & Until::kMax) | Left::put(std::min(depth / 16, Left::kMax))) {}
  constexpr bool over(std::uint64_t now_ms) const {
    return Left::get(word) == 0 || now_ms >= Until::get(word);
  }
  constexpr RoomRest less() const { return RoomRest(word - 1); }
};
/// 63 taken  61..50 queue  49..36 owner lane + 1  35..0 tag
struct TicketControl {
  std::uint64_t word = 0;
  using Taken = shm::Field<63, 1>;
  using QueueBits = shm::Field<50, 12>;
  using OwnerBits = shm::Field<36, 14>;
  using TagBits = shm::Field<0, 36>;

  constexpr explicit TicketControl(std::uint64_t w) : word(w) {}
  constexpr bool taken() const { return Taken::get(word) != 0; }
  constexpr std::uint32_t queue() const { return static_cast<std::uint32_t>(QueueBits::get(word)); }
  constexpr std::uint32_t owner() const { return static_cast<std::uint32_t>(OwnerBits::get(word)); }
  constexpr std::uint64_t tag() const { return TagBits::get(word); }
  constexpr bool is(std::uint64_t of_tag) const { return taken() && tag() == of_tag; }
  constexpr TicketControl take(std::uint32_t of_queue, std::uint32_t by) const {
    return TicketControl(Taken::put(1) | QueueBits::put(of_queue) | OwnerBits::put(by) |
                         ((tag() + 1) & TagBits::kMax));
  }
  constexpr TicketControl void_() const { return TicketControl((tag() + 1) & TagBits::kMax); }
};
/// How many a segment has, unless it was made for another number.
constexpr std::uint32_t room_tickets(std::uint32_t lanes) { return lanes * 8; }
/// A place in line: the ticket, and the tag under which it was taken.
struct RoomPlace {
  std::uint32_t ticket = shm::kNoIndex;
  std::uint64_t tag = 0;
  constexpr bool held() const { return ticket != shm::kNoIndex; }
};

/// What a handle knows of a bounded queue; too old, it only makes it look again.
struct DepthCache {
  std::uint64_t flags = ~0ULL;  ///< the queue's flags word when the sums were taken
  std::uint64_t in_minus_out = 0;
  std::uint64_t removals_left = 0;  ///< until the next look for calm
};

}  // namespace ojs_shm::engine
