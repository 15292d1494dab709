// SPDX-License-Identifier: Apache-2.0
// Leases: who sets them, what prolongs them, what ends them, and that none can do anything with a
// job he lost.

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

JobSpec often(std::uint32_t lease_ms = 0) {
  JobSpec spec = spec_of(2);
  spec.retry.max_attempts = 20;
  spec.lease_ms = lease_ms;
  return spec;
}

TEST(Leases, the_workers_lease_goes_before_the_jobs_and_that_before_the_segments) {
  QuietSegment s;
  const auto length = [&s] { return s.job.deadline_ms() - s.job.started_at_ms(); };
  s.put(often());
  s.put(often(5000));
  s.put(often(5000));
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(length(), 1'800'000U);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(length(), 5000U);
  Worker choosing = Worker::attach(s.segment, {.queues = {"default"}, .lease_ms = 70'000}).value();
  ASSERT_TRUE(choosing.try_fetch(s.job).ok());
  EXPECT_EQ(length(), 70'000U);
}

TEST(Leases, a_heartbeat_renews_by_the_length_in_force_or_the_one_it_names) {
  QuietSegment s;
  const std::string id = s.put(often(kHour));
  ASSERT_EQ(s.take(), id);
  s.pass(kHour / 2);
  const std::uint64_t now = s.now_ms();
  EXPECT_GE(s.worker.heartbeat(s.job).value(), now + kHour);
  EXPECT_GE(s.job.deadline_ms(), now + kHour);
  s.pass(kHour * 3 / 4);  // past the first lease, within the second
  EXPECT_EQ(s.state_of(id), State::kActive);
  ASSERT_TRUE(s.worker.heartbeat(s.job, 10 * kHour).ok());
  s.pass(9 * kHour);
  EXPECT_EQ(s.state_of(id), State::kActive);
  ASSERT_TRUE(s.worker.heartbeat(s.job, 1000).ok());  // shorter is allowed as well
  s.pass(kHour);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
}

TEST(Leases, an_expired_job_is_lost_to_its_holder_whatever_he_tries) {
  QuietSegment s;
  const std::string id = s.put(often(1000));
  ASSERT_EQ(s.take(), id);
  Job stale = std::move(s.job);
  s.job = Job();
  s.pass(kMinute);
  ASSERT_EQ(s.take(), id);
  EXPECT_TRUE(stale.cancel_requested());
  EXPECT_EQ(s.worker.ack(stale).code(), Code::kLost);
  EXPECT_EQ(s.worker.nack(stale, failure()).code(), Code::kLost);
  EXPECT_EQ(s.worker.requeue(stale).code(), Code::kLost);
  EXPECT_EQ(s.worker.heartbeat(stale).code(), Code::kLost);
  EXPECT_EQ(s.worker.progress(stale, 0.5).code(), Code::kLost);
  EXPECT_EQ(s.state_of(id), State::kActive);
  EXPECT_TRUE(s.worker.ack(s.job).ok());
}

TEST(Leases, a_lease_that_nobody_ended_yet_still_belongs_to_its_holder) {
  QuietSegment s;
  const std::string id = s.put(often(1000));
  ASSERT_EQ(s.take(), id);
  s.move_clock(kHour);  // no supervisor looked
  EXPECT_TRUE(s.worker.heartbeat(s.job, kHour).ok());
  s.tick();
  EXPECT_EQ(s.state_of(id), State::kActive);
  EXPECT_TRUE(s.worker.ack(s.job).ok());
}

TEST(Leases, many_leases_end_in_one_look_and_only_those_that_are_over) {
  QuietSegment s;
  std::vector<Job> jobs(100);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    s.put(often(i % 2 == 0 ? 1000 : 3 * kHour));
    ASSERT_TRUE(s.worker.try_fetch(jobs[i]).ok());
  }
  s.move_clock(kHour);
  EXPECT_EQ(s.tick().leases_ended, 50U);
  EXPECT_EQ(s.queue().by_state[static_cast<int>(State::kActive)], 50U);
  EXPECT_EQ(s.queue().depth, 50U);
  s.move_clock(4 * kHour);
  EXPECT_EQ(s.tick().leases_ended, 50U);
}

TEST(Leases, each_error_is_recorded_up_to_sixteen) {
  QuietSegment s;
  JobSpec spec = often(1000);
  spec.retry.max_attempts = 100;
  const std::string id = s.put(spec);
  for (int attempt = 1; attempt <= 20; ++attempt) {
    ASSERT_EQ(s.take(), id);
    s.pass(kMinute);
  }
  const JobInfo info = s.get(id);
  ASSERT_EQ(info.errors.size(), 16U);
  EXPECT_EQ(info.errors.front().attempt, 5);
  EXPECT_EQ(info.errors.back().attempt, 20);
}

TEST(Leases, a_worker_may_end_what_another_worker_of_its_process_fetched) {
  QuietSegment s;
  s.put(often());
  s.put(often());
  Job one, two;
  ASSERT_TRUE(s.worker.try_fetch(one).ok() && s.worker.try_fetch(two).ok());
  Worker other = Worker::attach(s.segment, {}).value();
  EXPECT_TRUE(other.heartbeat(one).ok());
  EXPECT_TRUE(other.ack(one).ok());
  EXPECT_TRUE(other.nack(two, failure()).ok());
}

TEST(Leases, PRI_T03_that_end_at_once_give_their_jobs_back_in_the_order_in_which_they_came) {
  QuietSegment s(few_slots(64));
  s.stop_clock();
  for (int round = 0; round < 3; ++round) {  // so that slots are used again in another order
    std::vector<Job> jobs(50);
    for (int i = 0; i < 50; ++i) s.put();
    for (Job& job : jobs) ASSERT_TRUE(s.worker.try_fetch(job).ok());
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) ASSERT_TRUE(s.worker.ack(*job).ok());
  }
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) expected.push_back(s.put());
  for (int i = 0; i < 50; ++i) ASSERT_NE(s.take(), "");
  s.pass(kHour);
  EXPECT_EQ(s.drain(), expected);
}

TEST(Leases, that_are_renewed_at_the_last_moment_stay_in_sight) {
  QuietSegment s;
  s.stop_clock();
  const std::string id = s.put(often(1000));
  ASSERT_EQ(s.take(), id);
  s.move_clock(kMinute);
  bool renewed = false;
  {
    const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
      if (renewed || access != shm::Access::kRmw || point != shm::Point::kLeaseEnded) return;
      renewed = true;
      EXPECT_TRUE(s.worker.heartbeat(s.job, 1000).ok());
    });
    s.tick();
  }
  ASSERT_TRUE(renewed);
  EXPECT_EQ(s.state_of(id), State::kActive);
  s.pass(kMinute);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
}

TEST(Leases, end_in_time_behind_a_clock_that_was_set_back) {
  QuietSegment s;
  s.stop_clock();
  s.put(often(1000)), s.put(often(1000));
  ASSERT_NE(s.take(), "");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  s.tick();
  s.move_clock(0 - 10 * kHour);
  s.tick();
  const std::string id = s.take();
  ASSERT_NE(id, "");
  s.pass(kMinute);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
}

}  // namespace
}  // namespace ojs_shm::test
