// SPDX-License-Identifier: Apache-2.0
#include "tools/exporter/collect.hpp"

#include <chrono>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>

namespace ojs_shm::exporter {
namespace {

using prometheus::MetricType;

std::vector<std::string> names_of(const Scope& scope) {
  if (!scope.all) return {scope.where.name};
  std::vector<std::string> names;
  for (const SegmentFile& file : list_segments(scope.where.dir)) names.push_back(file.name);
  return names;
}

void add_if_readable(metrics::Page& page, const SegmentName& where,
                     const metrics::Options& options) {
  page.begin_segment(where.name);
  const Result<Observer> observer = Observer::attach(where);
  page.family("ojs_segment_up", "1: the segment could be read; 0: it is missing, or damaged.",
              MetricType::Gauge);
  page.add({}, observer ? 1 : 0);
  if (observer) metrics::add_segment(page, observer.value(), options);
}

}  // namespace

metrics::Page collect(const Scope& scope) {
  const auto begun = std::chrono::steady_clock::now();
  metrics::Page page;
  for (const std::string& name : names_of(scope))
    add_if_readable(page, {name, scope.where.dir}, scope.options);

  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  page.begin_segment("");
  page.family("ojs_exporter_collect_duration_seconds",
              "How long it took to read the segments for this page.", MetricType::Gauge);
  page.add({}).gauge.value = took.count();
  return page;
}

}  // namespace ojs_shm::exporter
