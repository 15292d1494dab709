// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include <ojs_shm/census.hpp>

#include "tools/gateway/stats/past.hpp"

namespace ojs_shm::gateway {

/// How many jobs of each queue ended in the last minute and in the last hour, or in as much of it
/// as is known. Thread-safe. Source: ojs-http-binding 11.2, ojs-admin-api 6.1.
class RecentEnds {
 public:
  struct Ended {
    std::uint64_t completed = 0, failed = 0;
  };
  struct Of {
    Ended minute, hour;
  };

  void add(const Census& census);
  /// Up to the numbers of the queue as they are now.
  Of of(const QueueInfo& queue, std::uint64_t now_ms) const;

 private:
  /// Counters of all queues, from the beginning of the segment on.
  struct Mark {
    std::uint64_t at_ms = 0;
    std::map<std::string, Ended, std::less<>> queues = {};
  };
  struct Row {
    std::uint64_t step_ms, span_ms;
    std::deque<Mark> marks = {};
    void add(const Mark& mark);
    Ended since(const QueueInfo& queue, std::uint64_t now_ms) const;
  };

  mutable std::mutex mutex_;
  Row minute_{5'000, 60'000}, hour_{60'000, 3'600'000};
};

}  // namespace ojs_shm::gateway
