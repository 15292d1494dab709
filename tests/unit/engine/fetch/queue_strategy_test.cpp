// SPDX-License-Identifier: Apache-2.0
// A worker with several queues: from left to right, or in turns by weight.

#include <algorithm>
#include <map>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

const std::vector<std::string> kQueues = {"critical", "default", "low"};

WorkerOptions strict() {
  WorkerOptions options;
  options.queues = kQueues;
  return options;
}

WorkerOptions weighted(std::vector<std::uint32_t> weights = {5, 2, 1}) {
  WorkerOptions options = strict();
  options.strategy = QueueStrategy::kWeighted;
  options.weights = std::move(weights);
  return options;
}

/// The queue of the next job, whose id is left in `id`; empty when there is none.
std::string next(Worker& worker, std::string* id = nullptr) {
  Job job;
  if (!worker.try_fetch(job)) return {};
  const std::string queue(job.queue());
  if (id != nullptr) *id = job.id();
  EXPECT_TRUE(worker.ack(job).ok());
  return queue;
}

TEST(QueueStrategy,
     PRI_R002_PRI_S1_PRI_S2_SUM_03_FS_002_strict_drains_the_queues_from_left_to_right) {
  QuietSegment s;
  Worker worker = Worker::attach(s.segment, strict()).value();
  for (const char* queue : {"low", "default", "critical"})
    for (int i = 0; i < 3; ++i) s.put(2, queue);
  EXPECT_EQ(next(worker), "critical");
  EXPECT_EQ(next(worker), "critical");
  EXPECT_EQ(next(worker), "critical");
  EXPECT_EQ(next(worker), "default");
  s.put(255, "critical");  // midway: the queue counts, not the job's priority
  EXPECT_EQ(next(worker), "critical");
  EXPECT_EQ(next(worker), "default");
  s.put(255, "default");
  s.put(0, "low");
  EXPECT_EQ(next(worker), "default");
  EXPECT_EQ(next(worker), "default");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(next(worker), "low");
  EXPECT_EQ(next(worker), "");
}

TEST(QueueStrategy, PRI_S3_within_a_queue_priority_then_first_in_first_out_under_both_strategies) {
  for (const WorkerOptions& options : {strict(), weighted()}) {
    QuietSegment s;
    Worker worker = Worker::attach(s.segment, options).value();
    std::map<std::string, Ids> expected, came;
    for (const std::string& queue : kQueues) {
      const std::string low = s.put(9, queue), first = s.put(4, queue), second = s.put(4, queue),
                        top = s.put(0, queue);
      expected[queue] = {top, first, second, low};
    }
    std::string id;
    for (std::string queue = next(worker, &id); !queue.empty(); queue = next(worker, &id))
      came[queue].push_back(id);
    EXPECT_EQ(came, expected);
  }
}

TEST(QueueStrategy, PRI_S5_weighted_shares_are_exact_in_every_window_of_the_weights_sum) {
  QuietSegment s(few_slots(2048));
  Worker worker = Worker::attach(s.segment, weighted()).value();
  for (int i = 0; i < 600; ++i)
    for (const std::string& queue : kQueues) s.put(2, queue);
  std::vector<std::string> served;
  std::map<std::string, int> total;
  for (int i = 0; i < 800; ++i) {
    served.push_back(next(worker));
    ++total[served.back()];
  }
  EXPECT_EQ(total, (std::map<std::string, int>{{"critical", 500}, {"default", 200}, {"low", 100}}));
  for (std::size_t begin = 0; begin + 8 <= served.size(); ++begin) {
    const auto window = served.begin() + static_cast<std::ptrdiff_t>(begin);
    ASSERT_EQ(std::count(window, window + 8, "critical"), 5) << begin;
    ASSERT_EQ(std::count(window, window + 8, "default"), 2) << begin;
    ASSERT_EQ(std::count(window, window + 8, "low"), 1) << begin;
  }
}

/// The bound of docs/scheduling.md: at most W - weight others, seven for `low`.
TEST(QueueStrategy, PRI_S6_a_queue_with_a_weight_is_served_after_at_most_the_others_weights) {
  QuietSegment s(few_slots(2048));
  Worker worker = Worker::attach(s.segment, weighted()).value();
  for (int i = 0; i < 500; ++i) s.put(0, "critical");
  for (int i = 0; i < 200; ++i) s.put(0, "default");
  for (int i = 0; i < 50; ++i) s.put(255, "low");
  int since = 0, longest = 0, low = 0;
  while (low < 50) {
    const std::string queue = next(worker);
    ASSERT_NE(queue, "");
    if (queue == "low") {
      ++low;
      longest = std::max(longest, std::exchange(since, 0));
    } else {
      ++since;
    }
  }
  EXPECT_EQ(longest, 7);
}

TEST(QueueStrategy, PRI_S6_a_queue_that_fills_late_waits_no_longer_either) {
  QuietSegment s(few_slots(2048));
  Worker worker = Worker::attach(s.segment, weighted()).value();
  for (int i = 0; i < 600; ++i) s.put(0, "critical");
  for (int begin = 0; begin < 8; ++begin) {  // at each place of the cycle
    EXPECT_EQ(next(worker), "critical");
    s.put(255, "low");
    int others = 0;
    while (next(worker) != "low") ++others;
    EXPECT_LE(others, 7);
  }
}

TEST(QueueStrategy, weighted_takes_what_there_is) {
  QuietSegment s;
  Worker worker = Worker::attach(s.segment, weighted()).value();
  EXPECT_EQ(next(worker), "");
  for (int i = 0; i < 10; ++i) s.put(2, "low");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(next(worker), "low");
  EXPECT_EQ(next(worker), "");
}

TEST(QueueStrategy, PRI_S9_both_strategies_can_be_chosen_and_strict_is_the_default) {
  EXPECT_EQ(WorkerOptions{}.strategy, QueueStrategy::kStrict);
  QuietSegment s;
  Worker first = Worker::attach(s.segment, strict()).value(),
         second = Worker::attach(s.segment, weighted()).value();
  for (int i = 0; i < 8; ++i)
    for (const std::string& queue : kQueues) s.put(2, queue);
  std::map<std::string, int> served;
  for (int i = 0; i < 8; ++i) ++served[next(second)];
  EXPECT_EQ(served, (std::map<std::string, int>{{"critical", 5}, {"default", 2}, {"low", 1}}));
  EXPECT_EQ(next(first), "critical");
}

TEST(QueueStrategy, without_weights_all_queues_are_alike) {
  QuietSegment s;
  Worker worker = Worker::attach(s.segment, weighted({})).value();
  for (int i = 0; i < 3; ++i)
    for (const std::string& queue : kQueues) s.put(2, queue);
  Ids served;
  for (int i = 0; i < 6; ++i) served.push_back(next(worker));
  EXPECT_EQ(served, (Ids{"critical", "default", "low", "critical", "default", "low"}));
}

TEST(QueueStrategy, weights_that_do_not_fit_are_refused_with_what_would) {
  QuietSegment s;
  const std::pair<WorkerOptions, std::string> refused[] = {
      {weighted({5, 2}), "3 queues need as many weights, not 2"},
      {weighted({5, 2, 0}), "a queue's weight is 1 to 1000, not 0"},
      {weighted({1001, 2, 1}), "a queue's weight is 1 to 1000, not 1001"},
  };
  for (const auto& [options, message] : refused) {
    const auto worker = Worker::attach(s.segment, options);
    EXPECT_EQ(worker.code(), Code::kInvalid);
    EXPECT_EQ(worker.ok() ? "" : worker.error().message, message);
  }
  WorkerOptions mixed = weighted();
  mixed.strategy = QueueStrategy::kStrict;
  EXPECT_EQ(Worker::attach(s.segment, mixed).code(), Code::kInvalid);
}

TEST(QueueStrategy, PRI_S8_SUM_05_the_strategy_is_the_workers_and_no_jobs) {
  QuietSegment s;
  Worker worker = Worker::attach(s.segment, weighted()).value();
  for (int i = 0; i < 8; ++i)
    for (const std::string& queue : kQueues) {
      JobSpec spec = spec_of(2, queue);
      spec.extra = R"({"strategy":"strict","weight":1000})";
      s.put(spec);
    }
  std::map<std::string, int> served;
  for (int i = 0; i < 8; ++i) ++served[next(worker)];
  EXPECT_EQ(served["low"], 1);
}

}  // namespace
}  // namespace ojs_shm::test
