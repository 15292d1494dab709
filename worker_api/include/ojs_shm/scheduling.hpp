// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ojs_shm/export.hpp>

namespace ojs_shm {

/// What a queue handed out in the last minute. Source: fair scheduling 10.2.
struct QueueScheduling {
  std::string queue;
  std::uint64_t dispatch_count_1m = 0;
  double dispatch_ratio_1m = 0;  ///< of the dispatches of all queues; 0 when there were none
  double avg_wait_ms = 0;        ///< from becoming available to being handed out
  std::uint64_t active_jobs = 0;
  /// times that no worker took its jobs for a rotation interval
  std::uint64_t starvation_events_total = 0;
  std::uint64_t poolless_dispatched_total = 0;  ///< to workers of no pool
};

/// Sampled once a second by the supervisor: the last 59 to 60 seconds.
struct SchedulingStats {
  std::vector<QueueScheduling> queues;
  std::uint32_t window_ms = 60'000;
};

/// `{"queues": [{"name", "dispatch_count_1m", "dispatch_ratio_1m", "avg_wait_ms", "active_jobs"}],
/// "window": "PT1M"}`
OJS_SHM_API std::string print_scheduling(const SchedulingStats& stats);

}  // namespace ojs_shm
