// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ojs_shm/census.hpp>

#include "tools/gateway/stats/past.hpp"
#include "tools/gateway/stats/recent_ends.hpp"

namespace ojs_shm::gateway {

/// How the segment stood, and each of its first queues; and the latest look as clients get it,
/// renewed each second while clients watch. Thread-safe. Source: ojs-admin-api 10.
class StatsLog {
 public:
  static constexpr std::uint64_t kStepMs = Past::kStepMs;
  /// Of how many queues the past is kept, each with up to half a megabyte.
  static constexpr std::size_t kMostQueues = 128;

  /// What is asked of the past: points of so many ms each, of the time between two moments.
  struct Span {
    std::string period = "5m";  ///< as it was asked for
    std::uint64_t period_ms = 300'000;
    std::uint64_t since_ms = 0, until_ms = ~0ULL;
    std::string queue = {};  ///< empty: all queues together
  };
  /// The latest look as text; `number` grows by one with each.
  struct Look {
    std::uint64_t number = 0;
    std::shared_ptr<const std::string> text;
  };

  /// Takes a look over; `workers` is how many speak to this gateway. True when clients watch.
  bool add(const Census& census, const std::vector<LevelWaits>& waits, std::size_t workers);
  Look latest() const;
  /// Jobs that ended in the minute before a look, or in as much of it as is known.
  RecentEnds::Ended within_minute(const Census& census) const;
  const RecentEnds& recent_ends() const { return recent_ends_; }  ///< of single queues
  /// Oldest first; a point of a time about which nothing is known is left out. nullopt: the past of
  /// that queue is not kept.
  std::optional<std::string> history(const Span& span) const;

  void join();
  void leave();
  bool has_watchers() const;

 private:
  void add_queues(const Census& census, const std::vector<LevelWaits>& waits);
  std::string text_of(const StatsMark& mark, const Census& census, std::size_t workers) const;

  mutable std::mutex mutex_;
  Past all_{720};  ///< an hour of marks of five seconds
  std::map<std::string, Past, std::less<>> queues_;
  std::uint64_t seen_ms_ = 0;               ///< the look before; 0: there was none
  std::vector<std::uint64_t> wait_bounds_;  ///< of the histograms
  RecentEnds recent_ends_;
  Look latest_;
  std::size_t watchers_ = 0;
};

}  // namespace ojs_shm::gateway
