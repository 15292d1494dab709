// SPDX-License-Identifier: Apache-2.0
// The simulator, and what random loads show of the policies that it drives. A replay of each
// outcome judges it by rules of its own; every load has a printed seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/seed.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_trace.hpp"
#include "worker_api/simulation/simulation.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;

constexpr int kLoads = 350;  // of each property

SimulationOutcome play(const Trace& trace, const SimulationPlan& plan) {
  auto outcome = simulate(trace, plan);
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome ? std::move(outcome).value() : SimulationOutcome{};
}

SimulatedWorkers workers(std::uint32_t count, std::vector<std::string> queues = {"default"},
                         std::vector<std::uint32_t> weights = {}) {
  SimulatedWorkers made;
  made.count = count;
  made.options.queues = std::move(queues);
  made.options.weights = weights;
  if (!weights.empty()) made.options.strategy = QueueStrategy::kWeighted;
  return made;
}

QueueSettings settings(const std::string& json) { return parse_queue_settings(json).value(); }

SyntheticLoad random_load(Seeded& random) {
  SyntheticLoad load;
  load.seed = random.bits();
  load.jobs = static_cast<std::uint32_t>(random.between(1, 120));
  load.rate = random.coin() ? 0 : static_cast<double>(random.between(20, 400));
  load.service_us = random.between(0, 20'000);
  load.fixed_service = random.coin();
  load.priorities.clear();
  for (std::int64_t level = 0, levels = random.between(1, 5); level < levels; ++level)
    load.priorities.emplace_back(random.between(0, 255), static_cast<double>(random.between(1, 9)));
  return load;
}

/// Arrivals in the order in which the engine saw them, and who waits at each dispatch.
template <class Judge>
void replay(const Trace& trace, const SimulationOutcome& outcome, Judge judge) {
  std::set<std::uint32_t> refused(outcome.refused.begin(), outcome.refused.end()), waiting;
  std::uint32_t next = 0;
  for (const SimulatedDispatch& dispatch : outcome.dispatches) {
    for (; next < trace.arrivals.size() && trace.arrivals[next].at_us <= dispatch.at_us; ++next)
      if (!refused.contains(next)) waiting.insert(next);
    ASSERT_TRUE(waiting.contains(dispatch.arrival))
        << "served twice, before it came, or though it was refused";
    judge(dispatch, waiting);
    waiting.erase(dispatch.arrival);
  }
  EXPECT_EQ(outcome.dispatches.size() + refused.size(), trace.arrivals.size())
      << "served or refused, nothing else";
}

TEST(Simulation, waits_are_those_of_a_queue_with_one_server) {
  Trace trace;
  for (const std::int64_t at : {0, 1000, 2000}) {
    TraceArrival arrival;
    arrival.at_us = at;
    arrival.service_us = 5000;
    arrival.priority = at == 2000 ? 0 : 2;
    trace.arrivals.push_back(arrival);
  }
  const SimulationOutcome outcome = play(trace, {.workers = {workers(1)}});
  ASSERT_EQ(outcome.dispatches.size(), 3U);
  EXPECT_EQ(outcome.dispatches[1].arrival, 2U) << "the better priority goes first";
  EXPECT_EQ(outcome.dispatches[1].at_us, 5000);
  EXPECT_EQ(outcome.dispatches[2].at_us, 10'000);
  EXPECT_EQ(outcome.end_us, 15'000);
  const SimulationReport report = report_of(trace, outcome);
  EXPECT_EQ(report.all.served, 3U);
  EXPECT_DOUBLE_EQ(report.all.p50_ms, 3);
  EXPECT_DOUBLE_EQ(report.all.max_ms, 9);
  EXPECT_DOUBLE_EQ(report.all.mean_ms, 4);
  ASSERT_EQ(report.levels.size(), 2U);
  EXPECT_EQ(report.levels[0].name, "default 0");
  EXPECT_DOUBLE_EQ(report.levels[0].max_ms, 3);
  EXPECT_TRUE(report.tenants.empty());
}

TEST(Simulation, the_same_load_gives_the_same_outcome) {
  Seeded random;
  const Trace trace = synthetic_trace(random_load(random));
  const SimulationPlan plan{.queues = {{"default", settings(R"({"aging":{"interval":"PT1S"}})")}},
                            .workers = {workers(2)}};
  const auto steps = [&] {
    std::vector<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>> all;
    for (const SimulatedDispatch& each : play(trace, plan).dispatches)
      all.emplace_back(each.at_us, each.arrival, each.worker);
    return all;
  };
  EXPECT_EQ(steps(), steps());
}

TEST(Simulation, strict_order_and_fifo_hold_at_every_dispatch_and_no_worker_idles_beside_a_job) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    const SyntheticLoad load = random_load(random);
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    SimulatedWorkers kind = workers(static_cast<std::uint32_t>(random.between(1, 4)));
    kind.concurrency = static_cast<std::uint32_t>(random.between(1, 3));
    const SimulationOutcome outcome = play(trace, {.workers = {kind}});
    std::multiset<std::int64_t> busy;  // until when
    replay(trace, outcome,
           [&](const SimulatedDispatch& dispatch, const std::set<std::uint32_t>& waiting) {
             const auto rank = [&](std::uint32_t job) {
               return std::pair(trace.arrivals[job].priority, job);
             };
             const std::uint32_t best = *std::min_element(
                 waiting.begin(), waiting.end(),
                 [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
             ASSERT_EQ(dispatch.arrival, best);
             // It began when it came, or when a lane became free.
             busy.erase(busy.begin(), busy.lower_bound(dispatch.at_us));
             const bool at_once = trace.arrivals[dispatch.arrival].at_us == dispatch.at_us;
             ASSERT_TRUE(at_once || busy.contains(dispatch.at_us))
                 << "a worker had nothing to do before " << dispatch.at_us;
             if (const auto ended = busy.find(dispatch.at_us); ended != busy.end())
               busy.erase(ended);
             busy.insert(dispatch.at_us + trace.arrivals[dispatch.arrival].service_us);
             ASSERT_LE(busy.size(), kind.count * kind.concurrency);
           });
  }
}

TEST(Simulation, weights_of_levels_are_exact_in_every_cycle_while_all_of_them_wait) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random);
    load.rate = 0;
    load.jobs = static_cast<std::uint32_t>(random.between(60, 200));
    load.priorities = {{0, 1}, {1, 1}, {2, 1}};
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    std::map<std::int64_t, std::int64_t> weights, left;
    std::string json;
    for (std::int64_t level = 0; level < 3; ++level) {
      weights[level] = random.between(1, 7);
      json += (level == 0 ? "\"" : ",\"") + std::to_string(level) +
              "\":" + std::to_string(weights[level]);
    }
    for (const TraceArrival& arrival : trace.arrivals) ++left[arrival.priority];
    const SimulationOutcome outcome =
        play(trace, {.queues = {{"default", settings("{\"level_weights\":{" + json + "}}")}},
                     .workers = {workers(1)}});
    std::int64_t divisor = std::gcd(std::gcd(weights[0], weights[1]), weights[2]);
    const std::int64_t cycle = (weights[0] + weights[1] + weights[2]) / divisor;
    std::map<std::int64_t, std::int64_t> in_cycle;
    std::int64_t count = 0;
    for (const SimulatedDispatch& dispatch : outcome.dispatches) {
      const std::int64_t level = trace.arrivals[dispatch.arrival].priority;
      ++in_cycle[level];
      if (++count == cycle) {
        for (const auto& [each, weight] : weights)
          ASSERT_EQ(in_cycle[each], weight / divisor) << "level " << each;
        in_cycle.clear(), count = 0;
      }
      if (--left[level] == 0) break;  // from here not all of them wait
    }
  }
}

TEST(Simulation, weights_of_queues_are_exact_in_every_cycle_of_a_worker_while_all_of_them_wait) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random);
    load.rate = 0;
    load.jobs = static_cast<std::uint32_t>(random.between(60, 200));
    load.queues = {{"a", 1}, {"b", 1}, {"c", 1}};
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    std::map<std::string, std::uint32_t> weights, left;
    for (const auto& [queue, weight] : load.queues)
      weights[queue] = static_cast<std::uint32_t>(random.between(1, 7));
    for (const TraceArrival& arrival : trace.arrivals) ++left[arrival.queue];
    const SimulationOutcome outcome = play(
        trace,
        {.workers = {workers(1, {"a", "b", "c"}, {weights["a"], weights["b"], weights["c"]})}});
    const std::uint32_t cycle = weights["a"] + weights["b"] + weights["c"];
    std::map<std::string, std::uint32_t> in_cycle;
    std::uint32_t count = 0;
    for (const SimulatedDispatch& dispatch : outcome.dispatches) {
      const std::string& queue = trace.arrivals[dispatch.arrival].queue;
      ++in_cycle[queue];
      if (++count == cycle) {
        for (const auto& [each, weight] : weights)
          ASSERT_EQ(in_cycle[each], weight) << "queue " << each;
        in_cycle.clear(), count = 0;
      }
      if (--left[queue] == 0) break;
    }
  }
}

/// docs/scheduling.md: a job of rank r is not passed by any that becomes available (r + 1)
/// intervals after it.
TEST(Simulation, with_ageing_nobody_is_passed_by_those_that_came_too_long_after) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random);
    load.jobs = static_cast<std::uint32_t>(random.between(50, 200));
    load.rate = static_cast<double>(random.between(2, 40));
    load.service_us = static_cast<std::int64_t>(1.2e6 / load.rate);  // more than one worker can do
    load.priorities = {{0, 8}, {1, 1}, {2, 1}, {5, 1}};
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    const std::int64_t interval_ms = random.between(200, 5000);
    AgingSettings aging;
    aging.preset = "ojs";
    aging.interval_ms = static_cast<std::uint32_t>(interval_ms);
    QueueSettings aged;
    aged.aging = aging;
    const SimulationOutcome outcome =
        play(trace, {.queues = {{"default", aged}}, .workers = {workers(1)}});
    replay(trace, outcome,
           [&](const SimulatedDispatch& dispatch, const std::set<std::uint32_t>& waiting) {
             const std::int64_t taken = trace.arrivals[dispatch.arrival].at_us / 1000;
             for (const std::uint32_t passed : waiting) {
               const std::int64_t bound = (trace.arrivals[passed].priority + 1) * interval_ms;
               ASSERT_LT(taken - trace.arrivals[passed].at_us / 1000, bound)
                   << dispatch.arrival << " passed " << passed << " of rank "
                   << trace.arrivals[passed].priority;
             }
           });
  }
}

TEST(Simulation, a_bound_refuses_exactly_when_that_many_wait) {
  Seeded random;
  for (int i = 0; i < kLoads; ++i) {
    SyntheticLoad load = random_load(random);
    load.rate = static_cast<double>(random.between(50, 800));
    SCOPED_TRACE("load " + std::to_string(load.seed));
    const Trace trace = synthetic_trace(load);
    const std::int64_t bound = random.between(1, 6);
    QueueSettings bounded;
    bounded.max_depth = static_cast<std::uint64_t>(bound);
    const SimulationOutcome outcome =
        play(trace, {.queues = {{"default", bounded}}, .workers = {workers(1)}});
    const std::set<std::uint32_t> refused(outcome.refused.begin(), outcome.refused.end());
    // A fetch gives room to arrivals of a later moment, for at one moment all arrive before any
    // worker fetches.
    auto dispatch = outcome.dispatches.begin();
    std::int64_t depth = 0;
    for (std::uint32_t number = 0; number < trace.arrivals.size(); ++number) {
      for (; dispatch != outcome.dispatches.end() && dispatch->at_us < trace.arrivals[number].at_us;
           ++dispatch)
        --depth;
      ASSERT_EQ(refused.contains(number), depth >= bound)
          << "arrival " << number << " at depth " << depth;
      if (!refused.contains(number)) ++depth;
    }
  }
}

TEST(Simulation, a_bound_by_bytes_plays_the_sizes) {
  SyntheticLoad load;
  load.jobs = 50;
  load.rate = 0;
  load.size = 1000;
  QueueSettings bounded;
  bounded.max_size_bytes = 10'500;
  const SimulationOutcome outcome =
      play(synthetic_trace(load), {.queues = {{"default", bounded}}, .workers = {workers(1)}});
  EXPECT_EQ(outcome.dispatches.size(), 10U);
  EXPECT_EQ(outcome.refused.size(), 40U);
}

TEST(Simulation, shares_and_waits_are_told_for_each_queue_level_and_tenant) {
  SyntheticLoad load;
  load.seed = 7;
  load.jobs = 2000;
  load.rate = 1000;
  load.service_us = 2000;
  load.queues = {{"a", 1}, {"b", 1}};
  load.priorities = {{1, 1}, {3, 1}};
  load.tenants = {{"x", 3}, {"y", 1}};
  const Trace trace = synthetic_trace(load);
  const SimulationReport report =
      report_of(trace, play(trace, {.workers = {workers(1, {"a", "b"}, {3, 1})}}));
  ASSERT_EQ(report.queues.size(), 2U);
  EXPECT_NEAR(report.queues[0].share, 0.75, 0.01) << "both always had something waiting";
  ASSERT_EQ(report.levels.size(), 4U);
  EXPECT_EQ(report.levels[1].name, "a 3");
  EXPECT_LT(report.levels[0].p95_ms, report.levels[1].p50_ms) << "strict within a queue";
  ASSERT_EQ(report.tenants.size(), 2U);
  EXPECT_NEAR(static_cast<double>(report.tenants[0].arrived), 1500, 100);
  EXPECT_LE(report.all.p50_ms, report.all.p95_ms);
  EXPECT_LE(report.all.p99_ms, report.all.max_ms);
}

TraceArrival unique_arrival(std::int64_t at_us, const char* conflict) {
  TraceArrival arrival;
  arrival.at_us = at_us, arrival.service_us = 10'000;
  arrival.unique = R"({"fingerprint":"00000000000000000000000000000001","on_conflict":")" +
                   std::string(conflict) + "\"}";
  return arrival;
}

TEST(Simulation, a_unique_job_meets_those_of_its_key_that_are_still_there) {
  SimulationPlan plan;
  plan.workers = {workers(1)};
  Trace trace;
  for (const std::int64_t at : {0, 5'000, 9'000, 20'000})
    trace.arrivals.push_back(unique_arrival(at, "reject"));
  SimulationOutcome outcome = play(trace, plan);
  EXPECT_THAT(outcome.duplicates, ElementsAre(1, 2));
  EXPECT_EQ(outcome.dispatches.size(), 2U);
  EXPECT_EQ(report_of(trace, outcome).all.duplicates, 2U);

  for (TraceArrival& arrival : trace.arrivals) arrival = unique_arrival(arrival.at_us, "ignore");
  EXPECT_THAT(play(trace, plan).duplicates, ElementsAre(1, 2));

  // Each takes the place of the one before, also from its worker, which goes on in vain.
  for (TraceArrival& arrival : trace.arrivals) arrival = unique_arrival(arrival.at_us, "replace");
  outcome = play(trace, plan);
  EXPECT_TRUE(outcome.duplicates.empty());
  std::vector<std::uint32_t> served;
  for (const SimulatedDispatch& dispatch : outcome.dispatches) served.push_back(dispatch.arrival);
  EXPECT_THAT(served, ElementsAre(0, 2, 3));
}

TEST(Simulation, what_cannot_be_played_is_refused) {
  Trace trace;
  trace.arrivals.emplace_back();
  EXPECT_EQ(simulate(trace, {}).code(), Code::kInvalid);
  trace.arrivals[0].priority = 1000;
  EXPECT_EQ(simulate(trace, {.workers = {workers(1)}}).code(), Code::kInvalid);
}

TEST(Trace, what_was_printed_reads_as_the_same_arrivals) {
  TraceArrival arrival;
  arrival.at_us = 1500, arrival.queue = "mail", arrival.type = "mail.send", arrival.tenant = "acme";
  arrival.priority = 4, arrival.size = 77;
  TraceReader reader;
  ASSERT_TRUE(reader.take(print_trace_head({"qo", "here", 1})).ok());
  ASSERT_TRUE(reader.take(print_trace_service("x", 2.5)).ok())
      << "a service may stand before its arrival";
  ASSERT_TRUE(reader.take(print_trace_arrival("x", arrival)).ok());
  ASSERT_TRUE(reader.take(print_trace_service("x", 1)).ok()) << "a second attempt";
  arrival.at_us = 500;
  ASSERT_TRUE(reader.take(print_trace_arrival("y", arrival)).ok());
  ASSERT_TRUE(reader.take(R"({"lost":3})").ok());
  const Trace trace = reader.finish(9);
  EXPECT_EQ(trace.convention, "qo");
  ASSERT_EQ(trace.arrivals.size(), 2U);
  EXPECT_EQ(trace.arrivals[0].at_us, 0);
  EXPECT_EQ(trace.arrivals[1].at_us, 1000);
  EXPECT_EQ(trace.arrivals[1].service_us, 3500);
  EXPECT_EQ(trace.arrivals[0].service_us, 3500) << "the mean of its type";
  EXPECT_EQ(trace.arrivals[1].queue, "mail");
  EXPECT_EQ(trace.arrivals[1].tenant, "acme");
  EXPECT_EQ(trace.arrivals[1].priority, 4);
  EXPECT_EQ(trace.arrivals[1].size, 77U);
}

TEST(Trace, what_is_none_is_refused) {
  const std::string head = print_trace_head({"ojs", "", 0});
  EXPECT_EQ(TraceReader().take(R"({"ojs_shm_trace":2})").code(), Code::kOtherFormat);
  for (const std::string line : {R"([1])", R"({"arrival":{"at_ms":1}})", "{", R"({})"})
    EXPECT_EQ(TraceReader().take(line).code(), Code::kInvalid) << line;
  for (const std::string line : {R"({"arrival":{"job":"x"}})", R"({"arrival":{"at_ms":-1}})",
                                 R"({"service":7})", R"({"service":{"job":"x","ms":1e99}})"}) {
    TraceReader reader;
    ASSERT_TRUE(reader.take(head).ok());
    EXPECT_EQ(reader.take(line).code(), Code::kInvalid) << line;
  }
  EXPECT_EQ(tenant_of(R"({"meta":{"tenant_id":"t"}})"), "t");
  EXPECT_EQ(tenant_of(R"({"meta":[1]})"), "");
}

}  // namespace
}  // namespace ojs_shm::test
