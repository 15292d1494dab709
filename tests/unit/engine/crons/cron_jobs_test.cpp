// SPDX-License-Identifier: Apache-2.0
// The job that a cron puts in, and what it meets in its queue: a bound, its like, a limit.

#include "tests/unit/engine/crons/cron_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Crons, PRI_002_a_job_without_priority_has_the_default_one) {
  set(spec());
  pass(kHour);
  EXPECT_EQ(jobs().at(0).priority, 2);
}

TEST_F(Crons, the_job_has_all_that_its_template_has) {
  CronSpec full = spec();
  const std::string large(3000, 'x');
  const std::string args = "[\"" + large + "\"]";
  full.job.args = args;
  full.job.queue = "reports";
  full.job.extra = R"({"meta":{"tenant_id":"a"}})";
  full.job.priority = 1;
  full.job.timeout_ms = 4000;
  full.job.lease_ms = 5000;
  full.job.expires_at_ms = 90'000;
  full.job.retry.max_attempts = 7;
  full.job.retry.dead_letter = true;
  full.job.priority_age_rate = 3;
  full.description = "all of it";
  full.timezone = "Europe/Berlin";
  set(full);
  const CronInfo cron = look();
  EXPECT_EQ(cron.description, "all of it");
  EXPECT_EQ(cron.timezone, "Europe/Berlin");
  EXPECT_EQ(cron.job.args, args);
  EXPECT_EQ(cron.job.priority_age_rate, 3U);
  EXPECT_EQ(cron.job.expires_at_ms, 90'000U);
  EXPECT_EQ(cron.job.id, "");
  pass(kHour);
  const JobInfo job = jobs().at(0);
  EXPECT_EQ(job.args, args);
  EXPECT_EQ(job.queue, "reports");
  EXPECT_EQ(job.extra, full.job.extra);
  EXPECT_EQ(job.priority, 1);
  EXPECT_EQ(job.timeout_ms, 4000U);
  EXPECT_EQ(job.lease_ms, 5000U);
  EXPECT_EQ(job.expires_at_ms, kMonday + kHour + 90'000);
  EXPECT_EQ(job.retry.max_attempts, 7);
  EXPECT_TRUE(job.retry.dead_letter);
  EXPECT_EQ(job.priority_age_rate, 3U);
}

TEST_F(Crons, a_job_at_work_knows_its_cron) {
  set(spec());
  s.put(3);
  ASSERT_TRUE(s.admin.trigger_cron("hourly").ok());
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.job.cron_name(), "hourly");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.job.cron_name(), "") << "it is no longer held";
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.job.cron_name(), "");
  EXPECT_EQ(Job().cron_name(), "");
}

TEST_F(Crons, a_full_queue_is_passed_over) {
  listen();
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 1}).ok());
  s.put();
  set(spec());
  pass(kHour);
  EXPECT_EQ(look().skipped_count, 1U);
  EXPECT_EQ(look().run_count, 0U);
  EXPECT_EQ(s.admin.trigger_cron("hourly").code(), Code::kQueueFull);
  s.drain();
  pass(kHour);
  EXPECT_EQ(look().run_count, 1U);
  const auto told = events();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].reason, "queue_full");
  EXPECT_EQ(told[0].job_id, "");
}

TEST_F(Crons, a_full_queue_that_drops_takes_it) {
  ASSERT_TRUE(
      s.admin.set_queue("default", {.max_depth = 1, .strategy = BackpressureStrategy::kDropOldest})
          .ok());
  const std::string old = s.put();
  set(spec());
  pass(kHour);
  EXPECT_EQ(s.state_of(old), State::kDiscarded);
  EXPECT_EQ(look().run_count, 1U);
}

TEST_F(Crons, a_unique_job_that_is_there_passes_over) {
  JobSpec job;
  job.type = "report.make";
  const JobUnique unique = JobUnique::of(job, UniquePolicy{}).value();
  CronSpec once = spec();
  once.overlap = CronOverlap::kAllow;
  once.job.unique = &unique;
  set(once);
  pass(kHour);
  pass(kHour);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(look().skipped_count, 1U);
  EXPECT_EQ(s.admin.trigger_cron("hourly").code(), Code::kDuplicate);
  EXPECT_EQ(jobs().at(0).unique_key, unique.key().substr(0, 32));
}

TEST_F(Crons, a_unique_job_that_replaces_goes_in_with_its_time) {
  JobSpec job;
  job.type = "report.make";
  const JobUnique unique =
      JobUnique::of(job, UniquePolicy{.on_conflict = OnConflict::kReplace}).value();
  CronSpec once = spec();
  once.overlap = CronOverlap::kAllow;
  once.job.unique = &unique;
  set(once);
  pass(kHour);
  const std::string first = look().last_job;
  pass(kHour);
  EXPECT_EQ(s.state_of(first), State::kCancelled);
  EXPECT_EQ(look().run_count, 2U);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(Crons, its_limit_stays_while_it_has_no_job) {
  const JobLimit limit{"api", {.concurrency = 1}};
  CronSpec limited = spec();
  limited.overlap = CronOverlap::kAllow;
  limited.job.limit = &limit;
  set(limited);
  // more other keys than there is room for
  for (int i = 0; i < 2000; ++i) {
    const JobLimit other{"other" + std::to_string(i), {.concurrency = 1}};
    JobSpec job = spec_of();
    job.limit = &other;
    const auto id = s.producer.enqueue(job);
    ASSERT_TRUE(id.ok()) << id.error().message;
    s.drain();
  }
  pass(kHour);
  pass(kHour);
  EXPECT_NE(s.take(), "");
  Job second;
  EXPECT_FALSE(s.worker.try_fetch(second));
}

}  // namespace
}  // namespace ojs_shm::test
