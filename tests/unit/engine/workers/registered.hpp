// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/census.hpp>
#include <ojs_shm/proxy.hpp>

#include "engine/workers/registry.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {

using engine::WorkerKey;

/// Workers known by their ids. The clock stands, and each test ends with an audit.
class Registry : public testing::Test {
 protected:
  Registry() : proxy(Proxy::attach(s.segment).value()) { s.stop_clock(); }

  WorkerKey add(std::string_view id, engine::WorkerReport report = {.pledges = true}) {
    report.id = id;
    WorkerKey key;
    EXPECT_EQ(engine::Registry(s.actor()).report(report, key), engine::Outcome::kOk) << id;
    return key;
  }
  RegisteredWorker look(std::string_view id) {
    const auto worker = s.observer.registered_worker(id);
    EXPECT_TRUE(worker.ok()) << id;
    return worker.ok() ? worker.value() : RegisteredWorker{};
  }
  std::vector<std::string> ids() {
    std::vector<std::string> ids;
    for (const RegisteredWorker& worker : s.observer.registered_workers())
      if (!worker.ended) ids.push_back(worker.id);
    return ids;
  }
  std::string fetch_as(const std::string& worker) {
    const auto jobs = proxy.fetch({.worker = worker});
    EXPECT_TRUE(jobs.ok());
    return jobs.ok() && !jobs->empty() ? jobs->front().id : std::string();
  }
  /// A counter of the segment as monitors read it.
  std::uint64_t counted(std::string_view label) {
    const Census census = s.observer.census();
    for (std::size_t i = 0; i < census.segment_counters.size(); ++i)
      if (census.segment_counters[i].label == label) return census.segment_values[i];
    ADD_FAILURE() << "no counter " << label;
    return 0;
  }
  RegisteredWorker report(const WorkerReport& report) {
    const auto known = proxy.report(report);
    EXPECT_TRUE(known.ok()) << (known.ok() ? "" : known.error().message);
    return known.ok() ? known.value() : RegisteredWorker{};
  }

  QuietSegment s;
  Proxy proxy;
};

}  // namespace ojs_shm::test
