// SPDX-License-Identifier: Apache-2.0
// How workflows end before their last job, and what stays of them.

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/workflows/workflow_specs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Workflows, a_step_that_fails_ends_its_chain) {
  const std::string id = create(chain({job_of("a"), job_of("b"), job_of("c"), job_of("d")}));
  EXPECT_EQ(ack(), "a");
  EXPECT_EQ(fail(), "b");
  EXPECT_EQ(ack(), "");
  const WorkflowInfo info = look(id);
  EXPECT_EQ(info.state, WorkflowState::kFailed);
  EXPECT_EQ(info.root.steps[1].state, StepState::kFailed);
  EXPECT_EQ(info.root.steps[2].state, StepState::kCancelled);
  EXPECT_EQ(info.root.steps[3].state, StepState::kCancelled);
  EXPECT_EQ(info.failed, 1U);
}

TEST_F(Workflows, cancel_ends_what_has_not_begun) {
  const std::string id = create(chain({group({job_of("a"), job_of("b")}), job_of("c")}));
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  ASSERT_TRUE(s.producer.cancel_workflow(id).ok());
  EXPECT_EQ(s.producer.cancel_workflow(id).code(), Code::kWrongState);
  EXPECT_EQ(s.queue().depth, 0U);
  ASSERT_TRUE(s.worker.ack(s.job).ok()) << "an active job may end";
  const WorkflowInfo info = look(id);
  EXPECT_EQ(info.state, WorkflowState::kCancelled);
  EXPECT_EQ(info.root.steps[0].steps[0].state, StepState::kCompleted);
  EXPECT_EQ(info.root.steps[0].steps[1].state, StepState::kCancelled);
  EXPECT_EQ(info.root.steps[1].state, StepState::kCancelled);
  EXPECT_EQ(run_all(), Types{});
  EXPECT_EQ(s.producer.cancel_workflow("01961234-5678-7abc-8def-0123456789ab").code(),
            Code::kNotFound);
}

TEST_F(Workflows, a_job_that_is_lost_fails_its_workflow) {
  const std::string cancelled = create(chain({job_of("a"), job_of("b")}));
  ASSERT_TRUE(s.producer.cancel(look(cancelled).root.steps[0].job_id).ok());
  EXPECT_EQ(look(cancelled).state, WorkflowState::kFailed);
  WorkflowSpec short_lived = chain({job_of("a"), job_of("b")});
  short_lived.steps[0].job.expires_at_ms = s.now_ms() + kHour;
  const std::string expired = create(short_lived);
  s.pass(2 * kHour);
  EXPECT_EQ(look(expired).state, WorkflowState::kFailed);
  ASSERT_TRUE(
      s.admin.set_queue("small", {.max_depth = 1, .strategy = BackpressureStrategy::kDropOldest})
          .ok());
  const std::string dropped = create(chain({job_of("a", "small"), job_of("b")}));
  s.put({}, "small");
  EXPECT_EQ(look(dropped).state, WorkflowState::kFailed);
  EXPECT_EQ(run_all(), Types{});
}

TEST_F(Workflows, results_stay_until_the_workflow_ends) {
  QuietSegment small(few_slots(64));
  const auto id = small.producer.create_workflow(
      chain({job_of("a", "mine"), job_of("b", "mine"), job_of("c", "mine")}));
  ASSERT_TRUE(id.ok());
  std::optional<Worker> mine = Worker::attach(small.segment, {.queues = {"mine"}}).value();
  Job job;
  ASSERT_TRUE(mine->try_fetch(job));
  ASSERT_TRUE(mine->ack(job, "\"kept\"").ok());
  for (int i = 0; i < 500; ++i) {
    small.put();
    ASSERT_EQ(small.drain().size(), 1U);
  }
  // also when it is the only slot that has ended
  while (small.producer.enqueue(spec_of())) {}
  EXPECT_GT(small.drain().size(), 50U);
  ASSERT_TRUE(mine->try_fetch(job));
  EXPECT_EQ(job.parent_results(), "[\"kept\"]");
  ASSERT_TRUE(mine->ack(job).ok());
  ASSERT_TRUE(mine->try_fetch(job));
  ASSERT_TRUE(mine->ack(job).ok());
  mine.reset();  // which lists what it has ended
  EXPECT_EQ(small.observer.workflow(*id)->state, WorkflowState::kCompleted);
  for (int i = 0; i < 500; ++i) {
    small.put();
    ASSERT_EQ(small.drain().size(), 1U);
  }
  EXPECT_EQ(small.observer.workflow(*id).code(), Code::kNotFound) << "its slots are used again";
}

TEST_F(Workflows, a_dead_letter_that_is_retried_runs_alone) {
  WorkflowSpec spec = group({job_of("a"), job_of("b")});
  spec.steps[0].job.retry.dead_letter = true;
  const std::string id = create(spec);
  EXPECT_EQ(fail(), "a");
  const std::string dead = look(id).root.steps[0].job_id;
  ASSERT_TRUE(s.admin.retry_dead(dead).ok());
  EXPECT_EQ(look(id).state, WorkflowState::kRunning);
  EXPECT_EQ(ack(), "b");
  EXPECT_EQ(look(id).state, WorkflowState::kFailed);
  EXPECT_EQ(ack(), "a");
  EXPECT_EQ(look(id).state, WorkflowState::kFailed);
}

/// At any access of a cancel the last active job may end, or at any access of that end another may
/// close the workflow, and all slots be other jobs' by then.
class WorkflowSlots : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(OfACancel, WorkflowSlots, testing::Bool());

TEST_P(WorkflowSlots, FS_T02_that_go_on_while_a_workflow_ends_are_left_alone) {
  const bool cancels = GetParam();
  QuietSegment s(few_slots(24));
  bool acted = true;
  for (std::uint64_t at = 0; acted; ++at) {
    SCOPED_TRACE("at access " + std::to_string(at));
    acted = false;
    const auto id = s.producer.create_workflow(chain({job_of("a"), job_of("b"), job_of("c")}));
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(s.worker.try_fetch(s.job));
    if (!cancels) {
      ASSERT_TRUE(s.producer.cancel_workflow(*id).ok());
    }
    std::vector<std::string> later;
    std::uint64_t count = 0;
    {
      const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
        if (acted || count++ != at) return;
        acted = true;
        if (cancels)
          EXPECT_TRUE(s.worker.ack(s.job).ok());
        else
          EXPECT_TRUE(s.admin.mend().ok());
        JobSpec spec = spec_of();
        spec.scheduled_at_ms = s.now_ms() + 24 * kHour;
        while (const auto put = s.producer.enqueue(spec)) later.push_back(put->str());
      });
      if (cancels)
        (void)s.producer.cancel_workflow(*id);
      else
        EXPECT_TRUE(s.worker.ack(s.job).ok());
    }
    if (cancels && !acted) {
      EXPECT_TRUE(s.worker.ack(s.job).ok());
    }
    s.tick();
    for (const std::string& job : later) {
      EXPECT_EQ(s.state_of(job), State::kScheduled);
      EXPECT_TRUE(s.producer.cancel(job).ok());
    }
    s.drain();
    EXPECT_EQ(s.findings(), "");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
