// SPDX-License-Identifier: Apache-2.0
// How workflows run: step by step, side by side, with the results of what came before.

#include "tests/unit/engine/workflows/workflow_specs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Workflows, a_chain_runs_step_by_step_and_passes_results) {
  const std::string id = create(chain({job_of("a"), job_of("b"), job_of("c")}));
  WorkflowInfo info = look(id);
  EXPECT_EQ(info.state, WorkflowState::kRunning);
  ASSERT_EQ(info.root.steps.size(), 3U);
  EXPECT_EQ(info.root.steps[0].state, StepState::kPending);
  EXPECT_EQ(info.root.steps[1].state, StepState::kWaiting);
  EXPECT_TRUE(info.root.steps[1].job_id.empty());
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(ack(R"({"a":1})"), "a");
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  EXPECT_EQ(s.job.type(), "b");
  EXPECT_EQ(s.job.workflow_id(), id);
  EXPECT_EQ(s.job.parent_results(), R"([{"a":1}])");
  EXPECT_EQ(s.queue().depth, 0U) << "c waits for b";
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(Workflows, a_later_step_gets_the_results_of_all_before_it) {
  const std::string id = create(chain({job_of("a"), job_of("b"), job_of("c")}));
  EXPECT_EQ(ack(R"({"a":1})"), "a");
  EXPECT_EQ(ack("[2]"), "b");
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  EXPECT_EQ(s.job.parent_results(), R"([{"a":1},[2]])");
  EXPECT_EQ(s.get(s.job.id()).parent_results, R"([{"a":1},[2]])");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const WorkflowInfo info = look(id);
  EXPECT_EQ(info.state, WorkflowState::kCompleted);
  EXPECT_EQ(info.completed, 3U);
  EXPECT_NE(info.ended_at_ms, 0U);
}

TEST_F(Workflows, a_group_ends_with_the_last_of_its_jobs) {
  const std::string id = create(group({job_of("a"), job_of("b"), job_of("c")}));
  EXPECT_EQ(s.queue().depth, 3U);
  EXPECT_EQ(fail(), "a");
  EXPECT_EQ(look(id).state, WorkflowState::kRunning);
  EXPECT_EQ(ack(), "b");
  EXPECT_EQ(look(id).state, WorkflowState::kRunning);
  EXPECT_EQ(ack(), "c");
  EXPECT_EQ(look(id).state, WorkflowState::kFailed);
}

TEST_F(Workflows, a_batch_calls_back_as_its_jobs_ended) {
  const std::string good = create(batch({job_of("a"), job_of("b")}));
  EXPECT_EQ(run_all(), (Types{"a", "b", "on.complete", "on.success"}));
  EXPECT_EQ(look(good).state, WorkflowState::kCompleted);
  EXPECT_EQ(look(good).root.steps.back().state, StepState::kSkipped);
  const std::string bad = create(batch({job_of("a"), job_of("b")}));
  EXPECT_EQ(fail(), "a");
  EXPECT_EQ(run_all(), (Types{"b", "on.complete", "on.failure"}));
  EXPECT_EQ(look(bad).state, WorkflowState::kCompleted) << "its callbacks succeeded";
  const std::string worse = create(batch({job_of("a")}));
  EXPECT_EQ(fail(), "a");
  EXPECT_EQ(ack(), "on.complete");
  EXPECT_EQ(fail(), "on.failure");
  EXPECT_EQ(look(worse).state, WorkflowState::kFailed);
}

TEST_F(Workflows, a_callback_gets_the_results_of_all_jobs) {
  create(batch({job_of("a"), job_of("b"), job_of("c")}));
  EXPECT_EQ(ack("1"), "a");
  EXPECT_EQ(fail(), "b");
  EXPECT_EQ(ack("{\"three\":3}"), "c");
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  EXPECT_EQ(s.job.type(), "on.complete");
  EXPECT_EQ(
      s.job.parent_results(),
      R"([1,{"error":{"code":"boom","type":"boom","message":"it did not work"}},{"three":3}])");
}

TEST_F(Workflows, parts_nest) {
  const std::string id = create(
      chain({job_of("a"), group({job_of("b"), chain({job_of("c"), job_of("d")})}), job_of("e")}));
  EXPECT_EQ(ack("1"), "a");
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  EXPECT_EQ(s.job.parent_results(), "[1]") << "each job of the group gets what comes before it";
  ASSERT_TRUE(s.worker.ack(s.job, "2").ok());
  EXPECT_EQ(ack("3"), "c");
  EXPECT_EQ(ack("4"), "d");
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  EXPECT_EQ(s.job.type(), "e");
  EXPECT_EQ(s.job.parent_results(), "[1,[2,4]]");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(look(id).state, WorkflowState::kCompleted);
  EXPECT_EQ(look(id).jobs, 5U);
}

TEST_F(Workflows, no_callback_of_a_batch_that_never_began) {
  const std::string id = create(chain({job_of("a"), batch({job_of("b")}), job_of("c")}));
  EXPECT_EQ(fail(), "a");
  EXPECT_EQ(run_all(), Types{});
  EXPECT_EQ(look(id).state, WorkflowState::kFailed);
}

TEST_F(Workflows, a_graph_follows_what_its_steps_depend_on) {
  WorkflowSpec spec = of_kind(WorkflowKind::kGraph, {step("d", {"b", "c"}), step("b", {"a"}),
                                                     step("c", {"a"}), step("a", {})});
  WorkflowSpec rescue = job_of("rescue");
  rescue.depends_on = {"b"};
  rescue.when = StepCondition::kFailure;
  spec.steps.push_back(rescue);
  const std::string id = create(spec);
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(ack(), "step");
  EXPECT_EQ(s.queue().depth, 2U);
  EXPECT_EQ(ack("\"b\""), "step");
  EXPECT_EQ(ack("\"c\""), "step");
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  EXPECT_EQ(s.job.parent_results(), R"(["b","c"])");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(look(id).state, WorkflowState::kCompleted);
  EXPECT_EQ(look(id).root.steps.back().state, StepState::kSkipped);
}

TEST_F(Workflows, a_scheduled_step_waits_for_its_turn_and_its_time) {
  WorkflowSpec spec = chain({job_of("a"), job_of("b")});
  spec.steps[1].job.scheduled_at_ms = s.now_ms() + kHour;
  const std::string id = create(spec);
  EXPECT_EQ(ack(), "a");
  EXPECT_EQ(ack(), "");
  EXPECT_EQ(look(id).root.steps[1].state, StepState::kPending);
  s.pass(2 * kHour);
  EXPECT_EQ(ack(), "b");
  EXPECT_EQ(look(id).state, WorkflowState::kCompleted);
}

}  // namespace
}  // namespace ojs_shm::test
