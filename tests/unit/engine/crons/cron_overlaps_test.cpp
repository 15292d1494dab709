// SPDX-License-Identifier: Apache-2.0
// What a cron does while its last job has not finished.

#include "tests/unit/engine/crons/cron_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Crons, L2_CRON_overlap_skip_passes_over_while_the_last_job_is_not_finished) {
  listen();
  set(spec());
  pass(kHour);
  ASSERT_NE(s.take(), "");
  pass(kHour);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(look().skipped_count, 1U);
  EXPECT_EQ(look().next_run_at_ms, kMonday + 3 * kHour);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  pass(kHour);
  EXPECT_EQ(look().skipped_count, 2U) << "it is to be tried again";
  s.pass(kHour / 2);
  s.drain();
  pass(kHour / 2);
  EXPECT_EQ(look().run_count, 2U);
  const auto told = events();
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0].type, "cron.triggered");
  EXPECT_EQ(told[0].cron_name, "hourly");
  EXPECT_EQ(told[0].at_ms, kMonday + 2 * kHour);
  EXPECT_EQ(told[0].scheduled_at_ms, kMonday + kHour);
  EXPECT_EQ(told[0].run_count, 1U);
  EXPECT_EQ(told[0].cron_expression, "0 * * * *");
  EXPECT_EQ(told[0].timezone, "UTC");
  EXPECT_EQ(told[0].job_type, "report.make");
  EXPECT_EQ(told[1].type, "cron.skipped");
  EXPECT_EQ(told[1].reason, "overlap_skip");
  EXPECT_EQ(told[1].scheduled_at_ms, kMonday + 2 * kHour) << "the time that passed";
  EXPECT_EQ(told[1].run_count, 1U);
  EXPECT_EQ(told[1].job_id, told[0].job_id);
  EXPECT_EQ(told[3].job_id, look().last_job);
  EXPECT_EQ(told[3].run_count, 2U);
}

TEST_F(Crons, overlap_allow_runs_them_side_by_side) {
  CronSpec side = spec();
  side.overlap = CronOverlap::kAllow;
  set(side);
  pass(kHour);
  pass(kHour);
  EXPECT_NE(s.take(), "");
  EXPECT_NE(s.take(), "");
}

TEST_F(Crons, overlap_enqueue_runs_them_one_after_the_other) {
  CronSpec line = spec();
  line.overlap = CronOverlap::kEnqueue;
  set(line);
  pass(kHour);
  pass(kHour);
  EXPECT_EQ(jobs().size(), 2U);
  const std::string first = s.take();
  EXPECT_NE(first, "");
  Job other;
  EXPECT_FALSE(s.worker.try_fetch(other)) << "the first runs";
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_NE(s.take(), "");
}

TEST_F(Crons, overlap_cancel_previous_cancels_what_waits_or_runs) {
  CronSpec newest = spec();
  newest.overlap = CronOverlap::kCancelPrevious;
  set(newest);
  pass(kHour);
  const std::string first = look().last_job;
  pass(kHour);
  const std::string second = s.take();
  EXPECT_EQ(s.state_of(first), State::kCancelled);
  pass(kHour);
  EXPECT_EQ(s.state_of(second), State::kCancelled);
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(look().run_count, 3U);
}

}  // namespace
}  // namespace ojs_shm::test
