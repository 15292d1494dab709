// SPDX-License-Identifier: Apache-2.0
// Limits that a failed job closes until a time.

#include "tests/unit/engine/limits/limited_jobs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Limits, a_job_that_reports_so_closes_its_limit_until_then) {
  s.stop_clock();
  const std::string first = put("api", 9), second = put("api", 9), other = put("else", 9);
  ASSERT_EQ(hold(), first);
  Failure failed;
  failed.code = "too_many";
  failed.rate_limit_until_ms = s.now_ms() + 5'000;
  ASSERT_TRUE(workers.back().nack(held.back(), failed).ok());
  EXPECT_EQ(limit("api").closed_until_ms, failed.rate_limit_until_ms);
  EXPECT_EQ(limit("api").next_at_ms, failed.rate_limit_until_ms);
  EXPECT_EQ(hold(), other) << "another limit's job";
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.observer.get(second)->state, State::kAvailable);
  s.pass(4'000);
  EXPECT_EQ(hold(), "");
  s.pass(1'000);
  EXPECT_EQ(hold(), second) << "the first one's retry is in the line behind";
  EXPECT_EQ(limit("api").closed_until_ms, 0U);
}

TEST_F(Limits, the_latest_report_holds_and_an_operator_opens_the_limit) {
  s.stop_clock();
  put("api", 9), put("api", 9), put("api", 9);
  hold(), hold();
  Failure failed;
  failed.rate_limit_until_ms = s.now_ms() + 60'000;
  ASSERT_TRUE(workers[0].nack(held[0], failed).ok());
  failed.rate_limit_until_ms = s.now_ms() + 1'000;
  ASSERT_TRUE(workers[1].nack(held[1], failed).ok());
  EXPECT_EQ(limit("api").closed_until_ms, s.now_ms() + 60'000);
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.set_limit("api", at_once(9)).ok());
  EXPECT_EQ(limit("api").closed_until_ms, 0U);
  EXPECT_NE(hold(), "");
}

TEST_F(Limits, a_report_of_a_past_time_or_of_a_job_without_a_limit_closes_nothing) {
  put("api", 9), put("api", 9);
  hold();
  Failure failed;
  failed.rate_limit_until_ms = s.now_ms() - 1;
  ASSERT_TRUE(workers[0].nack(held[0], failed).ok());
  EXPECT_NE(hold(), "");
  s.put(spec_of(2, "free")), s.put(spec_of(2, "free"));
  hold("free");
  failed.rate_limit_until_ms = s.now_ms() + 60'000;
  ASSERT_TRUE(workers.back().nack(held.back(), failed).ok());
  EXPECT_NE(hold("free"), "");
}

}  // namespace
}  // namespace ojs_shm::test
