// SPDX-License-Identifier: Apache-2.0
// Which workflows are let in.

#include "tests/unit/engine/workflows/workflow_specs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Workflows, what_cannot_run_is_refused_with_its_place) {
  std::string place;
  EXPECT_EQ(refused(chain({}), &place), Code::kInvalid);
  EXPECT_EQ(place, "$.steps");
  EXPECT_EQ(refused(chain({job_of("a"), group({})}), &place), Code::kInvalid);
  EXPECT_EQ(place, "$.steps[1].jobs");
  EXPECT_EQ(refused(of_kind(WorkflowKind::kBatch, {job_of("a")}), &place), Code::kInvalid);
  EXPECT_EQ(place, "$.callbacks");
  EXPECT_EQ(refused(of_kind(WorkflowKind::kGraph, {step("a", {"b"}), step("b", {"a"})}), &place),
            Code::kInvalid);
  EXPECT_EQ(place, "$.steps[0].depends_on");
  EXPECT_EQ(refused(of_kind(WorkflowKind::kGraph, {step("a", {"z"})}), &place), Code::kInvalid);
  EXPECT_EQ(place, "$.steps[0].depends_on");
  EXPECT_EQ(refused(of_kind(WorkflowKind::kGraph, {step("a", {}), step("a", {})}), &place),
            Code::kInvalid);
  EXPECT_EQ(place, "$.steps[1].id");
  WorkflowSpec deep = job_of("a");
  for (std::size_t i = 0; i < kDeepestWorkflow - 1; ++i) deep = chain({deep});
  EXPECT_EQ(refused(deep), Code::kOk);
  EXPECT_EQ(refused(chain({deep}), &place), Code::kInvalid);
  EXPECT_EQ(refused(chain({job_of("a"), job_of("Not A Type")}), &place), Code::kInvalid);
  EXPECT_EQ(place, "$.steps[1].type");
  EXPECT_EQ(run_all(), Types{"a"});
}

TEST_F(Workflows, up_to_512_jobs) {
  QuietSegment large(few_slots(2048));
  WorkflowSpec spec = group(std::vector<WorkflowSpec>(kMostWorkflowJobs, job_of("a")));
  ASSERT_TRUE(large.producer.create_workflow(spec).ok());
  EXPECT_EQ(large.drain().size(), kMostWorkflowJobs);
  spec.steps.push_back(job_of("a"));
  EXPECT_EQ(large.producer.create_workflow(spec).code(), Code::kInvalid);
}

TEST_F(Workflows, over_several_bounded_queues_whole_or_not_at_all) {
  ASSERT_TRUE(s.admin.set_queue("one", {.max_depth = 2}).ok());
  ASSERT_TRUE(s.admin.set_queue("two", {.max_depth = 1}).ok());
  const WorkflowSpec spec =
      chain({group({job_of("a", "one"), job_of("b", "two")}), job_of("c", "two")});
  create(spec);
  EXPECT_EQ(refused(spec), Code::kQueueFull);
  EXPECT_EQ(s.queue("one").depth, 1U);
  EXPECT_EQ(s.queue("two").depth, 1U);
  EXPECT_EQ(s.observer.workflows().size(), 1U);
}

TEST_F(Workflows, no_bound_refuses_a_successor) {
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 2}).ok());
  create(chain({job_of("a"), group({job_of("b"), job_of("c")})}));
  s.put();
  EXPECT_EQ(ack(), "a");
  EXPECT_EQ(s.queue().depth, 3U);
  EXPECT_EQ(run_all().size(), 3U);
}

}  // namespace
}  // namespace ojs_shm::test
