// SPDX-License-Identifier: Apache-2.0
// Workflows in the simulator: arrivals that come after others. Those of random graphs are judged by
// a replay of its own; every load has a printed seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_trace.hpp"
#include "worker_api/simulation/trace_workflows.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::int64_t kNever = SimulationOutcome::kNever;
using Places = std::vector<std::uint32_t>;

/// A millisecond of work on queue "default", for a job of workflow "w".
TraceArrival member(std::int64_t at_us, Places after = {}, const char* workflow = "w") {
  TraceArrival arrival;
  arrival.at_us = at_us;
  arrival.service_us = 1000;
  arrival.workflow = workflow;
  arrival.after = std::move(after);
  return arrival;
}

SimulationPlan plan_of(std::uint32_t workers, const std::string& settings = {}) {
  SimulationPlan plan;
  plan.workers.resize(1);
  plan.workers[0].count = workers;
  plan.workers[0].options.queues = {"default"};
  if (!settings.empty()) plan.queues = {{"default", parse_queue_settings(settings).value()}};
  return plan;
}

SimulationOutcome play(const Trace& trace, const SimulationPlan& plan) {
  auto outcome = simulate(trace, plan);
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome ? std::move(outcome).value() : SimulationOutcome{};
}

std::vector<std::int64_t> begins_of(const SimulationOutcome& outcome) {
  std::vector<std::int64_t> begins(outcome.came_us.size(), kNever);
  for (const SimulatedDispatch& dispatch : outcome.dispatches)
    begins[dispatch.arrival] = dispatch.at_us;
  return begins;
}

TEST(SimulatedWorkflows, a_chain_comes_step_by_step_whatever_times_the_trace_has) {
  Trace trace;
  trace.arrivals = {member(0), member(10, {0}), member(900'000, {1})};
  trace.arrivals[0].service_us = 5000;
  const SimulationOutcome outcome = play(trace, plan_of(3));
  EXPECT_THAT(outcome.came_us, ElementsAre(0, 5000, 6000));
  EXPECT_EQ(begins_of(outcome), outcome.came_us) << "no step waits for a worker";
  ASSERT_EQ(outcome.workflows.size(), 1U);
  EXPECT_TRUE(outcome.workflows[0].completed);
  EXPECT_EQ(outcome.workflows[0].ended_us, 7000);
  const SimulationReport report = report_of(trace, outcome);
  EXPECT_DOUBLE_EQ(report.all.max_ms, 0) << "a wait begins when the job comes";
  ASSERT_TRUE(report.workflows.has_value());
  EXPECT_EQ(report.workflows->served, 1U);
  EXPECT_DOUBLE_EQ(report.workflows->max_ms, 7);
}

TEST(SimulatedWorkflows, a_callback_comes_when_the_last_of_its_batch_has_ended) {
  Trace trace;
  trace.arrivals = {member(0), member(0), member(0), member(1, {0, 1, 2}), member(0, {}, "")};
  trace.arrivals[1].service_us = 7000;
  const SimulationOutcome outcome = play(trace, plan_of(2));
  EXPECT_EQ(outcome.came_us[3], 7000);
  EXPECT_EQ(outcome.came_us[4], 0) << "a job of no workflow";
  EXPECT_EQ(outcome.dispatches.size(), 5U);
}

TEST(SimulatedWorkflows, a_bound_refuses_all_of_it_or_none_and_never_what_comes_later) {
  Trace trace;
  trace.arrivals = {member(0),
                    member(0),
                    member(0),
                    member(1, {0, 1, 2}),
                    member(500, {}, "other"),
                    member(600, {4}, "other"),
                    member(600, {4}, "other"),
                    member(600, {4}, "other")};
  const SimulationOutcome outcome = play(trace, plan_of(1, R"({"backpressure":{"max_depth":2}})"));
  EXPECT_THAT(outcome.refused, UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_THAT(std::vector(outcome.came_us.begin(), outcome.came_us.begin() + 4),
              ElementsAre(kNever, kNever, kNever, kNever));
  EXPECT_EQ(outcome.dispatches.size(), 4U) << "three at once stand above the bound";
  const SimulationReport report = report_of(trace, outcome);
  EXPECT_EQ(report.all.arrived, 8U);
  EXPECT_EQ(report.all.refused, 4U);
  EXPECT_EQ(report.workflows->arrived, 2U);
  EXPECT_EQ(report.workflows->refused, 1U);
  EXPECT_EQ(report.workflows->served, 1U);
}

TEST(SimulatedWorkflows, what_comes_after_a_dropped_job_never_comes) {
  Trace trace;
  trace.arrivals = {member(0, {}, ""), member(100), member(200, {1}), member(300, {}, "")};
  trace.arrivals[0].service_us = 50'000;
  const SimulationOutcome outcome =
      play(trace, plan_of(1, R"({"backpressure":{"max_depth":1,"strategy":"drop_oldest"}})"));
  EXPECT_THAT(begins_of(outcome), ElementsAre(0, kNever, kNever, 50'000));
  EXPECT_EQ(outcome.came_us[2], kNever);
  ASSERT_EQ(outcome.workflows.size(), 1U);
  EXPECT_FALSE(outcome.workflows[0].completed);
  EXPECT_FALSE(outcome.workflows[0].refused);
}

TEST(SimulatedWorkflows, a_later_arrival_after_no_job_waits_for_its_time) {
  Trace trace;
  trace.arrivals = {member(0), member(4000), member(4001, {0, 1})};
  const SimulationOutcome outcome = play(trace, plan_of(4));
  EXPECT_THAT(outcome.came_us, ElementsAre(0, 4000, 5000));
  EXPECT_EQ(begins_of(outcome), outcome.came_us);
}

TEST(SimulatedWorkflows, what_cannot_be_played_is_refused_with_its_place) {
  Trace trace;
  const auto refusal = [&] {
    const auto outcome = simulate(trace, plan_of(1));
    EXPECT_EQ(outcome.code(), Code::kInvalid);
    return outcome ? std::string() : outcome.error().message;
  };
  trace.arrivals = {member(0), member(1, {2}), member(2, {1})};
  EXPECT_THAT(refusal(), HasSubstr("arrival 2 comes after itself"));
  trace.arrivals = {member(0), member(1, {7})};
  EXPECT_THAT(refusal(), HasSubstr("arrival 2 comes after one that is not there"));
  trace.arrivals = {member(0), member(1, {0})};
  trace.arrivals[1].unique = R"({"fingerprint":"00000000000000000000000000000001"})";
  EXPECT_THAT(refusal(), HasSubstr("arrival 2 is unique"));
  trace.arrivals.assign(513, member(0));
  EXPECT_THAT(refusal(), HasSubstr("arrival 513 is one too many"));
}

TEST(SimulatedWorkflows, the_largest_are_played) {
  Trace trace;  // two layers of 256, each job of the second after all of the first
  Places first;
  for (std::uint32_t i = 0; i < 256; ++i) first.push_back(i);
  trace.arrivals.assign(256, member(0));
  trace.arrivals.resize(512, member(1, first));
  const SimulationOutcome outcome = play(trace, plan_of(300));
  EXPECT_EQ(outcome.dispatches.size(), 512U);
  EXPECT_EQ(outcome.came_us.back(), 1000);
  EXPECT_EQ(outcome.end_us, 2000);
}

TEST(SimulatedWorkflows,
     no_job_of_a_random_graph_begins_before_all_that_it_comes_after_have_ended) {
  Seeded random;
  for (int load = 0; load < 100; ++load) {
    Trace trace;
    std::int64_t at = 0;
    for (std::uint32_t i = 0, jobs = static_cast<std::uint32_t>(random.between(2, 80)); i < jobs;
         ++i) {
      TraceArrival arrival = member(at += random.between(0, 3000), {}, "");
      arrival.service_us = random.between(0, 9000);
      arrival.priority = random.between(0, 3);
      for (std::uint32_t before = 0; before < i; ++before)
        if (random.between(0, 12) == 0) arrival.after.push_back(before);
      trace.arrivals.push_back(std::move(arrival));
    }
    const SimulationPlan plan = plan_of(static_cast<std::uint32_t>(random.between(1, 5)));
    const SimulationOutcome outcome = play(trace, plan);
    const std::vector<std::int64_t> begins = begins_of(outcome);
    ASSERT_EQ(outcome.dispatches.size(), trace.arrivals.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      std::int64_t ready = trace.arrivals[i].after.empty() ? outcome.came_us[i] : 0;
      for (const std::uint32_t before : trace.arrivals[i].after)
        ready = std::max(ready, begins[before] + trace.arrivals[before].service_us);
      ASSERT_EQ(outcome.came_us[i], ready) << "job " << i;
      ASSERT_GE(begins[i], ready) << "job " << i;
    }
    for (const SimulatedWorkflow& workflow : outcome.workflows) EXPECT_TRUE(workflow.completed);
    ASSERT_EQ(begins_of(play(trace, plan)), begins) << "the same load, the same outcome";
  }
}

// ---- what a job came after, as a living segment tells it ----------------------------------------

WorkflowSpec job_of(std::string_view type) {
  WorkflowSpec part;
  part.job.type = type;
  part.job.retry.max_attempts = 1;
  return part;
}

WorkflowSpec of_kind(WorkflowKind kind, std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec;
  spec.kind = kind;
  spec.steps = std::move(steps);
  return spec;
}

/// Works everything off, and asks at each job what it came after; types in place of ids.
std::map<std::string, std::vector<std::string>> before_each(const WorkflowSpec& spec,
                                                            std::string_view failing = {}) {
  QuietSegment s;
  const std::string id = s.producer.create_workflow(spec).value();
  std::map<std::string, std::string> types;
  std::map<std::string, std::vector<std::string>> before;
  while (s.worker.try_fetch(s.job)) {
    const std::string type(s.job.type()), job(s.job.id());
    types[job] = type;
    for (const std::string& each : jobs_before(s.observer.workflow(id).value(), job))
      before[type].push_back(types[each]);
    before[type];
    EXPECT_TRUE(type == failing ? s.worker.nack(s.job, failure(false)).ok()
                                : s.worker.ack(s.job).ok());
  }
  return before;
}

TEST(JobsBefore, are_the_last_of_the_step_before_and_all_of_a_batch_for_its_callbacks) {
  WorkflowSpec batch =
      of_kind(WorkflowKind::kBatch,
              {job_of("b"), of_kind(WorkflowKind::kChain, {job_of("c1"), job_of("c2")})});
  batch.on_success = {job_of("good")};
  batch.on_complete = {job_of("any")};
  auto before = before_each(of_kind(WorkflowKind::kChain, {job_of("a"), batch, job_of("z")}));
  EXPECT_THAT(before.at("a"), IsEmpty());
  EXPECT_THAT(before["b"], ElementsAre("a"));
  EXPECT_THAT(before["c1"], ElementsAre("a"));
  EXPECT_THAT(before["c2"], ElementsAre("c1"));
  EXPECT_THAT(before["good"], ElementsAre("b", "c2"));
  EXPECT_THAT(before["any"], ElementsAre("b", "c2"));
  EXPECT_THAT(before["z"], UnorderedElementsAre("any", "good"));
}

TEST(JobsBefore, a_callback_that_was_not_called_stands_for_its_batch) {
  WorkflowSpec batch = of_kind(WorkflowKind::kBatch, {job_of("b"), job_of("c")});
  batch.on_failure = {job_of("bad")};
  const WorkflowSpec whole = of_kind(WorkflowKind::kChain, {batch, job_of("z")});
  auto before = before_each(whole);
  EXPECT_THAT(before["z"], ElementsAre("b", "c"));
  EXPECT_FALSE(before.contains("bad"));
  before = before_each(whole, "c");
  EXPECT_THAT(before["bad"], ElementsAre("b", "c"));
  EXPECT_THAT(before["z"], ElementsAre("bad"));
}

TEST(JobsBefore, are_what_a_step_of_a_graph_depends_on) {
  std::vector<WorkflowSpec> steps = {job_of("last"), job_of("a"), job_of("b"), job_of("never")};
  for (WorkflowSpec& step : steps) step.name = step.job.type;
  steps[0].depends_on = {"never", "b"};
  steps[0].when = StepCondition::kComplete;
  steps[3].depends_on = {"a"};
  steps[3].when = StepCondition::kFailure;
  auto before = before_each(of_kind(WorkflowKind::kGraph, steps));
  EXPECT_THAT(before["last"], UnorderedElementsAre("a", "b"))
      << "a step that never ran stands for those before itself";
  EXPECT_FALSE(before.contains("never"));
}

// ---- lines of a trace ---------------------------------------------------------------------------

TEST(Trace, workflows_are_read_in_any_order_and_what_did_not_arrive_is_left_out) {
  TraceReader reader;
  ASSERT_TRUE(reader.take(print_trace_head({"ojs", "", 0})).ok());
  WorkflowInfo workflow;
  workflow.id = "w";
  workflow.root.kind = WorkflowKind::kChain;
  EXPECT_EQ(print_trace_workflow(workflow), R"({"workflow":{"id":"w","kind":"chain"}})");
  ASSERT_TRUE(reader.take(print_trace_workflow(workflow)).ok());
  const std::vector<std::string> after = {"first", "gone"};
  const std::string line = print_trace_arrival("second", member(2000), after);
  EXPECT_THAT(line, HasSubstr(R"("workflow":"w","after":["first","gone"])"));
  ASSERT_TRUE(reader.take(line).ok());
  ASSERT_TRUE(reader.take(print_trace_arrival("first", member(1000))).ok());
  const Trace trace = reader.finish(9);
  ASSERT_EQ(trace.arrivals.size(), 2U);
  EXPECT_EQ(trace.arrivals[0].workflow, "w");
  EXPECT_THAT(trace.arrivals[0].after, IsEmpty());
  EXPECT_THAT(trace.arrivals[1].after, ElementsAre(0));
  TraceReader wrong;
  ASSERT_TRUE(wrong.take(print_trace_head({"ojs", "", 0})).ok());
  EXPECT_EQ(wrong.take(R"({"arrival":{"at_ms":1,"job":"x","after":"y"}})").code(), Code::kInvalid);
}

}  // namespace
}  // namespace ojs_shm::test
