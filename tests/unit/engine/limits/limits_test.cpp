// SPDX-License-Identifier: Apache-2.0
// Limits on concurrency: on jobs and queues, and what they let begin. Windows and throttles are
// rates_test's.

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/support/seed.hpp"
#include "tests/unit/engine/limits/limited_jobs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Limits,
       PRI_G4_a_job_with_a_limit_goes_first_and_is_passed_by_lower_ones_once_the_limit_is_reached) {
  std::vector<std::string> limited;
  for (int i = 0; i < 6; ++i) limited.push_back(put("payment-api", 5, 1));
  const std::string plain = s.put(2);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(hold(), limited[i]);
  EXPECT_EQ(hold(), plain);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.state_of(limited[5]), State::kAvailable);
  ack(2);
  EXPECT_EQ(hold(), limited[5]);
}

TEST_F(Limits, PRI_T23_PRI_004_a_held_back_job_stays_available_counts_as_depth_and_blocks_nobody) {
  const std::string first = put("k", 1, 0);
  EXPECT_EQ(hold(), first);
  std::vector<std::string> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(put("k", 1, 0));
  const std::string low = s.put(4);
  EXPECT_EQ(hold(), low);
  for (const std::string& id : waiting) EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_EQ(s.queue().depth, 50U);
  EXPECT_EQ(limit("k").waiting, 50U);
  EXPECT_EQ(limit("k").active, 1U);
}

TEST_F(Limits, PRI_T21_QO_20_those_held_back_are_let_go_by_priority_and_then_in_their_order) {
  put("k", 1, 0);
  hold();
  const std::string c = put("k", 1, 3), a = put("k", 1, 1), b1 = put("k", 1, 2),
                    b2 = put("k", 1, 2);
  EXPECT_EQ(hold(), "");
  const std::string d = put("k", 1, 3);  // born into the lot
  std::size_t at_work = 0;
  for (const std::string& expected : {a, b1, b2, c, d}) {
    const std::string plain = s.put(3);  // who is let go keeps its priority, and its place
    ack(at_work);
    at_work = held.size();
    EXPECT_EQ(hold(), expected);
    EXPECT_EQ(hold(), plain);
    EXPECT_EQ(hold(), "");
  }
}

/// Jobs of two keys and of none in random order: at each moment the best of those goes whose key
/// has room.
TEST_F(Limits, PRI_T21_of_mixed_keys_the_eligible_jobs_leave_in_the_order_of_their_priorities) {
  Seeded random;
  std::vector<std::int64_t> priorities(150);
  std::iota(priorities.begin(), priorities.end(), 0);
  std::shuffle(priorities.begin(), priorities.end(), random.numbers());
  const std::map<std::string, std::uint32_t> room = {{"one", 1}, {"three", 3}, {"", 1000}};
  std::map<std::int64_t, std::pair<std::string, std::string>> waiting;  // by priority: key and id
  std::map<std::string, std::vector<Job>> at_work;                      // by key
  std::size_t step = 0;
  while (step < priorities.size() || !waiting.empty()) {
    if (step < priorities.size() && random.coin()) {
      const std::int64_t priority = priorities[step++];
      const std::string key = std::vector<std::string>{"one", "three", ""}[random.bits() % 3];
      const std::string id = key.empty() ? s.put(priority) : put(key, room.at(key), priority);
      waiting[priority] = {key, id};
      continue;
    }
    const auto best = std::find_if(waiting.begin(), waiting.end(), [&](const auto& job) {
      return at_work[job.second.first].size() < room.at(job.second.first);
    });
    Job job;
    const bool got = s.worker.try_fetch(job).ok();
    ASSERT_EQ(got ? job.id() : "", best == waiting.end() ? "" : best->second.second) << step;
    if (got) {
      at_work[best->second.first].push_back(std::move(job));
      waiting.erase(best);
    }
    for (auto& [key, jobs] : at_work)
      if (!jobs.empty() && random.bits() % 3 == 0) {
        ASSERT_TRUE(s.worker.ack(jobs.back()).ok());
        jobs.pop_back();
      }
  }
}

TEST_F(Limits, PRI_T22_the_limit_is_kept_however_a_job_ends) {
  for (int i = 0; i < 8; ++i) put("k", 2);
  hold(), hold();
  EXPECT_EQ(hold(), "");
  EXPECT_TRUE(workers[0].nack(held[0], failure(false)).ok());
  EXPECT_NE(hold(), "");
  EXPECT_TRUE(s.producer.cancel(held[1].id()).ok());
  EXPECT_NE(hold(), "");
  EXPECT_TRUE(workers[2].nack(held[2], failure()).ok());
  EXPECT_NE(hold(), "");
  EXPECT_TRUE(workers[3].requeue(held[3]).ok());
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  s.pass(kHour);  // the leases end
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(limit("k").active, 2U);
}

TEST_F(Limits, PRI_T22_keys_are_told_apart_by_their_names_and_share_nothing) {
  put("a", 1), put("b", 1), put("a", 1), put("b", 1);
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(limit("a").active, 1U);
  EXPECT_EQ(limit("b").active, 1U);
  EXPECT_FALSE(s.observer.limit("c").ok());
}

TEST_F(Limits, SUM_08_a_queue_with_a_limit_runs_in_priority_order_up_to_it) {
  ASSERT_TRUE(s.admin.set_limit("queue:default", at_once(2)).ok());
  const std::string c = s.put(3), a = s.put(1), b = s.put(2);
  const std::string elsewhere = s.put(4, "other");
  EXPECT_EQ(hold(), a);
  EXPECT_EQ(hold(), b);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(hold("other"), elsewhere);
  ack(0);
  EXPECT_EQ(hold(), c);
  EXPECT_EQ(limit("queue:default").active, 2U);
}

TEST_F(Limits, BP_T18_BP_T23_a_limit_and_a_bound_hold_at_once) {
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 3}).ok());
  for (int i = 0; i < 3; ++i) put("k", 1);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  put("k", 1);  // what the limit holds back stands in the depth
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  s.put();
}

TEST_F(Limits, a_limit_is_raised_and_lowered_while_jobs_wait) {
  for (int i = 0; i < 8; ++i) put("k", 2);
  hold(), hold();
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.set_limit("k", at_once(4)).ok());
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  put("k", 7);  // what jobs bring does not change what an operator has set
  ASSERT_TRUE(s.admin.set_limit("k", at_once(1)).ok());
  ack(0), ack(1), ack(2);
  EXPECT_EQ(hold(), "");
  ack(3);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.clear_limit("k").ok());
  for (int i = 0; i < 4; ++i) EXPECT_NE(hold(), "");
  EXPECT_EQ(s.observer.limit("k")->waiting, 0U);
  EXPECT_EQ(s.admin.clear_limit("none").code(), Code::kNotFound);
}

TEST_F(Limits, none_at_once_is_a_pause_of_the_key) {
  ASSERT_TRUE(s.admin.set_limit("k", at_once(0)).ok());
  const JobLimit alone{"k", {}};
  JobSpec spec = spec_of();
  spec.limit = &alone;
  const std::string id = s.put(spec);
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.set_limit("k", at_once(1)).ok());
  EXPECT_EQ(hold(), id);
}

TEST_F(Limits, on_limit_drop_discards_and_reschedule_schedules) {
  JobLimit limit{"k", at_once(1)};
  limit.limit.on_limit = OnLimit::kDrop;
  JobSpec spec = spec_of();
  spec.limit = &limit;
  s.put(spec);
  hold();
  const std::string dropped = s.put(spec);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.state_of(dropped), State::kDiscarded);
  EXPECT_EQ(s.observer.limit("k")->dropped_total, 1U);
  limit.limit.on_limit = OnLimit::kReschedule;
  const std::string later = s.put(spec);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.state_of(later), State::kScheduled);
  ack(0);
  s.pass(2 * kSecond);
  EXPECT_EQ(hold(), later);
}

}  // namespace
}  // namespace ojs_shm::test
