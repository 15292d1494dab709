// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ojs_shm/census.hpp>
#include <ojs_shm/observer.hpp>

namespace ojs_shm::top {

using Clock = std::chrono::steady_clock;

/// The spans over which rates are told.
inline constexpr std::chrono::seconds kSpans[] = {std::chrono::seconds(5), std::chrono::seconds(30),
                                                  std::chrono::seconds(300)};
inline constexpr const char* kSpanNames[] = {"5s", "30s", "5m"};
inline constexpr std::size_t kSpanCount = 3;

/// The counters at one look.
struct Mark {
  Clock::time_point at;
  std::map<std::string, std::vector<std::uint64_t>> queues;  ///< by name, by counter
  std::map<std::uint32_t, std::uint64_t> workers;            ///< dispatched, by process
  std::vector<std::pair<std::string, std::uint64_t>> pools;  ///< dispatched, by "POOL QUEUE"
};

/// What was looked at before, thinned out with age: all of the last half minute, then a look of
/// each ten seconds, for five minutes.
class History {
 public:
  void add(Mark mark);
  void clear() { marks_.clear(); }
  bool empty() const { return marks_.empty(); }
  /// The youngest look that is at least `span` older than `now`, else the oldest that is older.
  const Mark* before(Clock::time_point now, std::chrono::seconds span) const;

 private:
  std::deque<Mark> marks_;
};

/// What one look found, and what happened since earlier ones. Rates are per second; those that no
/// earlier look supports are unset.
struct Sample {
  Census census;
  Clock::time_point at;
  struct Span {
    std::vector<std::optional<double>> totals;
    std::vector<std::vector<std::optional<double>>> queues;
    std::map<std::uint32_t, std::optional<double>> workers;
    std::map<std::string, double> pool_shares;  ///< "POOL QUEUE": of what the pool handed out
  };
  Span spans[kSpanCount];
  /// when this program first saw the broker dead or gone; of a broker that died before it looked,
  /// the trace that is left (Census::broker_lost_ms). Unix ms, 0: it is there, or left in order
  std::uint64_t broker_lost_ms = 0;
  bool removed = false;  ///< the segment's file has been removed, or replaced
  double took_ms = 0;    ///< the look itself
};

Mark mark_of(const Census& census, Clock::time_point at);
/// What moved between two looks; `now` is of the census, `before` null when there was none.
Sample::Span compare(const Census& census, const Mark& now, const Mark* before);

/// The sum of a counter's rates over all counters with that flow; unset when none is known.
std::optional<double> rate_of(const std::vector<CounterInfo>& counters,
                              const std::vector<std::optional<double>>& rates, CounterFlow flow);

/// Looks at one segment again and again.
class Sampler {
 public:
  explicit Sampler(Observer observer) : observer_(std::move(observer)) {}
  const Sample& take();
  const Sample& last() const { return sample_; }
  const Observer& observer() const { return observer_; }
  /// Goes on with the segment that now has the name, if there is one.
  bool follow(const SegmentName& where);

 private:
  Observer observer_;
  History history_;
  Sample sample_;
  bool broker_seen_ = false;
};

}  // namespace ojs_shm::top
