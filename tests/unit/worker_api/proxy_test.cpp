// SPDX-License-Identifier: Apache-2.0
//
// One handle that works for many clients: fetches by request, jobs ended by their id.
#include <ojs_shm/proxy.hpp>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct ForClients : testing::Test {
  QuietSegment s;
  Proxy proxy = Proxy::attach(s.segment).value();

  std::vector<std::string> fetch(const FetchRequest& request) {
    std::vector<std::string> ids;
    const auto jobs = proxy.fetch(request);
    EXPECT_TRUE(jobs.ok());
    if (!jobs) return ids;
    for (const JobInfo& job : *jobs) {
      EXPECT_EQ(job.state, State::kActive);
      ids.push_back(job.id);
    }
    return ids;
  }
};

TEST_F(ForClients, each_fetch_says_what_it_wants) {
  const std::string a = s.put(2, "a"), b = s.put(0, "b"), c = s.put(1, "a");
  EXPECT_EQ(fetch({.queues = {"a", "b"}}), std::vector<std::string>{c});
  EXPECT_EQ(fetch({.queues = {"b"}}), std::vector<std::string>{b});
  EXPECT_EQ(fetch({.queues = {"b", "a"}, .count = 5}), std::vector<std::string>{a});
  EXPECT_TRUE(fetch({.queues = {"none"}}).empty());
  EXPECT_EQ(proxy.fetch({.queues = {}}).code(), Code::kInvalid);
  EXPECT_EQ(proxy.fetch({.pool = "none"}).code(), Code::kNotFound);
}

TEST_F(ForClients, weights_hold_over_fetches_of_one_job_each) {
  for (int i = 0; i < 30; ++i) s.put(2, "a"), s.put(2, "b");
  int of_a = 0;
  for (int i = 0; i < 24; ++i) {
    const auto jobs = proxy.fetch({.queues = {"a", "b"}, .weights = {3, 1}});
    ASSERT_EQ(jobs->size(), 1U);
    of_a += jobs->front().queue == "a" ? 1 : 0;
  }
  EXPECT_EQ(of_a, 18);
}

TEST_F(ForClients, a_pool_chooses_for_those_who_name_it) {
  ASSERT_TRUE(s.admin.set_pool("web", {.queues = {"b"}}).ok());
  const std::string a = s.put(2, "a"), b = s.put(2, "b");
  EXPECT_EQ(fetch({.queues = {"a"}, .pool = "web"}), std::vector<std::string>{b});
  EXPECT_EQ(fetch({.queues = {"a"}}), std::vector<std::string>{a});
}

TEST_F(ForClients, jobs_end_by_their_id_and_the_attempt_that_is_meant) {
  const std::string id = s.put();
  EXPECT_EQ(proxy.ack(id, 0).error().subject, "available");
  const std::uint64_t first = proxy.fetch({})->front().fence;
  EXPECT_EQ(proxy.ack(id, first + 8).code(), Code::kLost);
  ASSERT_TRUE(proxy.requeue(id, first).ok());
  EXPECT_EQ(s.get(id).attempt, 0) << "not counted";
  const std::uint64_t second = proxy.fetch({})->front().fence;
  EXPECT_EQ(proxy.ack(id, first).code(), Code::kLost) << "another attempt runs";
  ASSERT_TRUE(proxy.progress(id, second, 0.5).ok());
  EXPECT_EQ(s.get(id).progress, 0.5);
  ASSERT_TRUE(proxy.ack(id, second, "7").ok());
  EXPECT_EQ(s.get(id).result, "7");
  EXPECT_EQ(proxy.ack(id, 0).code(), Code::kWrongState);
  EXPECT_EQ(proxy.ack("019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d", 0).code(), Code::kNotFound);
}

TEST_F(ForClients, another_process_may_end_what_a_native_worker_holds) {
  const std::string id = s.put();
  ASSERT_EQ(s.take(), id);
  const auto outcome = proxy.nack(id, s.job.fence(), {.code = "boom", .retryable = false});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->state, State::kDiscarded);
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
}

TEST_F(ForClients, a_heartbeat_moves_the_end_of_the_lease) {
  const std::string id = s.put();
  const auto job = proxy.fetch({.lease_ms = 60'000});
  ASSERT_EQ(job->size(), 1U);
  ASSERT_TRUE(proxy.heartbeat(id, 0, 10 * kHour).ok());
  s.pass(kHour);
  EXPECT_EQ(s.get(id).state, State::kActive);
  s.pass(10 * kHour);
  EXPECT_EQ(s.get(id).state, State::kAvailable);
}

class ForTenants : public ForClients {
 protected:
  std::string put(std::string_view tenant, std::int64_t priority,
                  std::string_view queue = "default") {
    const std::string extra = R"({"meta":{"tenant_id":")" + std::string(tenant) + R"("}})";
    JobSpec spec = spec_of(priority, queue);
    spec.extra = extra;
    return s.put(spec);
  }
};

TEST_F(ForTenants, PRI_004_jobs_of_another_tenant_in_front_are_passed_over) {
  const std::string others = put("b", 0), low = put("a", 5), high = put("a", 1), next = put("a", 1);
  put("b", 0);
  EXPECT_EQ(fetch({.count = 2, .tenant = "a"}), (std::vector<std::string>{high, next}));
  EXPECT_EQ(fetch({.count = 9, .tenant = "a"}), std::vector<std::string>{low});
  EXPECT_TRUE(fetch({.tenant = "a"}).empty());
  EXPECT_TRUE(fetch({.tenant = "c"}).empty());
  EXPECT_EQ(s.get(others).attempt, 0);
  EXPECT_EQ(fetch({.tenant = "b"}), std::vector<std::string>{others});
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(ForTenants,
       a_tenants_jobs_wait_in_a_paused_queue_and_come_from_the_first_queue_that_has_any) {
  const std::string second = put("a", 0, "second"), first = put("a", 9, "first");
  put("b", 0, "first");
  const FetchRequest both{.queues = {"first", "second"}, .tenant = "a"};
  ASSERT_TRUE(s.admin.set_queue("first", {.paused = true}).ok());
  EXPECT_EQ(fetch(both), std::vector<std::string>{second});
  EXPECT_TRUE(fetch(both).empty());
  ASSERT_TRUE(s.admin.set_queue("first", {.paused = false}).ok());
  EXPECT_EQ(fetch(both), std::vector<std::string>{first});
}

TEST_F(ForTenants, a_tenant_of_a_shared_queue_is_served_out_of_turn) {
  ASSERT_TRUE(
      s.admin.set_queue("default", *parse_queue_settings(R"({"tenant_fairness":{}})")).ok());
  const std::string b = put("b", 2), first = put("a", 2), second = put("a", 2);
  EXPECT_EQ(fetch({.count = 2, .tenant = "a"}), (std::vector<std::string>{first, second}));
  EXPECT_EQ(s.drain(), std::vector<std::string>{b});
}

TEST_F(ForTenants, an_expired_job_is_passed_over) {
  JobSpec spec = spec_of(0);
  spec.extra = R"({"meta":{"tenant_id":"a"}})";
  spec.expires_at_ms = s.now_ms() + kHour;
  s.put(spec);
  const std::string lasting = put("a", 9);
  s.move_clock(2 * kHour);
  EXPECT_EQ(fetch({.tenant = "a"}), std::vector<std::string>{lasting});
}

TEST_F(ForTenants, PRI_004_a_job_that_a_limit_holds_back_is_passed_over) {
  RateLimit one;
  one.concurrency = 1;
  const JobLimit limit{"key", one};
  JobSpec spec = spec_of(0);
  spec.extra = R"({"meta":{"tenant_id":"a"}})";
  spec.limit = &limit;
  const std::string first = s.put(spec), held_back = s.put(spec), low = put("a", 9);
  EXPECT_EQ(fetch({.count = 3, .tenant = "a"}), (std::vector<std::string>{first, low}));
  ASSERT_TRUE(proxy.ack(first, 0).ok());
  EXPECT_EQ(fetch({.tenant = "a"}), std::vector<std::string>{held_back});
}

}  // namespace
}  // namespace ojs_shm::test
