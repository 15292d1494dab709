// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ojs_shm/census.hpp>

#include "tools/gateway/stats/recent_ends.hpp"

namespace ojs_shm::gateway {

/// The segment's numbers at one look. Counters go on from the segment's beginning.
struct StatsMark {
  std::uint64_t at_ms = 0;
  std::uint64_t by_state[8] = {};
  std::uint64_t depth = 0, dead = 0, oldest_age_ms = 0, bytes_used = 0, bytes_total = 0;
  std::uint64_t enqueued = 0, dispatched = 0, completed = 0, discarded = 0, cancelled = 0,
                failed_attempts = 0, retried = 0, rejected = 0, deaths = 0, repairs = 0;
};

/// How the segment stood: a mark each five seconds for an hour, each minute for a day and each hour
/// for thirty days; and the latest look as clients get it, renewed each second while clients watch.
/// Thread-safe. Source: ojs-admin-api 10.2.
class StatsLog {
 public:
  static constexpr std::uint64_t kStepMs = 5'000;

  /// What is asked of the past: points of so many ms each, of the time between two moments.
  struct Span {
    std::string period = "5m";  ///< as it was asked for
    std::uint64_t period_ms = 300'000;
    std::uint64_t since_ms = 0, until_ms = ~0ULL;
  };
  /// The latest look as text; `number` grows by one with each.
  struct Look {
    std::uint64_t number = 0;
    std::shared_ptr<const std::string> text;
  };

  /// Takes a look over; `workers` is how many speak to this gateway. True when clients watch.
  bool add(const Census& census, std::size_t workers);
  Look latest() const;
  /// Jobs that ended in the minute before a look, or in as much of it as is known.
  RecentEnds::Ended within_minute(const Census& census) const;
  const RecentEnds& recent_ends() const { return recent_ends_; }  ///< of single queues
  /// Oldest first; a point of a time about which nothing is known is left out.
  std::string history(const Span& span) const;

  void join();
  void leave();
  bool has_watchers() const;

 private:
  std::string text_of(const StatsMark& mark, const Census& census, std::size_t workers) const;

  /// Marks of so many ms from one to the next.
  struct Row {
    std::uint64_t step_ms;
    std::size_t kept;
    std::deque<StatsMark> marks = {};
    void add(const StatsMark& mark);
  };
  std::vector<StatsMark> all_marks() const;

  mutable std::mutex mutex_;
  Row rows_[3] = {{kStepMs, 720}, {60'000, 1440}, {3'600'000, 720}};
  RecentEnds recent_ends_;
  Look latest_;
  std::size_t watchers_ = 0;
};

}  // namespace ojs_shm::gateway
