// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::gateway {

/// How far a counter went. It never falls, but a segment may be replaced by another of its name.
inline std::uint64_t grown(std::uint64_t before, std::uint64_t now) {
  return now - std::min(before, now);
}

/// The numbers of a queue, or of all together, at one look. Counters go on from the segment's
/// beginning.
struct StatsMark {
  std::uint64_t at_ms = 0;
  std::uint64_t available = 0, active = 0, depth = 0, dead = 0, oldest_age_ms = 0;
  std::uint64_t enqueued = 0, dispatched = 0, completed = 0, discarded = 0, failed_attempts = 0,
                retried = 0, rejected = 0;
  /// Of the segment; 0 for a queue.
  std::uint64_t bytes_used = 0, bytes_total = 0, deaths = 0, repairs = 0;
  /// How many jobs waited no longer than each bound of a WaitHistogram, and last how many there
  /// were, by their low 32 bits. Empty: none.
  std::vector<std::uint32_t> waited = {};

  void add(const QueueInfo& queue);
  void add(const WaitHistogram& waits);
};

/// When the period begins in which a look tells what has happened.
constexpr std::uint64_t period_of(std::uint64_t at_ms, std::uint64_t period_ms) {
  return (at_ms - std::min<std::uint64_t>(at_ms, 1)) / period_ms * period_ms;
}

/// What was seen of one queue, or of all: the first look, the last one of each five seconds for
/// some time, of each minute for a day, of each hour for thirty days, and the latest. Source:
/// ojs-admin-api 10.2.
class Past {
 public:
  static constexpr std::uint64_t kStepMs = 5'000;

  /// So many of five seconds are kept.
  explicit Past(std::size_t finest) : rows_{{kStepMs, finest}, {60'000, 1440}, {3'600'000, 720}} {}

  void add(const StatsMark& mark);
  /// Of each time those that lie closest together, in their order.
  std::vector<StatsMark> marks() const;
  /// The first from then on, by those of five seconds; nullptr: none.
  const StatsMark* first_since(std::uint64_t at_ms) const;

 private:
  /// The last marks of periods of so many ms.
  struct Row {
    std::uint64_t step_ms;
    std::size_t kept;
    std::deque<StatsMark> marks = {};
    void push(const StatsMark& mark);
  };

  Row rows_[3];
  StatsMark latest_;
};

}  // namespace ojs_shm::gateway
