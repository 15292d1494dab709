// SPDX-License-Identifier: Apache-2.0
// Deleting queues: what is in the way, what becomes of the jobs, and what makes a queue anew. Each
// test ends with an audit.
#include <gtest/gtest.h>

#include <algorithm>

#include <ojs_shm/census.hpp>
#include <ojs_shm/workflow.hpp>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

class QueueEnd : public testing::Test {
 protected:
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const QueueInfo& queue : s.observer.queues()) names.push_back(queue.name);
    return names;
  }
  std::uint64_t remove(std::string_view name = "mail",
                       QueueDeletion jobs = QueueDeletion::kReject) {
    const auto done = s.admin.delete_queue(name, jobs);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return done.ok() ? *done : 0;
  }
  void fetch(Job& job) {
    Worker worker = Worker::attach(s.segment, {.queues = {"mail"}}).value();
    ASSERT_TRUE(worker.try_fetch(job).ok());
    ASSERT_TRUE(worker.ack(job).ok());
  }
  QuietSegment s;
};

TEST_F(QueueEnd, an_empty_queue_is_no_longer_there) {
  ASSERT_TRUE(s.admin.set_queue("mail", {.max_depth = 5}).ok());
  s.put();
  EXPECT_EQ(names(), (std::vector<std::string>{"mail", "default"}));
  EXPECT_EQ(remove(), 0U);
  EXPECT_EQ(names(), std::vector<std::string>{"default"});
  EXPECT_EQ(s.observer.queue("mail").code(), Code::kNotFound);
  const Census census = s.observer.census();
  ASSERT_EQ(census.queues.size(), 1U);
  EXPECT_EQ(census.queues[0].info.name, "default");
  EXPECT_EQ(s.observer.scheduling_stats().queues.size(), 1U);
  EXPECT_EQ(s.admin.delete_queue("mail").code(), Code::kNotFound);
  EXPECT_EQ(s.admin.delete_queue("never").code(), Code::kNotFound);
}

TEST_F(QueueEnd, unfinished_jobs_are_in_the_way_and_nothing_changes) {
  ASSERT_TRUE(s.admin.set_queue("mail", {.max_depth = 5}).ok());
  const std::string id = s.put(1, "mail");
  const auto refused = s.admin.delete_queue("mail");
  ASSERT_EQ(refused.code(), Code::kWrongState);
  EXPECT_EQ(refused.error().depth, 1U);
  EXPECT_EQ(s.queue("mail").max_depth, 5U);
  Worker worker = Worker::attach(s.segment, {.queues = {"mail"}}).value();
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  EXPECT_EQ(s.admin.delete_queue("mail").code(), Code::kWrongState) << "it is at work";
  ASSERT_TRUE(worker.ack(s.job).ok());
  remove();
  EXPECT_EQ(s.state_of(id), State::kCompleted) << "what has finished stays readable";
}

TEST_F(QueueEnd, it_comes_back_with_the_next_job_and_without_its_settings) {
  ASSERT_TRUE(s.admin
                  .set_queue("mail", {.max_depth = 5,
                                      .paused = true,
                                      .level_weights = std::vector<LevelWeight>{{"0", 3}},
                                      .shards = 4,
                                      .tenant_fairness = TenantFairness{.weights = {{"a", 3}}},
                                      .strategy = BackpressureStrategy::kBlock,
                                      .warning_threshold = 0.5,
                                      .tenant_max_depth = 2,
                                      .tenant_bounds = std::vector<TenantBound>{{"a", 7}}})
                  .ok());
  ASSERT_TRUE(s.admin.set_limit("queue:mail", {.concurrency = 1}).ok());
  remove();
  const std::string id = s.put(1, "mail");
  EXPECT_EQ(names(), std::vector<std::string>{"mail"});
  const QueueInfo now = s.queue("mail");
  EXPECT_EQ(now.max_depth, 0U);
  EXPECT_FALSE(now.paused);
  EXPECT_TRUE(now.level_weights.empty());
  EXPECT_EQ(now.shards, 1U);
  EXPECT_FALSE(now.tenant_fairness.enabled);
  EXPECT_TRUE(now.tenant_fairness.weights.empty());
  EXPECT_EQ(now.strategy, BackpressureStrategy::kReject);
  EXPECT_EQ(now.warning_threshold, 0.8);
  EXPECT_EQ(now.tenant_max_depth, 0U);
  EXPECT_TRUE(now.tenant_bounds.empty());
  EXPECT_FALSE(s.observer.limit("queue:mail")->limit.concurrency);
  fetch(s.job);
  EXPECT_EQ(s.job.id(), id);
}

TEST_F(QueueEnd, it_comes_back_with_a_setting) {
  s.put(1, "mail");
  fetch(s.job);
  remove();
  ASSERT_TRUE(s.admin.set_queue("mail", {}).ok());
  EXPECT_EQ(names(), std::vector<std::string>{"mail"});
  remove();
  EXPECT_TRUE(names().empty());
}

TEST_F(QueueEnd, it_comes_back_with_a_dead_letter) {
  JobSpec spec = spec_of(1, "mail");
  spec.retry.max_attempts = 1;
  spec.retry.dead_letter = true;
  const std::string id = s.put(spec);
  Worker worker = Worker::attach(s.segment, {.queues = {"mail"}}).value();
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  ASSERT_TRUE(worker.nack(s.job, failure()).ok());
  remove();
  EXPECT_EQ(s.observer.list({.dead_letter = true}).size(), 1U);
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  EXPECT_EQ(names(), std::vector<std::string>{"mail"});
  EXPECT_EQ(s.queue("mail").depth, 1U);
}

TEST_F(QueueEnd, its_jobs_are_discarded_when_that_is_asked_for) {
  ASSERT_TRUE(s.admin.set_queue("mail", {.max_depth = 100, .tenant_max_depth = 50}).ok());
  Worker worker = Worker::attach(s.segment, {.queues = {"mail"}}).value();
  std::vector<std::string> ids = {s.put(1, "mail")};
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  ids.push_back(s.put(1, "mail"));
  JobSpec later = spec_of(1, "mail"), pending = spec_of(1, "mail");
  later.scheduled_at_ms = s.now_ms() + kHour;
  pending.pending = true;
  pending.tenant = "a";
  ids.push_back(s.put(later));
  ids.push_back(s.put(pending));
  const std::string other = s.put();
  EXPECT_EQ(remove("mail", QueueDeletion::kDiscard), 4U);
  EXPECT_EQ(names(), std::vector<std::string>{"default"});
  for (const std::string& id : ids) {
    const JobInfo job = s.get(id);
    EXPECT_EQ(job.state, State::kDiscarded);
    EXPECT_FALSE(job.dead_letter);
    ASSERT_EQ(job.errors.size(), 1U);
    EXPECT_EQ(job.errors[0].type, "queue_deleted");
    EXPECT_NE(job.discarded_at_ms, 0U);
  }
  EXPECT_TRUE(s.job.cancel_requested());
  EXPECT_EQ(worker.ack(s.job).code(), Code::kLost);
  EXPECT_EQ(s.state_of(other), State::kAvailable);
  s.put(1, "mail");
  const QueueInfo again = s.queue("mail");
  EXPECT_EQ(again.depth, 1U);
  EXPECT_EQ(again.discarded_total, 4U);
  EXPECT_EQ(again.failed_attempts_total, 0U);
}

TEST_F(QueueEnd, members_that_wait_for_others_are_in_the_way) {
  WorkflowSpec chain;
  chain.kind = WorkflowKind::kChain;
  chain.steps.resize(2);
  chain.steps[0].job = spec_of(1, "default");
  chain.steps[1].job = spec_of(1, "mail");
  ASSERT_TRUE(s.producer.create_workflow(chain).ok());
  EXPECT_EQ(s.admin.delete_queue("mail").code(), Code::kWrongState);
  EXPECT_EQ(s.admin.delete_queue("mail", QueueDeletion::kDiscard).code(), Code::kWrongState);
  EXPECT_EQ(s.drain().size(), 1U);
  fetch(s.job);
  remove();
}

TEST_F(QueueEnd, a_workflow_fails_with_its_discarded_job) {
  WorkflowSpec chain;
  chain.kind = WorkflowKind::kChain;
  chain.steps.resize(2);
  for (WorkflowSpec& step : chain.steps) step.job = spec_of(1, "mail");
  const auto id = s.producer.create_workflow(chain);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(remove("mail", QueueDeletion::kDiscard), 1U);
  EXPECT_EQ(s.observer.workflow(*id)->state, WorkflowState::kFailed);
}

TEST_F(QueueEnd, it_is_told_and_jobs_that_waited_have_not_failed) {
  s.put(1, "mail");
  ASSERT_TRUE(s.admin.set_events(true).ok());
  EventReader reader = s.observer.events({.from_start = false, .settle_ms = 0});
  remove("mail", QueueDeletion::kDiscard);
  std::vector<std::string> types;
  for (Event event; reader.next(event);) {
    types.push_back(event.type);
    if (event.type == "queue.deleted") {
      EXPECT_EQ(event.queue, "mail");
      EXPECT_EQ(event.count, 1U);
    }
  }
  EXPECT_EQ(types, (std::vector<std::string>{"job.discarded", "queue.deleted"}));
}

/// At any access of it a job of the queue may end, and its slot be that of a job of another queue.
TEST(QueueEndSlots, that_go_on_meanwhile_keep_their_jobs) {
  QuietSegment s(few_slots(16));
  bool acted = true;
  for (std::uint64_t at = 0; acted; ++at) {
    SCOPED_TRACE("at access " + std::to_string(at));
    acted = false;
    std::vector<std::string> ours, later;
    for (int i = 0; i < 3; ++i) ours.push_back(s.put({}, "mail"));
    std::uint64_t count = 0;
    {
      const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
        if (acted || count++ != at) return;
        acted = true;
        for (const std::string& id : ours) (void)s.producer.cancel(id);
        while (const auto put = s.producer.enqueue(spec_of())) later.push_back(put->str());
      });
      (void)s.admin.delete_queue("mail", QueueDeletion::kDiscard);
    }
    for (const std::string& id : later) EXPECT_EQ(s.state_of(id), State::kAvailable);
    EXPECT_EQ(s.drain().size(), later.size());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
