// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ojs_shm::metrics {

using Labels = std::vector<prometheus::ClientMetric::Label>;

/// Families of metrics, each once, in the order in which they were first named. Several segments
/// share a page: each of them names the same families again and adds its own series.
class Page {
 public:
  /// The series that follow are this segment's: each carries its name as a label.
  void begin_segment(std::string name) { segment_ = std::move(name); }
  /// The series that follow belong to this family.
  void family(const std::string& name, std::string help, prometheus::MetricType type);
  void add(Labels labels, std::uint64_t value);
  prometheus::ClientMetric& add(Labels labels);
  /// A family that the library counted.
  void add_counted(const prometheus::MetricFamily& counted);

  /// Format 0.0.4, which every Prometheus reads.
  std::string prometheus_text() const;
  /// OpenMetrics 1.0.
  std::string openmetrics_text() const;

 private:
  std::string segment_;
  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, std::size_t> place_;
  std::size_t current_ = 0;
};

}  // namespace ojs_shm::metrics
