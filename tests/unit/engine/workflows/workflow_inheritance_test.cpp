// SPDX-License-Identifier: Apache-2.0
// What jobs inherit from their workflow: queue, tenant, priority.

#include <map>

#include "tests/unit/engine/workflows/workflow_specs.hpp"

namespace ojs_shm::test {
namespace {

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
