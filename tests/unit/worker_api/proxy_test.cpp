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

TEST_F(ForClients, jobs_of_another_tenant_are_not_handed_out) {
  JobSpec spec = spec_of(2);
  spec.tenant = "b";
  spec.extra = R"({"meta":{"tenant_id":"b"}})";
  const std::string id = s.put(spec);
  EXPECT_TRUE(fetch({.tenant = "a"}).empty());
  EXPECT_EQ(s.get(id).attempt, 0);
  EXPECT_EQ(fetch({.tenant = "b"}), std::vector<std::string>{id});
}

}  // namespace
}  // namespace ojs_shm::test
