// SPDX-License-Identifier: Apache-2.0
// Running workflows as lines of text, and back: they go on where they stood.
#include <algorithm>
#include <map>

#include "tests/unit/engine/quiet_segment.hpp"
#include "tests/unit/worker_api/transfers.hpp"

namespace ojs_shm::test {
namespace {

WorkflowSpec job_of(std::string_view type, std::string_view queue = {}) {
  WorkflowSpec part;
  part.job.type = type;
  part.job.queue = queue;
  part.job.retry.max_attempts = 2;
  return part;
}

WorkflowSpec of_kind(WorkflowKind kind, std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec;
  spec.kind = kind;
  spec.steps = std::move(steps);
  return spec;
}

/// a, then a batch of b, c, d and one of two callbacks, then z.
WorkflowSpec nested() {
  WorkflowSpec batch =
      of_kind(WorkflowKind::kBatch, {job_of("b"), job_of("c", "other"), job_of("d")});
  batch.on_success = {job_of("good")};
  batch.on_failure = {job_of("bad")};
  return of_kind(WorkflowKind::kChain, {job_of("a"), batch, job_of("z", "other")});
}

/// Works off at most so many jobs; a job's result is its type, and `failing` fails for good. What
/// each got from those before it.
std::map<std::string, std::string> run(QuietSegment& s, int most, std::string_view failing = {}) {
  std::map<std::string, std::string> got;
  Worker worker = Worker::attach(s.segment, {.queues = {"default", "other"}}).value();
  Job job;
  for (int i = 0; i < most && worker.try_fetch(job); ++i) {
    const std::string type(job.type());
    EXPECT_TRUE(got.emplace(type, job.parent_results()).second) << type << " came twice";
    if (type == failing)
      EXPECT_TRUE(worker.nack(job, failure(false)).ok());
    else
      EXPECT_TRUE(worker.ack(job, "\"" + type + "\"").ok());
  }
  return got;
}

constexpr int kAll = 100;

/// The whole there, against one half here and the other half there, cut after every job.
void expect_the_same_wherever_it_is_cut(std::string_view failing) {
  QuietSegment whole;
  const std::string id = whole.producer.create_workflow(nested()).value();
  const auto expected = run(whole, kAll, failing);
  const WorkflowInfo end = whole.observer.workflow(id).value();
  for (int cut = 0; cut < static_cast<int>(expected.size()); ++cut) {
    QuietSegment from, to;
    const std::string made = from.producer.create_workflow(nested()).value();
    auto got = run(from, cut, failing);
    const WorkflowInfo before = from.observer.workflow(made).value();
    ImportReport report;
    const Status done = import(to.segment, exported(from.segment), &report);
    ASSERT_TRUE(done.ok()) << done.error().message;
    const WorkflowInfo after = to.observer.workflow(made).value();
    EXPECT_EQ(after.state, WorkflowState::kRunning);
    EXPECT_EQ(after.completed, before.completed) << "after " << cut;
    EXPECT_EQ(after.created_at_ms, before.created_at_ms);
    for (const auto& more : run(to, kAll, failing))
      EXPECT_TRUE(got.insert(more).second) << more.first << " came twice, cut after " << cut;
    EXPECT_EQ(got, expected) << "cut after " << cut;
    const WorkflowInfo ended = to.observer.workflow(made).value();
    EXPECT_EQ(ended.state, end.state) << "cut after " << cut;
    EXPECT_EQ(ended.completed, end.completed);
    EXPECT_EQ(ended.failed, end.failed);
  }
}

TEST(TransferWorkflows, one_goes_on_where_it_stood) { expect_the_same_wherever_it_is_cut(""); }

TEST(TransferWorkflows, so_does_one_of_which_a_job_has_failed) {
  expect_the_same_wherever_it_is_cut("c");
}

TEST(TransferWorkflows, a_second_time_nothing_is_put_in) {
  QuietSegment from, to;
  const std::string id = from.producer.create_workflow(nested()).value();
  run(from, 2);
  const Lines lines = exported(from.segment);
  ImportReport report;
  ASSERT_TRUE(import(to.segment, lines, &report).ok());
  EXPECT_EQ(report.jobs, 7U);
  ASSERT_TRUE(import(to.segment, lines, &report).ok());
  EXPECT_EQ(report.jobs, 0U);
  EXPECT_EQ(report.existing, 7U);
  EXPECT_EQ(to.observer.workflows().size(), 1U);
}

TEST(TransferWorkflows, active_scheduled_and_retried_jobs_keep_what_they_are) {
  QuietSegment from, to;
  WorkflowSpec group =
      of_kind(WorkflowKind::kGroup, {job_of("held"), job_of("again"), job_of("later")});
  group.steps[2].job.scheduled_at_ms = from.now_ms() + kHour;
  group.steps[0].job.priority = 0;
  const std::string id = from.producer.create_workflow(group).value();
  Job held;
  ASSERT_TRUE(from.worker.try_fetch(held));
  EXPECT_EQ(held.type(), "held");
  ASSERT_TRUE(from.worker.try_fetch(from.job));
  ASSERT_TRUE(from.worker.nack(from.job, failure()).ok());
  const std::string again(from.job.id());
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.get(held.id()).state, State::kAvailable);
  EXPECT_EQ(to.get(held.id()).attempt, 1);
  EXPECT_EQ(to.get(held.id()).priority, 0);
  EXPECT_EQ(to.get(again).state, State::kRetryable);
  EXPECT_EQ(to.get(again).errors.size(), 1U);
  EXPECT_EQ(to.get(again).next_attempt_at_ms, from.get(again).next_attempt_at_ms);
  to.pass(kMinute);
  EXPECT_EQ(run(to, kAll).size(), 2U);
  to.pass(kHour);
  EXPECT_EQ(run(to, kAll).size(), 1U);
  EXPECT_EQ(to.observer.workflow(id).value().state, WorkflowState::kCompleted);
}

TEST(TransferWorkflows, no_bound_refuses_one) {
  QuietSegment from, to;
  ASSERT_TRUE(to.admin.set_queue("default", {.max_depth = 1}).ok());
  from.put();
  from.put();
  ASSERT_TRUE(
      from.producer.create_workflow(of_kind(WorkflowKind::kGroup, {job_of("a"), job_of("b")}))
          .ok());
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.queue().depth, 4U);
}

TEST(TransferWorkflows, of_one_that_has_ended_its_jobs_come) {
  QuietSegment from, to;
  const std::string id = from.producer.create_workflow(nested()).value();
  run(from, kAll);
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.observer.workflow(id).code(), Code::kNotFound);
  EXPECT_EQ(to.observer.list({.state = State::kCompleted}).size(), 6U);
}

TEST(TransferWorkflows, a_job_that_waits_in_the_text_for_what_has_ended_is_let_run) {
  QuietSegment to;
  const std::string job =
      R"({"type":"unit.test","priority":2,"id":"01961234-5678-7abc-8def-00000000000)";
  const Status done = import(
      to.segment,
      {R"({"ojs_shm_export":1,"convention":"ojs"})",
       R"({"workflow":{"id":"01961234-5678-7abc-8def-0123456789ab","tree":{"k":1,"steps":[{"type":"unit.test"},{},{}]},)"
       R"("sets":[[0],[1],[2]],"result":2,"members":[{"job":)" +
           job + R"(1","state":"completed","result":1}},{"waits":0,"waiting":true,"job":)" + job +
           R"(2"}},{"waits":1,"waiting":true,"job":)" + job + R"(3"}}]}})"});
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(to.queue().depth, 1U);
  EXPECT_EQ(to.drain().size(), 2U);
  EXPECT_EQ(to.observer.workflows({.state = WorkflowState::kCompleted}).size(), 1U);
}

TEST(TransferWorkflows, a_dead_letter_that_is_retried_comes_as_a_job_of_its_own) {
  QuietSegment from, to;
  WorkflowSpec group = of_kind(WorkflowKind::kGroup, {job_of("bad"), job_of("other")});
  group.steps[0].job.retry.dead_letter = true;
  const std::string id = from.producer.create_workflow(group).value();
  ASSERT_TRUE(from.worker.try_fetch(from.job));
  const std::string bad(from.job.id());
  ASSERT_TRUE(from.worker.nack(from.job, failure(false)).ok());
  ASSERT_TRUE(from.admin.retry_dead(bad).ok());
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.get(bad).state, State::kAvailable);
  EXPECT_EQ(to.get(bad).workflow_id, "");
  EXPECT_EQ(to.drain().size(), 2U);
  EXPECT_EQ(to.observer.workflow(id).value().state, WorkflowState::kFailed);
}

TEST(TransferWorkflows, what_leads_out_of_itself_is_refused) {
  QuietSegment to;
  const std::string head = R"({"ojs_shm_export":1,"convention":"ojs"})";
  const auto code = [&](const std::string& members) {
    return import(to.segment,
                  {head,
                   R"({"workflow":{"id":"01961234-5678-7abc-8def-0123456789ab",)" + members + "}}"})
        .code();
  };
  EXPECT_EQ(code(R"("tree":{"k":1},"sets":[[7]],"members":[{}])"), Code::kInvalid);
  EXPECT_EQ(code(R"("tree":{"k":1},"sets":[],"members":[{"waits":3}])"), Code::kInvalid);
  EXPECT_EQ(code(R"("tree":{"k":1},"sets":[[],[],[],[]],"members":[{}])"), Code::kInvalid);
  EXPECT_EQ(code(R"("tree":{"k":1},"sets":[[0,0]],"members":[{}])"), Code::kInvalid);
  EXPECT_EQ(code(R"("tree":7,"members":[{}])"), Code::kInvalid);
  EXPECT_EQ(code(R"("tree":{"k":1},"members":[])"), Code::kInvalid);
  EXPECT_EQ(code(R"("tree":{"k":1},"members":[{"strange":1}])"), Code::kInvalid);
  EXPECT_TRUE(to.observer.workflows().empty());
}

}  // namespace
}  // namespace ojs_shm::test
