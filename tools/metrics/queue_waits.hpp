// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::metrics {

/// How long the jobs of a queue waited and ran, on all its levels, since the segment was made.
struct QueueWaits {
  WaitHistogram from_enqueue = {}, from_available = {}, runs = {};
};

/// By the queue's name; none of a queue that handed out no job yet.
std::map<std::string, QueueWaits, std::less<>> waits_by_queue(
    const std::vector<LevelWaits>& levels);

/// 0: nothing was counted.
std::uint64_t mean_ms(const WaitHistogram& histogram);
/// The least bound that so many of 1,000 do not exceed; the last one when more are beyond it. 0:
/// nothing was counted.
std::uint64_t quantile_ms(const WaitHistogram& histogram, unsigned permille);

}  // namespace ojs_shm::metrics
