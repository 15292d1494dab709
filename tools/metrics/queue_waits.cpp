// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics/queue_waits.hpp"

namespace ojs_shm::metrics {
namespace {

/// All histograms have the same bounds.
void add_up(WaitHistogram& sum, const WaitHistogram& level) {
  sum.count += level.count;
  sum.sum_ms += level.sum_ms;
  sum.up_to_ms.resize(level.up_to_ms.size());
  for (std::size_t i = 0; i < level.up_to_ms.size(); ++i)
    sum.up_to_ms[i] = {level.up_to_ms[i].first, sum.up_to_ms[i].second + level.up_to_ms[i].second};
}

}  // namespace

std::map<std::string, QueueWaits, std::less<>> waits_by_queue(
    const std::vector<LevelWaits>& levels) {
  std::map<std::string, QueueWaits, std::less<>> queues;
  for (const LevelWaits& level : levels) {
    QueueWaits& queue = queues[level.queue];
    add_up(queue.from_enqueue, level.from_enqueue);
    add_up(queue.from_available, level.from_available);
    add_up(queue.runs, level.runs);
  }
  return queues;
}

std::uint64_t mean_ms(const WaitHistogram& histogram) {
  return histogram.count == 0 ? 0 : histogram.sum_ms / histogram.count;
}

std::uint64_t quantile_ms(const WaitHistogram& histogram, unsigned permille) {
  if (histogram.count == 0) return 0;
  for (const auto& [ms, jobs] : histogram.up_to_ms)
    if (jobs * 1000 >= histogram.count * permille) return ms;
  return histogram.up_to_ms.back().first;
}

}  // namespace ojs_shm::metrics
