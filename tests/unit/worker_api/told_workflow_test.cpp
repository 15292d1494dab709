// SPDX-License-Identifier: Apache-2.0
// What events say of workflows: when one begins, each step that completed, and how it ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ojs_shm/proxy.hpp>

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope_event.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

WorkflowSpec job_of(std::string_view type, std::string_view name = {}) {
  WorkflowSpec part;
  part.job.type = type;
  part.name = name;
  return part;
}

WorkflowSpec of_kind(WorkflowKind kind, std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec;
  spec.kind = kind;
  spec.name = "etl";
  spec.steps = std::move(steps);
  return spec;
}

class ToldWorkflows : public testing::Test {
 protected:
  ToldWorkflows() { EXPECT_TRUE(s.admin.set_events(true).ok()); }
  std::string create(const WorkflowSpec& spec) { return s.producer.create_workflow(spec).value(); }
  void take() { EXPECT_TRUE(s.worker.try_fetch(s.job).ok()); }
  std::string ack() {
    take();
    std::string id(s.job.id());
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    return id;
  }
  std::string fail() {
    take();
    std::string id(s.job.id());
    EXPECT_TRUE(s.worker.nack(s.job, failure(false)).ok());
    return id;
  }
  /// Those about workflows that were told since.
  std::vector<Event> told() {
    std::vector<Event> events;
    for (Event event; reader.next(event);)
      if (!event.workflow_id.empty()) events.push_back(event);
    return events;
  }
  static std::vector<std::string> types(const std::vector<Event>& events) {
    std::vector<std::string> names;
    for (const Event& event : events) names.push_back(event.type);
    return names;
  }
  QuietSegment s;
  EventReader reader = s.observer.events({.settle_ms = 0});
};

TEST_F(ToldWorkflows, begin_with_their_first_job_and_tell_each_step) {
  s.stop_clock();
  const std::string id =
      create(of_kind(WorkflowKind::kChain, {job_of("data.fetch", "extract"), job_of("data.load")}));
  EXPECT_TRUE(told().empty());
  s.move_clock(kSecond);
  take();
  std::vector<Event> events = told();
  ASSERT_THAT(types(events), ElementsAre("workflow.started"));
  EXPECT_EQ(events[0].total_steps, 2U);
  EXPECT_EQ(events[0].workflow_name, "etl");
  EXPECT_EQ(events[0].workflow_type, "chain");
  EXPECT_EQ(print_event(events[0]).find("duration_ms"), std::string::npos);
  s.move_clock(kSecond);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const std::string second = ack();
  events = told();
  ASSERT_THAT(types(events), ElementsAre("workflow.step_completed", "workflow.step_completed",
                                         "workflow.completed"));
  EXPECT_EQ(events[0].workflow_id, id);
  EXPECT_EQ(events[0].step_id, "extract");
  EXPECT_EQ(events[0].job_type, "data.fetch");
  EXPECT_EQ(events[0].duration_ms, kSecond);
  EXPECT_EQ(events[0].steps_remaining, 1U);
  EXPECT_EQ(events[1].step_id, second) << "it has no name";
  EXPECT_EQ(events[1].steps_remaining, 0U);
  EXPECT_EQ(events[2].total_steps, 2U);
  EXPECT_EQ(events[2].duration_ms, kSecond);
  const std::string text = print_event(events[0]);
  EXPECT_THAT(text, HasSubstr(R"("step_id":"extract","step_type":"data.fetch","duration_ms":1000,)"
                              R"("steps_remaining":1)"));
  EXPECT_THAT(text, HasSubstr("\"subject\":\"" + id + '"'));
  EXPECT_THAT(text, Not(HasSubstr("priority")));
}

TEST_F(ToldWorkflows, begin_once_though_many_jobs_begin) {
  create(of_kind(WorkflowKind::kGroup, {job_of("a"), job_of("b"), job_of("c")}));
  fail(), ack(), ack();
  const std::vector<Event> events = told();
  ASSERT_THAT(types(events), ElementsAre("workflow.started", "workflow.step_completed",
                                         "workflow.step_completed", "workflow.failed"));
  EXPECT_EQ(events[1].steps_remaining, 1U) << "the one that failed has ended";
}

TEST_F(ToldWorkflows, a_job_that_is_tried_again_is_one_step) {
  WorkflowSpec spec = of_kind(WorkflowKind::kChain, {job_of("a")});
  spec.steps[0].job.retry = {5, 1, 1, 1.0F, RetryBackoff::kConstant, false, false};
  create(spec);
  take();
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(kHour);
  ack();
  EXPECT_THAT(types(told()),
              ElementsAre("workflow.started", "workflow.step_completed", "workflow.completed"));
}

TEST_F(ToldWorkflows, fail_by_the_job_that_others_did_not_outlive) {
  create(of_kind(WorkflowKind::kChain, {job_of("a"), job_of("b"), job_of("c")}));
  ack();
  const std::string second = fail();
  const Event failed = told().back();
  ASSERT_EQ(failed.type, "workflow.failed");
  EXPECT_EQ(failed.step_id, second);
  EXPECT_EQ(failed.job_type, "b");
  EXPECT_EQ(failed.total_steps, 3U);
  ASSERT_TRUE(failed.error.has_value());
  EXPECT_EQ(failed.error->code, "boom");
  EXPECT_THAT(print_event(failed),
              HasSubstr("\"failed_step_id\":\"" + second + R"(","failed_step_type":"b")"));
}

TEST_F(ToldWorkflows, fail_by_the_callback_that_did_not_make_it_good) {
  WorkflowSpec spec = of_kind(WorkflowKind::kBatch, {job_of("a")});
  spec.on_failure = {job_of("repair")};
  create(spec);
  fail();
  const std::string callback = fail();
  const Event failed = told().back();
  ASSERT_EQ(failed.type, "workflow.failed");
  EXPECT_EQ(failed.step_id, callback);
  EXPECT_EQ(failed.job_type, "repair");
}

TEST_F(ToldWorkflows, fail_with_an_error_though_no_attempt_did) {
  WorkflowSpec spec = of_kind(WorkflowKind::kGroup, {job_of("a"), job_of("b")});
  spec.steps[1].job.expires_at_ms = s.now_ms() + kMinute;
  const std::string id = create(spec);
  const WorkflowInfo info = s.observer.workflow(id).value();
  s.pass(kHour);
  ASSERT_EQ(s.state_of(info.root.steps[1].job_id), State::kDiscarded);
  s.move_clock(kSecond);
  ASSERT_TRUE(s.producer.cancel(info.root.steps[0].job_id).ok());
  const std::vector<Event> events = told();
  ASSERT_THAT(types(events), ElementsAre("workflow.failed")) << "no job began";
  ASSERT_TRUE(events[0].error.has_value());
  EXPECT_EQ(events[0].job_type, "b");
  EXPECT_EQ(events[0].error->code, "expired");
}

TEST_F(ToldWorkflows, cancelled_ones_say_so) {
  const std::string id = create(of_kind(WorkflowKind::kGroup, {job_of("a"), job_of("b")}));
  take();
  ASSERT_TRUE(s.producer.cancel_workflow(id).ok());
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const std::vector<Event> events = told();
  EXPECT_THAT(types(events),
              ElementsAre("workflow.started", "workflow.cancelled", "workflow.step_completed"));
  EXPECT_EQ(events[1].total_steps, 2U);
}

TEST_F(ToldWorkflows, that_are_gone_are_known_by_their_id_alone) {
  QuietSegment small;
  ASSERT_TRUE(small.admin.set_events(true).ok());
  const std::string id =
      small.producer.create_workflow(of_kind(WorkflowKind::kGroup, {job_of("a")})).value();
  ASSERT_TRUE(small.worker.try_fetch(small.job).ok());
  ASSERT_TRUE(small.worker.ack(small.job).ok());
  for (int i = 0; i < 10'000 && small.observer.workflow(id).ok(); ++i) {
    small.put(1);
    small.take();
    ASSERT_TRUE(small.worker.ack(small.job).ok());
  }
  ASSERT_FALSE(small.observer.workflow(id).ok());
  EventReader late = small.observer.events({.from_start = true, .settle_ms = 0});
  for (Event event; late.next(event);) {
    if (event.workflow_id != id) continue;
    EXPECT_EQ(event.workflow_type, "");
    EXPECT_THAT(print_event(event), Not(HasSubstr("workflow_name")));
  }
}

/// Several handles tell of it within a millisecond, in which nobody can tell the time.
TEST_F(ToldWorkflows, come_in_their_order_whoever_tells_them) {
  s.stop_clock();
  auto early = Proxy::attach(s.segment).value(), late = Proxy::attach(s.segment).value();
  create(of_kind(WorkflowKind::kChain, {job_of("a"), job_of("b")}));
  for (Proxy* end : {&early, &late}) {
    const auto jobs = late.fetch({.queues = {"default"}}).value();
    ASSERT_EQ(jobs.size(), 1U);
    ASSERT_TRUE(end->ack(jobs[0].id, jobs[0].fence).ok());
  }
  EXPECT_THAT(types(told()), ElementsAre("workflow.started", "workflow.step_completed",
                                         "workflow.step_completed", "workflow.completed"));
}

}  // namespace
}  // namespace ojs_shm::test
