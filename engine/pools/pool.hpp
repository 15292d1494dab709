// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// A pool of workers: which queues it serves, and whose turn it is among them. What decides is all
// in the segment, so shares and gaps hold over all workers of the pool together.

namespace ojs_shm::engine {

using shm::Plain;
using shm::Word;

/// How a pool chooses among its queues. Source: fair scheduling 6.1, 7.
enum class PoolStrategy : std::uint8_t {
  kStrict = 0,       ///< from left to right
  kRoundRobin = 1,   ///< one job of each queue in a cycle
  kWeighted = 2,     ///< as often in a cycle as its weight says
  kLeastLoaded = 3,  ///< the deepest backlog, for workers that are below their concurrency
};
inline constexpr std::string_view kPoolStrategies[] = {"strict", "round-robin", "weighted",
                                                       "least-loaded"};

constexpr std::uint32_t kPools = 32;
constexpr unsigned kPoolQueues = 128;  ///< of one pool
constexpr unsigned kPoolTurns = 512;   ///< of a cycle

/// 63 in use  62 bank  61 isolated  60 prevents starvation  59..58 strategy  57..50 queues
/// 49..40 turns of the cycle
/// 39..16 dispatches in which each queue has one turn that is reserved for it  15..0 version
struct PoolSetup {
  std::uint64_t word = 0;
  using Used = shm::Field<63, 1>;
  using Bank = shm::Field<62, 1>;
  using Isolated = shm::Field<61, 1>;
  using Prevents = shm::Field<60, 1>;
  using Strategy = shm::Field<58, 2>;
  using Queues = shm::Field<50, 8>;
  using Turns = shm::Field<40, 10>;
  using Round = shm::Field<16, 24>;
  using Version = shm::Field<0, 16>;

  constexpr explicit PoolSetup(std::uint64_t w) : word(w) {}
  constexpr bool used() const { return Used::get(word) != 0; }
  constexpr unsigned bank() const { return static_cast<unsigned>(Bank::get(word)); }
  constexpr bool isolated() const { return used() && Isolated::get(word) != 0; }
  constexpr bool prevents() const { return Prevents::get(word) != 0; }
  constexpr PoolStrategy strategy() const { return static_cast<PoolStrategy>(Strategy::get(word)); }
  constexpr unsigned queues() const {
    return std::min(static_cast<unsigned>(Queues::get(word)), kPoolQueues);
  }
  constexpr unsigned turns() const {
    return std::min(static_cast<unsigned>(Turns::get(word)), kPoolTurns);
  }
  constexpr std::uint32_t round() const { return static_cast<std::uint32_t>(Round::get(word)); }
};

/// Whose turn it is: 63..48 version of the setup  47..24 dispatches of the round that are over
/// 23..0 the next turn of the cycle.
struct PoolTurn {
  std::uint64_t word = 0;
  using Version = shm::Field<48, 16>;
  using Done = shm::Field<24, 24>;
  using Next = shm::Field<0, 24>;
  constexpr explicit PoolTurn(std::uint64_t w) : word(w) {}
  constexpr PoolTurn(std::uint64_t version, std::uint32_t done, std::uint32_t next)
      : word(Version::put(version) | Done::put(done) | Next::put(next)) {}
};

/// Where a worker sits: 7..0 pool + 1  39..8 jobs that it has at most, 0: it has not said
/// 40 it has as many.
struct PoolSeat {
  std::uint64_t word = 0;
  using Pool = shm::Field<0, 8>;
  using Concurrency = shm::Field<8, 32>;
  using Full = shm::Field<40, 1>;
  constexpr explicit PoolSeat(std::uint64_t w) : word(w) {}
  constexpr bool at(std::uint32_t pool) const { return Pool::get(word) == pool + 1; }
};

/// What a pool was told, as long as its setup names this bank.
// NO CRASH POINT: a bank means nothing before the setup names it
struct PoolBank {
  Plain<std::uint64_t> concurrency;  ///< active jobs of the whole pool; 0: unlimited
  Plain<std::uint64_t> interval_ms;  ///< in which a queue that has jobs must have been served
  Plain<std::uint64_t> ratio;        ///< least share of a queue, a double's bits
  std::uint64_t spare;
  Plain<std::uint64_t> queue[kPoolQueues / 4];  ///< numbers of queues in 16 bits each
  Plain<std::uint64_t> turn[kPoolTurns / 8];    ///< places in `queue` in 8 bits each
};

/// A pool. All zero is one that was never made.
struct alignas(128) PoolRecord {
  Word name_hash;    ///< 0: this and all later records are unused
  Word name_length;  ///< 0 until `name` stands there. PAIR pool-name
  Word setup;        ///< PoolSetup
  Word settler;      ///< lane + 1 of the writer of the bank that is not in use
  Word limit;        ///< of its permits, plus one; 0: none
  Word overloaded;   ///< 1 once it was told that all its workers are busy, until one is not
  Word rebalanced;   ///< changes of strategy or weights
  Word spare;
  std::uint64_t name[32];
  alignas(128) Word turn;  ///< PoolTurn: the one contended word of its fetches
  /// 63..52 queue + 1  51..0 jobs of it that this pool has handed out
  Word dispatched[kPoolQueues];
  alignas(128) PoolBank bank[2];
};

/// A pool's setup as a fetch needs it, and the choice that follows from it. Pure: no shared memory.
struct PoolPolicy {
  PoolStrategy strategy = PoolStrategy::kRoundRobin;
  unsigned queues = 0;
  std::vector<std::uint8_t> cycle;  ///< places, of the strategies that go in turns
  bool prevents = false;
  std::uint32_t round = 0;  ///< dispatches; 0: no least share

  static constexpr unsigned kNoPlace = ~0U;
  struct Choice {
    unsigned place = kNoPlace;
    std::uint32_t done = 0, next = 0;  ///< of the turn after it
  };

  /// Which of the queues gets this dispatch. `has(place)`: it may have a job. `overdue(place)`: for
  /// how long, in ms, it has been due to be served since it last was; 0: it is not.
  /// `backlog(place)`: jobs that wait there.
  /// 1. in each round of dispatches every queue has one turn of its own, and they lie apart; 2. the
  /// queue that is overdue for longest; 3. the strategy. The turn of a queue without a job goes to
  /// the next. An overdue queue that has no job after all takes no other queue's own turn.
  template <class Has, class Overdue, class Backlog>
  Choice choose(PoolTurn turn, const Has& has, const Overdue& overdue,
                const Backlog& backlog) const {
    Choice choice{kNoPlace, static_cast<std::uint32_t>(PoolTurn::Done::get(turn.word)),
                  static_cast<std::uint32_t>(PoolTurn::Next::get(turn.word))};
    if (prevents) {
      if (round != 0) {
        const std::uint32_t at = choice.done % round;
        choice.done = (at + 1) % round;
        const auto before = static_cast<unsigned>(std::uint64_t{at} * queues / round);
        const auto after = static_cast<unsigned>((std::uint64_t{at} + 1) * queues / round);
        if (after != before && has(before)) {
          choice.place = before;
          return choice;
        }
      }
      std::uint64_t longest = 0;
      for (unsigned place = 0; place < queues; ++place)
        if (const std::uint64_t due = overdue(place); due > longest && has(place))
          longest = due, choice.place = place;
      if (choice.place != kNoPlace) return choice;
    }
    switch (strategy) {
      case PoolStrategy::kStrict:
        for (unsigned place = 0; place < queues && choice.place == kNoPlace; ++place)
          if (has(place)) choice.place = place;
        break;
      case PoolStrategy::kLeastLoaded: {
        // The deepest of all that have something, and of two as deep the first; by four at a
        // time, so that no comparison waits for the one before it. Only when that one has nothing
        // after all, each is asked.
        const auto depth = [&backlog](unsigned place) {
          return static_cast<std::int64_t>(backlog(place)) * 256 + (0xFF - static_cast<int>(place));
        };
        std::int64_t deep[4] = {};
        const unsigned all = queues;
        unsigned seen = 0;
        for (; seen + 4 <= all; seen += 4) {
          deep[0] = std::max(deep[0], depth(seen)), deep[1] = std::max(deep[1], depth(seen + 1));
          deep[2] = std::max(deep[2], depth(seen + 2)),
          deep[3] = std::max(deep[3], depth(seen + 3));
        }
        for (; seen < all; ++seen) deep[0] = std::max(deep[0], depth(seen));
        const std::int64_t most = std::max(std::max(deep[0], deep[1]), std::max(deep[2], deep[3]));
        if (const auto first = static_cast<unsigned>(0xFF - (most & 0xFF));
            most > 0xFF && has(first)) {
          choice.place = first;
          break;
        }
        std::int64_t deepest = 0;
        for (unsigned place = 0; place < queues; ++place)
          if (has(place))
            if (const auto waiting = static_cast<std::int64_t>(backlog(place));
                choice.place == kNoPlace || waiting > deepest)
              deepest = waiting, choice.place = place;
        break;
      }
      case PoolStrategy::kRoundRobin:
      case PoolStrategy::kWeighted:
        for (std::size_t step = 0, at = cycle.empty() ? 0 : choice.next % cycle.size();
             step < cycle.size(); ++step) {
          const unsigned place = cycle[at];
          at = at + 1 == cycle.size() ? 0 : at + 1;
          if (!has(place)) continue;
          choice.place = place;
          choice.next = static_cast<std::uint32_t>(at);
          break;
        }
        break;
    }
    return choice;
  }
};

/// Whose turn it is among the queues of workers outside of any pool (turns.hpp).
/// 63..24 which queues with which weights, 0: none yet  23..0 the next turn
struct alignas(64) SharedTurn {
  Word word;
  using Of = shm::Field<24, 40>;
  using Next = shm::Field<0, 24>;
};
constexpr std::uint32_t kSharedTurns = 64;

}  // namespace ojs_shm::engine
