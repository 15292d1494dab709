// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ojs_shm::gateway {

/// What this process did for requests about many jobs, since it began. Thread-safe. Source:
/// ojs-bulk-operations 12.2.
class BulkMeter {
 public:
  BulkMeter();

  /// A request that is over. `operation`: "enqueue", "cancel", "retry" or "delete"; `items`: how
  /// many jobs of each status of the reply.
  void count(std::string_view operation, bool atomic,
             const std::map<std::string_view, std::size_t>& items,
             std::chrono::steady_clock::duration took);
  std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& items_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Histogram>& sizes_;
};

}  // namespace ojs_shm::gateway
