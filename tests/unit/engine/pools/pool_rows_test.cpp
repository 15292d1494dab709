// SPDX-License-Identifier: Apache-2.0
// Pools with the numbers that the specification of fair scheduling prints, and each strategy chosen
// by its name. Times are exact: the clock stands and is moved by hand.

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Names = std::vector<std::string>;
using Shares = std::map<std::string, int>;

void fill(QuietSegment& s, const Names& queues, int jobs) {
  for (const std::string& queue : queues)
    for (int i = 0; i < jobs; ++i) s.put(2, queue);
}

void set_pool(QuietSegment& s, const std::string& json, std::string_view name = "p") {
  const auto settings = parse_pool_settings(json);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const auto set = s.admin.set_pool(name, settings.value());
  ASSERT_TRUE(set.ok()) << set.error().message;
}

/// The queue of the job that the worker gets and finishes; empty when it gets none.
std::string next(Worker& worker) {
  Job job;
  if (!worker.try_fetch(job)) return {};
  std::string queue(job.queue());
  EXPECT_TRUE(worker.ack(job).ok());
  return queue;
}

Names next(Worker& worker, int times) {
  Names queues;
  for (int i = 0; i < times; ++i) queues.push_back(next(worker));
  return queues;
}

Worker member(QuietSegment& s, std::string pool = "p", std::uint32_t concurrency = 0) {
  WorkerOptions options;
  options.pool = std::move(pool);
  options.concurrency = concurrency;
  return Worker::attach(s.segment, options).value();
}

// ---- strategies ---------------------------------------------------------------------------------

/// Nine jobs of queues that hold 2, 6 and 4: no two strategies take them in the same order.
TEST(PoolRows, FS_003_FS_T19_FS_T21_each_strategy_is_chosen_by_its_name) {
  const std::map<std::string, Names> expected = {
      {"strict", {"a", "a", "b", "b", "b", "b", "b", "b", "c"}},
      {"round-robin", {"a", "b", "c", "a", "b", "c", "b", "c", "b"}},
      {"weighted", {"c", "a", "b", "c", "c", "a", "b", "c", "b"}},
      {"least-loaded", {"b", "b", "b", "c", "b", "c", "a", "b", "c"}},
  };
  for (const auto& [strategy, order] : expected) {
    QuietSegment s;
    fill(s, {"a"}, 2), fill(s, {"b"}, 6), fill(s, {"c"}, 4);
    set_pool(s, R"({"queues":["a","b","c"],"strategy":")" + strategy +
                    R"(","weights":{"a":1,"b":1,"c":2}})");
    EXPECT_EQ(pool_strategy_name(s.observer.pool("p")->settings.strategy), strategy);
    Worker worker = member(s);
    EXPECT_EQ(next(worker, 9), order) << strategy;
  }
}

TEST(PoolRows, FS_T21_the_strategy_is_round_robin_unless_said_otherwise) {
  QuietSegment s;
  fill(s, {"a", "b"}, 3);
  set_pool(s, R"({"queues":["a","b"]})");
  EXPECT_EQ(pool_strategy_name(s.observer.pool("p")->settings.strategy), "round-robin");
  Worker worker = member(s);
  EXPECT_EQ(next(worker, 4), (Names{"a", "b", "a", "b"}));
}

/// Example 14.1: 5/9, 3/9 and 1/9 of what a worker with ten jobs at once takes.
TEST(PoolRows, FS_G1_the_worker_of_the_example_serves_five_three_and_one_of_nine) {
  const Names queues = {"critical", "default", "low"};
  const Shares ninety = {{"critical", 50}, {"default", 30}, {"low", 10}};
  WorkerOptions options;
  options.pool = "general";
  options.queues = queues;
  options.strategy = QueueStrategy::kWeighted;
  options.weights = {5, 3, 1};
  options.concurrency = 10;
  for (const bool pool_has_weights : {true, false}) {
    QuietSegment s;
    if (pool_has_weights) {
      set_pool(s, R"({"queues":["critical","default","low"],"strategy":"weighted",
                      "weights":{"critical":5,"default":3,"low":1}})",
               "general");
    } else {
      options.pool.clear();  // nothing is configured: the worker's own wishes count
    }
    fill(s, queues, 60);
    Worker worker = Worker::attach(s.segment, options).value();
    std::vector<Job> at_work(10);
    Shares shares;
    for (int taken = 0; taken < 90; taken += 10) {  // ten at once, nine times
      for (Job& job : at_work) {
        ASSERT_TRUE(worker.try_fetch(job).ok());
        ++shares[std::string(job.queue())];
      }
      EXPECT_EQ(worker.try_fetch(s.job).code(), Code::kEmpty) << "an eleventh";
      for (Job& job : at_work) ASSERT_TRUE(worker.ack(job).ok());
    }
    EXPECT_EQ(shares, ninety);
  }
}

// ---- starvation prevention ----------------------------------------------------------------------

/// Weights that give `low` one dispatch in 501, and an interval of 30 s in which there are few.
TEST(PoolRows, FS_T13_under_weighted_a_queue_is_served_in_each_interval) {
  for (const bool prevents : {true, false}) {
    QuietSegment s;
    s.stop_clock();
    set_pool(s, std::string(R"({"queues":["critical","low"],"strategy":"weighted",
                                "weights":{"critical":500,"low":1},
                                "starvation_prevention":{"enabled":)") +
                    (prevents ? "true" : "false") + R"(,"min_dispatch_ratio":0}})");
    fill(s, {"critical", "low"}, 30);
    Worker worker = member(s);
    Names low_in_each;
    for (int interval = 0; interval < 5; ++interval) {
      Names served;
      for (int i = 0; i < 3; ++i) {
        s.move_clock(10 * kSecond + 1);
        served.push_back(next(worker));
      }
      low_in_each.push_back(std::to_string(std::count(served.begin(), served.end(), "low")));
    }
    EXPECT_EQ(low_in_each, prevents ? Names(5, "1") : Names(5, "0"));
  }
}

TEST(PoolRows, FS_T14_the_defaults_are_those_of_the_specification) {
  const StarvationPrevention unset =
      parse_pool_settings(R"({"queues":["a"]})")->starvation_prevention;
  EXPECT_FALSE(unset.enabled);
  EXPECT_EQ(unset.rotation_interval_ms, 30'000U);
  EXPECT_EQ(unset.min_dispatch_ratio, 0.05);
  const StarvationPrevention on =
      parse_pool_settings(R"({"queues":["a"],"starvation_prevention":{"enabled":true}})")
          ->starvation_prevention;
  EXPECT_TRUE(on.enabled);
  EXPECT_EQ(on.rotation_interval_ms, 30'000U);
  EXPECT_EQ(on.min_dispatch_ratio, 0.05);
}

TEST(PoolRows, FS_T14_intervals_are_read_as_iso_8601) {
  for (const auto& [text, ms] : std::map<std::string, std::uint32_t>{{"PT30S", 30'000},
                                                                     {"PT0.25S", 250},
                                                                     {"PT5M", 300'000},
                                                                     {"PT1H30M", 5'400'000},
                                                                     {"P1D", 86'400'000}}) {
    const auto read = parse_pool_settings(
        R"({"queues":["a"],"starvation_prevention":{"rotation_interval":")" + text + "\"}}");
    ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
    EXPECT_EQ(read->starvation_prevention.rotation_interval_ms, ms) << text;
  }
  for (const char* wrong : {"30S", "PT", "P1", "T30S", "PT-5S", "PT5X", ""})
    EXPECT_EQ(parse_pool_settings(
                  std::string(R"({"queues":["a"],"starvation_prevention":{"rotation_interval":")") +
                  wrong + "\"}}")
                  .code(),
              Code::kInvalid)
        << wrong;
}

TEST(PoolRows, FS_T14_a_ratio_is_from_0_to_1_and_all_queues_fit_into_1) {
  QuietSegment s;
  const auto subject = [&s](const std::string& prevention) -> std::string {
    const auto read = parse_pool_settings(R"({"queues":["a","b","c","d"],"strategy":"strict",)"
                                          R"("starvation_prevention":)" +
                                          prevention + "}");
    if (!read) return read.error().subject;
    const auto set = s.admin.set_pool("p", read.value());
    return set ? "" : set.error().subject;
  };
  const std::string ratio = "starvation_prevention.min_dispatch_ratio";
  EXPECT_EQ(subject(R"({"enabled":false,"min_dispatch_ratio":-0.01})"), ratio);
  EXPECT_EQ(subject(R"({"enabled":false,"min_dispatch_ratio":1.01})"), ratio);
  EXPECT_EQ(subject(R"({"enabled":false,"min_dispatch_ratio":1})"), "") << "not in force";
  EXPECT_EQ(subject(R"({"enabled":true,"min_dispatch_ratio":0})"), "");
  EXPECT_EQ(subject(R"({"enabled":true,"min_dispatch_ratio":0.25})"), "") << "four quarters";
  EXPECT_EQ(subject(R"({"enabled":true,"min_dispatch_ratio":0.26})"), ratio);
  EXPECT_EQ(subject(R"({"enabled":true,"rotation_interval":"PT0S"})"),
            "starvation_prevention.rotation_interval");
}

// ---- overload -----------------------------------------------------------------------------------

/// Two may be at work and a thousand jobs come: none is refused, dropped, or lost on the way.
TEST(PoolRows, FS_T20_a_saturated_pool_keeps_every_job_and_works_all_of_them_off) {
  QuietSegment s(few_slots(2048));
  set_pool(s, R"({"queues":["a","b"],"concurrency":2})");
  std::multiset<std::string> put, got;
  Worker worker = member(s);
  for (const char* queue : {"a", "b"}) put.insert(s.put(2, queue));
  Job busy[2];
  for (Job& job : busy) ASSERT_TRUE(worker.try_fetch(job).ok());
  for (int i = 0; i < 1000; ++i) put.insert(s.put(i % 5, i % 3 == 0 ? "a" : "b"));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(worker.try_fetch(s.job).code(), Code::kEmpty);
  EXPECT_EQ(s.observer.pool("p")->waiting_jobs, 1000U);
  const auto available = [&s](std::string_view queue) {
    return s.queue(queue).by_state[static_cast<std::size_t>(State::kAvailable)];
  };
  EXPECT_EQ(available("a") + available("b"), 1000U);

  for (Job& job : busy) {
    got.emplace(job.id());
    ASSERT_TRUE(worker.ack(job).ok());
  }
  while (worker.try_fetch(s.job)) {
    got.emplace(s.job.id());
    ASSERT_TRUE(worker.ack(s.job).ok());
  }
  EXPECT_EQ(got, put);
  for (const char* queue : {"a", "b"}) {
    EXPECT_EQ(s.queue(queue).depth, 0U);
    EXPECT_EQ(s.queue(queue).rejected_total + s.queue(queue).dropped_total +
                  s.queue(queue).discarded_total,
              0U);
  }
}

// ---- what is listed -----------------------------------------------------------------------------

TEST(PoolRows, FS_004_FS_H1_every_pool_is_listed_and_its_counts_follow_what_happens) {
  QuietSegment s;
  for (const char* name : {"one", "two", "three"}) set_pool(s, R"({"queues":["a"]})", name);
  const auto named = [&s] {
    std::set<std::string> names;
    for (const WorkerPoolInfo& pool : s.observer.pools()) names.insert(pool.name);
    return names;
  };
  EXPECT_EQ(named(), (std::set<std::string>{"one", "two", "three"}));
  ASSERT_TRUE(s.admin.remove_pool("two").ok());
  EXPECT_EQ(named(), (std::set<std::string>{"one", "three"}));

  using Counts = std::pair<std::uint32_t, std::uint64_t>;  // workers, jobs
  const auto counts = [&s](std::string_view pool) {
    const WorkerPoolInfo info = s.observer.pool(pool).value();
    return Counts{info.active_workers, info.active_jobs};
  };
  fill(s, {"a"}, 5);
  EXPECT_EQ(counts("one"), (Counts{0, 0}));
  Worker first = member(s, "one");
  {
    Worker second = member(s, "one"), other = member(s, "three");
    EXPECT_EQ(counts("one"), (Counts{2, 0}));
    Job jobs[4];
    ASSERT_TRUE(first.try_fetch(jobs[0]).ok());
    ASSERT_TRUE(first.try_fetch(jobs[1]).ok());
    ASSERT_TRUE(second.try_fetch(jobs[2]).ok());
    ASSERT_TRUE(other.try_fetch(jobs[3]).ok());
    EXPECT_EQ(counts("one"), (Counts{2, 3}));
    EXPECT_EQ(counts("three"), (Counts{1, 1}));
    ASSERT_TRUE(first.ack(jobs[0]).ok());
    EXPECT_EQ(counts("one"), (Counts{2, 2}));
    ASSERT_TRUE(first.nack(jobs[1], failure()).ok());
    EXPECT_EQ(counts("one"), (Counts{2, 1}));
    ASSERT_TRUE(second.requeue(jobs[2]).ok());
    EXPECT_EQ(counts("one"), (Counts{2, 0}));
    ASSERT_TRUE(other.ack(jobs[3]).ok());
  }
  EXPECT_EQ(counts("one"), (Counts{1, 0}));
  EXPECT_EQ(counts("three"), (Counts{0, 0}));
}

TEST(PoolRows, FS_H2_a_pool_is_made_once_and_then_changed) {
  QuietSegment s;
  const auto set = [&s](const char* json) {
    return s.admin.set_pool("p", parse_pool_settings(json).value()).value();
  };
  EXPECT_TRUE(set(R"({"queues":["a"]})"));
  EXPECT_FALSE(set(R"({"queues":["a","b"],"concurrency":3})"));
  EXPECT_EQ(s.observer.pool("p")->settings.queues, (Names{"a", "b"}));
  EXPECT_EQ(s.observer.pool("p")->settings.concurrency, 3U);
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  EXPECT_TRUE(set(R"({"queues":["a"]})"));
}

}  // namespace
}  // namespace ojs_shm::test
