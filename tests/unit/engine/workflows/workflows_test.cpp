// SPDX-License-Identifier: Apache-2.0
// Workflows natively: order, callbacks, results, failure, cancel. Each test ends with an audit.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::test {
namespace {

WorkflowSpec job_of(std::string_view type, std::string_view queue = {}) {
  WorkflowSpec part;
  part.job.type = type;
  part.job.queue = queue;
  return part;
}

WorkflowSpec of_kind(WorkflowKind kind, std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec;
  spec.kind = kind;
  spec.steps = std::move(steps);
  return spec;
}
WorkflowSpec chain(std::vector<WorkflowSpec> steps) {
  return of_kind(WorkflowKind::kChain, std::move(steps));
}
WorkflowSpec group(std::vector<WorkflowSpec> steps) {
  return of_kind(WorkflowKind::kGroup, std::move(steps));
}
WorkflowSpec batch(std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec = of_kind(WorkflowKind::kBatch, std::move(steps));
  spec.on_complete = {job_of("on.complete")};
  spec.on_success = {job_of("on.success")};
  spec.on_failure = {job_of("on.failure")};
  return spec;
}
WorkflowSpec step(std::string_view name, std::vector<std::string_view> after) {
  WorkflowSpec part = job_of("step");
  part.name = name;
  part.depends_on = std::move(after);
  return part;
}

class Workflows : public testing::Test {
 protected:
  std::string create(const WorkflowSpec& spec) {
    const auto id = s.producer.create_workflow(spec);
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    return id.ok() ? *id : std::string();
  }
  WorkflowInfo look(std::string_view id) const {
    const auto info = s.observer.workflow(id);
    EXPECT_TRUE(info.ok()) << id;
    return info.ok() ? *info : WorkflowInfo{};
  }
  /// The type of the next job, which is acked with that result; "" when there is none.
  std::string ack(std::string_view result = "null") {
    if (!s.worker.try_fetch(s.job)) return {};
    const std::string type(s.job.type());
    EXPECT_TRUE(s.worker.ack(s.job, result).ok());
    return type;
  }
  std::string fail() {
    if (!s.worker.try_fetch(s.job)) return {};
    const std::string type(s.job.type());
    EXPECT_TRUE(s.worker.nack(s.job, failure(false)).ok());
    return type;
  }
  std::vector<std::string> run_all() {
    std::vector<std::string> types;
    for (std::string type = ack(); !type.empty(); type = ack()) types.push_back(type);
    return types;
  }
  Code refused(const WorkflowSpec& spec, std::string* subject = nullptr) {
    const auto id = s.producer.create_workflow(spec);
    if (id.ok()) return Code::kOk;
    if (subject != nullptr) *subject = id.error().subject;
    return id.error().code;
  }
  QuietSegment s;
};

using Types = std::vector<std::string>;

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

// ---- what jobs inherit ---------------------------------------------------------------------------

TEST_F(Workflows, jobs_inherit_the_queue_and_the_tenant_which_their_meta_says) {
  WorkflowSpec spec = group({job_of("plain"), job_of("elsewhere", "other"), job_of("own"),
                             chain({job_of("first"), job_of("second")})});
  spec.queue = "mail";
  spec.tenant = "shop";
  spec.steps[0].job.extra = R"({"meta":{"trace":"t"},"tags":["x"]})";
  spec.steps[2].job.extra = R"({"meta":{"tenant_id":"guest"}})";
  spec.steps[3].queue = "late";
  spec.steps[3].tenant = "part";
  QueueSettings bound;
  bound.tenant_max_depth = 1;
  ASSERT_TRUE(s.admin.set_queue("mail", bound).ok());
  const std::string id = create(spec);
  EXPECT_EQ(look(id).tenant, "") << "its jobs are of several";
  std::map<std::string, std::string> queues, tenants;
  for (const JobInfo& job : s.observer.list({})) {
    queues[job.type] = job.queue;
    tenants[job.type] = tenant_of(job.extra);
    if (job.type == "plain") {
      EXPECT_EQ(job.extra, R"({"meta":{"tenant_id":"shop","trace":"t"},"tags":["x"]})");
    }
  }
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(queues,
            (Map{{"plain", "mail"}, {"elsewhere", "other"}, {"own", "mail"}, {"first", "late"}}));
  EXPECT_EQ(tenants,
            (Map{{"plain", "shop"}, {"elsewhere", "shop"}, {"own", "guest"}, {"first", "part"}}));
  EXPECT_EQ(s.observer.list({.tenant = "shop"}).size(), 2U);
  WorkflowSpec second = group({job_of("again")});
  second.queue = "mail";
  second.tenant = "shop";
  EXPECT_EQ(refused(second), Code::kQueueFull) << "one of the tenant waits there already";
}

TEST_F(Workflows, one_is_its_tenants_when_all_its_jobs_are) {
  WorkflowSpec spec = chain({job_of("a"), job_of("b")});
  spec.tenant = "shop";
  const std::string whole = create(spec);
  WorkflowSpec by_jobs = group({job_of("a"), job_of("b")});
  for (WorkflowSpec& each : by_jobs.steps) each.job.extra = R"({"meta":{"tenant_id":"shop"}})";
  const std::string parts = create(by_jobs);
  create(chain({job_of("a")}));
  EXPECT_EQ(look(whole).tenant, "shop");
  EXPECT_EQ(look(parts).tenant, "shop");
  EXPECT_EQ(s.observer.workflows({.tenant = "shop"}).size(), 2U);
  EXPECT_EQ(s.observer.workflows({.tenant = "other"}).size(), 0U);
  EXPECT_EQ(s.observer.workflows({}).size(), 3U);
}

// ---- priorities ---------------------------------------------------------------------------------

TEST_F(Workflows, PRI_T24_priorities_of_its_jobs_order_their_dispatch) {
  WorkflowSpec spec = group({job_of("three"), job_of("zero"), job_of("two")});
  spec.steps[0].job.priority = 3;
  spec.steps[1].job.priority = 0;
  create(spec);
  EXPECT_EQ(run_all(), (Types{"zero", "two", "three"}));
}

std::vector<std::int64_t> priorities(QuietSegment& s) {
  std::vector<std::int64_t> found;
  while (s.worker.try_fetch(s.job)) {
    found.push_back(s.job.priority());
    EXPECT_TRUE(s.worker.ack(s.job).ok());
  }
  return found;
}

TEST_F(Workflows, PRI_T25_successors_inherit_the_priority_of_the_root) {
  WorkflowSpec spec = chain({job_of("a"), job_of("b"), batch({job_of("c")})});
  spec.priority = 1;
  spec.steps[1].job.priority = 4;
  create(spec);
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{1, 4, 1, 1, 1}));
  WorkflowSpec rooted = chain({job_of("a"), job_of("b"), job_of("c")});
  rooted.steps[0].job.priority = 0;
  create(rooted);
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST_F(Workflows, PRI_T25_the_root_is_found_in_nested_chains_and_along_dependencies) {
  WorkflowSpec inner = chain({job_of("a"), job_of("b")});
  inner.steps[0].job.priority = 1;
  create(chain({inner, job_of("c")}));
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{1, 1, 1}));
  WorkflowSpec graph =
      of_kind(WorkflowKind::kGraph, {step("z", {"y"}), step("x", {}), step("y", {"x"})});
  graph.steps[1].job.priority = 0;
  create(graph);
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{0, 0, 0}));
  graph.steps[2].job.priority = 4;
  create(graph);
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{0, 4, 4})) << "of the step before";
}

TEST_F(Workflows, PRI_005_its_own_priority_is_in_range_also_where_no_job_takes_it) {
  WorkflowSpec spec = chain({job_of("a"), group({job_of("b")})});
  spec.steps[0].job.priority = 1;
  for (const auto& [at, place] :
       {std::pair(&spec, "$.priority"), std::pair(&spec.steps[1], "$.steps[1].priority")}) {
    for (const std::int64_t wrong : {-1, 256}) {
      at->priority = wrong;
      const auto refused = s.producer.create_workflow(spec);
      ASSERT_EQ(refused.code(), Code::kInvalid) << place;
      EXPECT_EQ(refused.error().subject, place);
      EXPECT_EQ(refused.error().bound, 255U);
    }
    at->priority.reset();
  }
}

TEST_F(Workflows, SUM_09_jobs_inherit_the_priority_of_their_workflow) {
  WorkflowSpec spec = group({job_of("a"), chain({job_of("b"), job_of("c")})});
  spec.priority = 3;
  spec.steps[1].priority = 0;
  create(spec);
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{0, 0, 3}));
}

TEST_F(Workflows, PRI_T26_a_workflows_priority_passes_no_better_job_of_its_queue) {
  WorkflowSpec spec = group({job_of("inside")});
  spec.priority = 1;
  create(spec);
  s.put(0);
  EXPECT_EQ(priorities(s), (std::vector<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace ojs_shm::test
