// SPDX-License-Identifier: Apache-2.0
// Pools of workers in the simulator, and what random loads show of their strategies. A replay of
// each outcome judges it by rules of its own; every load has a printed seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/support/seed.hpp"
#include "worker_api/json/envelope_trace.hpp"
#include "worker_api/roles/worker_pools.hpp"
#include "worker_api/simulation/simulation.hpp"

namespace ojs_shm::test {
namespace {

constexpr int kLoads = 250;  // of each property
const std::vector<std::string> kNames = {"a", "b", "c", "d", "e"};

SimulationOutcome play(const Trace& trace, const SimulationPlan& plan = {}) {
  auto outcome = simulate(trace, plan);
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome ? std::move(outcome).value() : SimulationOutcome{};
}

/// Two to five queues that one pool serves, with one to four workers; more work than they can do,
/// or less.
SyntheticLoad random_load(Seeded& random, PoolStrategy strategy) {
  SyntheticLoad load;
  load.seed = random.bits();
  load.jobs = static_cast<std::uint32_t>(random.between(20, 160));
  load.rate = random.coin() ? 0 : static_cast<double>(random.between(20, 1000));
  load.service_us = random.between(0, 20'000);
  load.fixed_service = random.coin();
  load.queues.clear();
  SimulatedPool pool{"p",
                     {},
                     static_cast<std::uint32_t>(random.between(1, 4)),
                     static_cast<std::uint32_t>(random.between(1, 3))};
  pool.settings.strategy = strategy;
  for (std::int64_t i = 0, queues = random.between(2, 5); i < queues; ++i) {
    const std::string& name = kNames[static_cast<std::size_t>(i)];
    load.queues.emplace_back(name, static_cast<double>(random.between(1, 4)));
    pool.settings.queues.push_back(name);
    if (strategy == PoolStrategy::kWeighted)
      pool.settings.weights.emplace_back(name, static_cast<std::uint32_t>(random.between(1, 7)));
  }
  std::shuffle(pool.settings.queues.begin(), pool.settings.queues.end(), random.numbers());
  load.pools.push_back(pool);
  return load;
}

/// The dispatches in their order, with how many jobs wait in each queue at that moment, the
/// dispatched one among them.
template <class Judge>
void replay(const Trace& trace, const SimulationOutcome& outcome, Judge judge) {
  std::map<std::string, int> waiting;
  std::uint32_t next = 0;
  std::set<std::uint32_t> served;
  for (const SimulatedDispatch& dispatch : outcome.dispatches) {
    for (; next < trace.arrivals.size() && trace.arrivals[next].at_us <= dispatch.at_us; ++next)
      ++waiting[trace.arrivals[next].queue];
    ASSERT_TRUE(served.insert(dispatch.arrival).second) << "served twice";
    const std::string& queue = trace.arrivals[dispatch.arrival].queue;
    ASSERT_GT(waiting[queue], 0) << "served before it came";
    judge(dispatch, queue, waiting);
    --waiting[queue];
  }
  EXPECT_EQ(served.size(), trace.arrivals.size());
}

std::map<std::string, int> turns_of(const PoolSettings& settings) {
  std::map<std::string, int> turns;
  int divisor = 0;
  for (const std::string& queue : settings.queues) turns[queue] = 1;
  for (const auto& [queue, weight] : settings.weights) turns[queue] = static_cast<int>(weight);
  for (const auto& [queue, weight] : turns) divisor = std::gcd(divisor, weight);
  for (auto& [queue, weight] : turns) weight /= divisor;
  return turns;
}

/// docs/scheduling.md: between two jobs of a queue that has some, at most W minus its weight of
/// others; and in each cycle in which all have jobs, exactly their weights.
void shares_and_gaps_hold(PoolStrategy strategy) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    const SyntheticLoad load = random_load(random, strategy);
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    const std::map<std::string, int> turns = turns_of(load.pools[0].settings);
    const int cycle = std::accumulate(turns.begin(), turns.end(), 0,
                                      [](int sum, auto& each) { return sum + each.second; });
    std::map<std::string, int> others, in_cycle;
    int full = 0;
    replay(trace, play(trace),
           [&](const SimulatedDispatch&, const std::string& queue, const auto& waiting) {
             bool all = true;
             for (const auto& [each, weight] : turns) {
               const auto found = waiting.find(each);
               const bool waits = found != waiting.end() && found->second > 0;
               all = all && waits;
               if (each == queue || !waits) {
                 others[each] = 0;
               } else {
                 ASSERT_LE(++others[each], cycle - weight) << each << " was passed over";
               }
             }
             if (!all) full = 0, in_cycle.clear();
             if (!all) return;
             ++in_cycle[queue];
             if (++full < cycle) return;
             for (const auto& [each, weight] : turns) ASSERT_EQ(in_cycle[each], weight) << each;
             full = 0, in_cycle.clear();
           });
  }
}

TEST(SimulatedPools, weighted_shares_are_exact_and_gaps_bounded_over_all_workers) {
  shares_and_gaps_hold(PoolStrategy::kWeighted);
}

TEST(SimulatedPools, round_robin_serves_each_queue_that_has_jobs_once_in_a_cycle) {
  shares_and_gaps_hold(PoolStrategy::kRoundRobin);
}

TEST(SimulatedPools, strict_serves_the_first_queue_that_has_a_job) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    const SyntheticLoad load = random_load(random, PoolStrategy::kStrict);
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    replay(trace, play(trace),
           [&](const SimulatedDispatch&, const std::string& queue, auto waiting) {
             for (const std::string& each : load.pools[0].settings.queues) {
               if (each == queue) break;
               ASSERT_EQ(waiting[each], 0) << each << " goes before " << queue;
             }
           });
  }
}

TEST(SimulatedPools, least_loaded_always_serves_a_deepest_backlog) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    const SyntheticLoad load = random_load(random, PoolStrategy::kLeastLoaded);
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    replay(trace, play(trace),
           [&](const SimulatedDispatch&, const std::string& queue, auto waiting) {
             for (const auto& [each, jobs] : waiting)
               ASSERT_GE(waiting[queue], jobs) << each << " is deeper";
           });
  }
}

TEST(SimulatedPools, the_concurrency_of_a_pool_is_never_exceeded_and_always_used) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random, static_cast<PoolStrategy>(random.between(0, 3)));
    SimulatedPool& pool = load.pools[0];
    pool.settings.concurrency = static_cast<std::uint64_t>(random.between(1, 6));
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(
        pool.settings.concurrency, std::uint64_t{pool.workers} * pool.concurrency));
    std::multiset<std::int64_t> busy;  // until when
    replay(trace, play(trace),
           [&](const SimulatedDispatch& dispatch, const std::string&, const auto&) {
             const bool came_now = trace.arrivals[dispatch.arrival].at_us == dispatch.at_us;
             ASSERT_TRUE(came_now || busy.contains(dispatch.at_us)) << "it could have begun before";
             // Of what ends at this moment as much is over as has made room.
             busy.erase(busy.begin(), busy.lower_bound(dispatch.at_us));
             if (const auto ended = busy.find(dispatch.at_us); ended != busy.end())
               busy.erase(ended);
             busy.insert(dispatch.at_us + trace.arrivals[dispatch.arrival].service_us);
             ASSERT_LE(busy.size(), most);
           });
  }
}

/// docs/scheduling.md: of any n dispatches each queue that has jobs all the while gets at least
/// floor(n * r).
TEST(SimulatedPools, the_least_share_holds_in_every_window_whatever_the_strategy) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random, static_cast<PoolStrategy>(random.between(0, 3)));
    PoolSettings& settings = load.pools[0].settings;
    const double most = 1 / static_cast<double>(settings.queues.size());
    settings.starvation_prevention.enabled = true;
    settings.starvation_prevention.min_dispatch_ratio =
        most * static_cast<double>(random.between(2, 10)) / 10;
    settings.starvation_prevention.rotation_interval_ms =
        static_cast<std::uint32_t>(random.between(1, 3'600'000));
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    // For each queue its stretches: dispatches during which it has jobs, and which of them are its
    // own.
    std::map<std::string, std::vector<bool>> stretch;
    const auto judge = [&](const std::string& queue) {
      std::vector<bool>& own = stretch[queue];
      for (std::size_t begin = 0; begin < own.size(); ++begin) {
        int served = 0;
        for (std::size_t end = begin; end < own.size(); ++end) {
          served += own[end] ? 1 : 0;
          const double share = static_cast<double>(end + 1 - begin) *
                               settings.starvation_prevention.min_dispatch_ratio;
          ASSERT_GE(served, static_cast<int>(std::floor(share + 1e-9))) << queue;
        }
      }
      own.clear();
    };
    replay(trace, play(trace),
           [&](const SimulatedDispatch&, const std::string& queue, auto waiting) {
             for (const std::string& each : settings.queues)
               waiting[each] > 0 ? stretch[each].push_back(each == queue) : judge(each);
           });
    for (const std::string& each : settings.queues) judge(each);
  }
}

TEST(SimulatedPools, nobody_but_its_own_workers_gets_jobs_of_an_isolated_pool) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random, static_cast<PoolStrategy>(random.between(0, 3)));
    load.pools[0].settings.isolated = true;
    SimulatedPool second{"open", {}, 1, 1};  // lists them too, and gets nothing of them
    second.settings.queues = kNames;
    load.queues.emplace_back("z", 2);
    second.settings.queues.emplace_back("z");
    load.pools.push_back(second);
    SimulatedWorkers free;
    free.options.queues = load.pools[0].settings.queues;
    free.options.queues.emplace_back("z");
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    const SimulationOutcome outcome = play(trace, {.workers = {free}});
    replay(trace, outcome,
           [&](const SimulatedDispatch& dispatch, const std::string& queue, const auto&) {
             ASSERT_EQ(queue != "z", outcome.pool_of_worker[dispatch.worker] == "p") << queue;
           });
  }
}

TEST(SimulatedPools, shares_and_waits_are_told_for_each_pool) {
  SyntheticLoad load;
  load.seed = 11;
  load.jobs = 2000;
  load.rate = 1000;
  load.service_us = 2000;
  load.queues = {{"a", 2}, {"b", 1}, {"c", 1}};
  load.pools = {{"web", {}, 2, 1}, {"batch", {}, 1, 1}};
  load.pools[0].settings.queues = {"a"};
  load.pools[1].settings.queues = {"b"};
  SimulatedWorkers free;
  free.options.queues = {"c"};
  const Trace trace = synthetic_trace(load);
  const SimulationOutcome outcome = play(trace, {.workers = {free}});
  EXPECT_THAT(outcome.pool_of_worker, testing::ElementsAre("web", "web", "batch", ""));
  const SimulationReport report = report_of(trace, outcome);
  ASSERT_EQ(report.pools.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const SimulatedGroup &pool = report.pools[i],
                         &queue = report.queues[2 - i];  // "", batch, web: c, b, a
    EXPECT_EQ(pool.name, (std::vector<std::string>{"", "batch", "web"})[i]);
    EXPECT_EQ(pool.arrived, queue.arrived);
    EXPECT_EQ(pool.served, queue.served);
    EXPECT_DOUBLE_EQ(pool.share, queue.share);
    EXPECT_DOUBLE_EQ(pool.p95_ms, queue.p95_ms);
  }
  EXPECT_TRUE(report_of(synthetic_trace({}), {}).pools.empty());
}

TEST(SimulatedPools, a_load_s_pools_may_be_as_wide_as_an_engine_s) {
  SyntheticLoad load;
  load.jobs = 20;
  load.pools = {{"default", {}, 2, 1}};
  load.pools[0].settings.queues = {"default"};
  load.pools[0].settings.concurrency = 8192;
  EXPECT_EQ(play(synthetic_trace(load)).dispatches.size(), 20U);
  SimulatedWorkers member;  // names no pool, and so serves that one
  EXPECT_THAT(play(synthetic_trace(load), {.workers = {member}}).pool_of_worker,
              testing::ElementsAre("default", "default", "default"));
}

TEST(SimulatedPools, what_cannot_be_played_is_refused) {
  SyntheticLoad load;
  load.jobs = 3;
  load.pools = {{"p", {}, 1, 1}};
  const auto code = [&] { return simulate(synthetic_trace(load), {}).code(); };
  EXPECT_EQ(code(), Code::kInvalid) << "a pool without queues";
  load.pools[0].settings.queues = {"default"};
  load.pools.push_back(load.pools[0]);
  EXPECT_EQ(code(), Code::kInvalid) << "two of one name";
  load.pools.pop_back();
  load.pools[0].workers = 0;
  EXPECT_EQ(code(), Code::kInvalid) << "no lane works";
  load.pools[0].workers = 1, load.pools[0].concurrency = 0;
  EXPECT_EQ(code(), Code::kInvalid) << "a worker that does nothing";
}

TEST(Trace, pools_read_as_they_were_printed_and_the_last_word_on_one_holds) {
  SimulatedPool pool{"web", {}, 3, 2};
  pool.settings.queues = {"a", "b"};
  pool.settings.strategy = PoolStrategy::kWeighted;
  pool.settings.weights = {{"a", 3}, {"b", 1}};
  pool.settings.concurrency = 5;
  pool.settings.isolated = true;
  pool.settings.starvation_prevention = {true, 2000, 0.1};
  TraceReader reader;
  ASSERT_TRUE(reader.take(print_trace_head({"ojs", "", 0})).ok());
  ASSERT_TRUE(
      reader.take(R"({"pool":{"name":"web","workers":9,"settings":{"queues":["z"]}}})").ok());
  ASSERT_TRUE(reader.take(print_trace_pool(pool)).ok());
  for (const char* bad :
       {R"({"pool":{"name":"x"}})", R"({"pool":{"settings":{"queues":["a"]}}})", R"({"pool":[]})",
        R"({"pool":{"name":"x","workers":-1,"settings":{"queues":["a"]}}})",
        R"({"pool":{"name":"x","settings":{"queue":"a"}}})"})
    EXPECT_EQ(reader.take(bad).code(), Code::kInvalid) << bad;
  const Trace trace = reader.finish(9);
  ASSERT_EQ(trace.pools.size(), 1U);
  EXPECT_EQ(print_pool_settings(trace.pools[0].settings), print_pool_settings(pool.settings));
  EXPECT_EQ(trace.pools[0].workers, 9U) << "as many as there ever were";
  EXPECT_EQ(trace.pools[0].concurrency, 2U);
  EXPECT_EQ(print_pool_settings({{"a"}}), R"({"queues":["a"],"strategy":"round-robin"})");
}

}  // namespace
}  // namespace ojs_shm::test
