// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/engine/quiet_segment.hpp"

// Pools, workers of theirs, and what these get. Every fetch here comes from a worker of its own, so
// what decides is in the segment.

namespace ojs_shm::test {

using Names = std::vector<std::string>;

inline const Names kAbc = {"a", "b", "c"};

inline PoolSettings pool_of(Names queues, PoolStrategy strategy = PoolStrategy::kRoundRobin) {
  PoolSettings settings;
  settings.queues = std::move(queues);
  settings.strategy = strategy;
  return settings;
}

inline PoolSettings preventing(PoolStrategy strategy, double ratio) {
  PoolSettings settings = pool_of({"critical", "analytics", "low"}, strategy);
  settings.starvation_prevention = {true, 30'000, ratio};
  return settings;
}

inline WorkerOptions member_of(std::string pool = "p", std::uint32_t concurrency = 0) {
  WorkerOptions options;
  options.pool = std::move(pool);
  options.concurrency = concurrency;
  return options;
}

inline void fill(QuietSegment& s, const Names& queues, int jobs) {
  for (const std::string& queue : queues)
    for (int i = 0; i < jobs; ++i) s.put(2, queue);
}

/// The queue of the job that a new worker of the pool gets and finishes; empty when it gets none.
inline std::string next(QuietSegment& s, const WorkerOptions& options = member_of()) {
  Worker worker = Worker::attach(s.segment, options).value();
  Job job;
  if (!worker.try_fetch(job)) return {};
  std::string queue(job.queue());
  EXPECT_TRUE(worker.ack(job).ok());
  return queue;
}

inline Names next(QuietSegment& s, int times) {
  Names queues;
  for (int i = 0; i < times; ++i) queues.push_back(next(s));
  return queues;
}

inline std::map<std::string, int> shares(const Names& queues) {
  std::map<std::string, int> count;
  for (const std::string& queue : queues) ++count[queue];
  return count;
}

}  // namespace ojs_shm::test
