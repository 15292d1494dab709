// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/limits/limits.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {

inline RateLimit at_once(std::uint32_t concurrency) {
  RateLimit limit;
  limit.concurrency = concurrency;
  return limit;
}

/// Jobs under limits, each held by a worker of its own.
class Limits : public testing::Test {
 protected:
  QuietSegment s;
  std::vector<Job> held;

  std::string put(std::string_view key, std::uint32_t concurrency, std::int64_t priority = 2,
                  std::string_view queue = "default") {
    const JobLimit limit{std::string(key), at_once(concurrency)};
    JobSpec spec = spec_of(priority, queue);
    spec.limit = &limit;
    return s.put(spec);
  }
  /// The id of the job fetched next, which stays held.
  std::string hold(std::string_view queue = "default") {
    WorkerOptions options;
    options.queues = {std::string(queue)};
    Worker worker = Worker::attach(s.segment, options).value();
    Job job;
    if (!worker.try_fetch(job)) return "";
    workers.push_back(std::move(worker));
    held.push_back(std::move(job));
    return std::string(held.back().id());
  }
  void ack(std::size_t i) { EXPECT_TRUE(workers[i].ack(held[i]).ok()); }
  LimitInfo limit(std::string_view key) { return s.observer.limit(key).value(); }
  /// Permits of the type's limit whose jobs no lane holds.
  std::uint32_t worthless() {
    const engine::PermitSet& set =
        s.store().limit_keys[engine::find_limit(s.store(), "type:unit.test")].permits;
    const engine::Permits permits(s.store());
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < set.high.load(); ++i) {
      const engine::Permit permit(permits.at(set, i).load());
      count += !permit.free() && !permits.holds(permit) ? 1 : 0;
    }
    return count;
  }
  std::vector<Worker> workers;
};

}  // namespace ojs_shm::test
