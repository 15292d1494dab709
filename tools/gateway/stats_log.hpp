// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ojs_shm/census.hpp>

namespace ojs_shm::gateway {

/// The segment's numbers at one look. Counters go on from the segment's beginning.
struct StatsMark {
  std::uint64_t at_ms = 0;
  std::uint64_t by_state[8] = {};
  std::uint64_t depth = 0, dead = 0, oldest_age_ms = 0, bytes_used = 0, bytes_total = 0;
  std::uint64_t enqueued = 0, dispatched = 0, completed = 0, discarded = 0, cancelled = 0,
                failed_attempts = 0, retried = 0, rejected = 0, deaths = 0, repairs = 0;
};

/// How the segment stood: a mark each five seconds for an hour, and the latest look as clients get
/// it, renewed each second while clients watch. Thread-safe.
class StatsLog {
 public:
  static constexpr std::uint64_t kStepMs = 5'000;
  static constexpr std::size_t kKept = 720;

  /// The latest look as text; `number` grows by one with each.
  struct Look {
    std::uint64_t number = 0;
    std::shared_ptr<const std::string> text;
  };

  /// Takes a look over; `workers` is how many speak to this gateway. True when clients watch.
  bool add(const Census& census, std::size_t workers);
  Look latest() const;
  /// Jobs discarded in the minute before a look, or in as much of it as is known.
  std::uint64_t discarded_within_minute(const Census& census) const;
  /// Of the last so many ms, thinned out to at most so many points, oldest first.
  std::string history(std::uint64_t period_ms, std::size_t points) const;

  void join();
  void leave();
  bool has_watchers() const;

 private:
  std::string text_of(const StatsMark& mark, const Census& census, std::size_t workers) const;

  mutable std::mutex mutex_;
  std::deque<StatsMark> marks_;
  Look latest_;
  std::size_t watchers_ = 0;
};

}  // namespace ojs_shm::gateway
