// SPDX-License-Identifier: Apache-2.0
// Jobs with times of their own: an enqueue_ttl, a total_timeout, a grace period. Source:
// ojs-timeouts 5, 9.1.
#include "engine/tables/own_times.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct OwnTimes : testing::Test {
  OwnTimes() { s.stop_clock(); }
  QuietSegment s;

  JobSpec timed(std::uint32_t ttl_s, std::uint32_t total_s = 0, std::uint32_t grace_s = 0) const {
    JobSpec spec = spec_of();
    spec.enqueue_ttl_s = ttl_s;
    spec.total_timeout_s = total_s;
    spec.grace_period_s = grace_s;
    spec.retry = {.max_attempts = 9, .initial_ms = 60'000, .jitter = false};
    return spec;
  }
  std::string reason_of(std::string_view id) { return s.get(id).discard_reason; }
};

TEST_F(OwnTimes, the_earliest_of_three_ends_counts_and_gives_the_reason) {
  struct Row {
    std::uint32_t expires, ttl, total;
    const char* reason;
  };
  for (const auto& [expires, ttl, total, reason] : {Row{10, 20, 30, "expired"},
                                                    {20, 10, 30, "enqueue_ttl_expired"},
                                                    {30, 20, 10, "total_timeout"},
                                                    {0, 10, 20, "enqueue_ttl_expired"},
                                                    {20, 0, 10, "total_timeout"},
                                                    {10, 0, 20, "expired"}}) {
    JobSpec spec = timed(ttl, total);
    spec.expires_at_ms = expires == 0 ? 0 : s.now_ms() + expires * kSecond;
    const std::string id = s.put(spec);
    const JobInfo fresh = s.get(id);
    EXPECT_EQ(fresh.expires_at_ms, spec.expires_at_ms);
    EXPECT_EQ(fresh.enqueue_ttl_s, ttl);
    EXPECT_EQ(fresh.total_timeout_s, total);
    s.pass(10 * kSecond - 1);
    EXPECT_EQ(s.state_of(id), State::kAvailable) << reason;
    s.pass(1);
    EXPECT_EQ(reason_of(id), reason);
  }
}

TEST_F(OwnTimes, a_fetch_looks_at_them_by_itself) {
  const std::string ttl = s.put(timed(10)), total = s.put(timed(0, 10)), good = s.put(timed(11));
  s.move_clock(10 * kSecond);
  EXPECT_EQ(s.take(), good);
  EXPECT_EQ(reason_of(ttl), "enqueue_ttl_expired");
  EXPECT_EQ(reason_of(total), "total_timeout");
}

TEST_F(OwnTimes, hold_while_a_job_is_pending_or_scheduled) {
  JobSpec pending = timed(10);
  pending.pending = true;
  JobSpec later = timed(10);
  later.scheduled_at_ms = s.now_ms() + kHour;
  JobSpec plain = spec_of();
  plain.pending = true;
  plain.expires_at_ms = s.now_ms() + kSecond;
  const std::string first = s.put(pending), second = s.put(later), third = s.put(plain);
  s.pass(10 * kSecond);
  EXPECT_EQ(reason_of(first), "enqueue_ttl_expired");
  EXPECT_EQ(reason_of(second), "enqueue_ttl_expired");
  EXPECT_EQ(s.state_of(third), State::kPending);  // as ever
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(OwnTimes, an_attempt_ends_the_enqueue_ttl_for_good) {
  JobSpec spec = timed(10);
  spec.expires_at_ms = s.now_ms() + kHour;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  s.pass(11 * kSecond);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(2 * kMinute);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  s.pass(kHour);
  EXPECT_EQ(reason_of(id), "expired");
}

TEST_F(OwnTimes, a_total_timeout_ends_an_attempt_at_once) {
  const std::string id = s.put(timed(0, 100));
  ASSERT_EQ(s.take(), id);
  s.pass(99 * kSecond);
  ASSERT_TRUE(s.worker.heartbeat(s.job).ok());
  EXPECT_EQ(s.state_of(id), State::kActive);
  s.pass(kSecond);
  const JobInfo job = s.get(id);
  EXPECT_EQ(job.discard_reason, "failed");
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors[0].code, "total_timeout");
  EXPECT_FALSE(job.errors[0].retryable);
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
}

TEST_F(OwnTimes, a_total_timeout_ends_a_job_between_its_attempts) {
  JobSpec spec = timed(0, 100);
  spec.retry.dead_letter = true;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  ASSERT_EQ(s.state_of(id), State::kRetryable);
  ASSERT_TRUE(s.admin.set_maintenance(true).ok());  // it is not made available meanwhile
  s.pass(100 * kSecond);
  EXPECT_EQ(reason_of(id), "total_timeout");
  EXPECT_TRUE(s.get(id).dead_letter);
  ASSERT_TRUE(s.admin.set_maintenance(false).ok());
  ASSERT_TRUE(s.producer.retry(id).ok());
  EXPECT_EQ(s.get(id).total_timeout_s, 0U);
  s.pass(kHour);
  EXPECT_EQ(s.take(), id);
}

TEST_F(OwnTimes, an_attempt_that_could_not_be_done_in_time_is_not_waited_for) {
  for (const auto& [total, state] :
       {std::pair{159U, State::kDiscarded}, {160U, State::kRetryable}}) {
    JobSpec spec = timed(0, total);
    spec.timeout_ms = 100'000;  // after a pause of 60 s
    const std::string id = s.put(spec);
    ASSERT_EQ(s.take(), id);
    ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
    EXPECT_EQ(s.state_of(id), state);
    ASSERT_TRUE(state == State::kDiscarded || s.producer.cancel(id).ok());
  }
}

TEST_F(OwnTimes, a_grace_period_is_added_to_the_timeout_of_an_attempt) {
  JobSpec spec = timed(0, 0, 50);
  spec.timeout_ms = 100'000;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.deadline_ms(), s.now_ms() + 150'000);
  s.pass(149 * kSecond);
  ASSERT_TRUE(s.worker.heartbeat(s.job).ok());
  EXPECT_EQ(s.state_of(id), State::kActive);
  s.pass(kSecond);
  EXPECT_EQ(s.get(id).errors.at(0).code, "timeout");
}

TEST_F(OwnTimes, leave_room_for_long_texts_and_a_unique_key) {
  JobSpec spec = timed(10);
  const JobUnique unique = JobUnique::of(spec, R"({"keys":["type"]})").value();
  spec.unique = &unique;
  for (std::size_t length : {0, 60, 61, 62, 63, 64, 80, 200, 5000}) {
    const std::string args = "[\"" + std::string(length, 'x') + "\"]";
    spec.args = args;
    const std::string id = s.put(spec);
    EXPECT_EQ(s.get(id).args, args);
    EXPECT_EQ(s.get(id).enqueue_ttl_s, 10U);
    EXPECT_EQ(s.producer.enqueue(spec).error().code, Code::kDuplicate);
    s.pass(10 * kSecond);
    EXPECT_EQ(reason_of(id), "enqueue_ttl_expired") << length;
  }
}

TEST_F(OwnTimes, a_supervisor_that_comes_later_finds_them_in_the_slots) {
  JobSpec spec = timed(0, 100);
  const std::string failed = s.put(spec);
  ASSERT_EQ(s.take(), failed);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  const std::string active = s.put(spec);
  ASSERT_EQ(s.take(), active);
  const std::string waits = s.put(timed(50));
  s.move_clock(50 * kSecond);
  engine::Supervisor other(s.actor(), &forbids_retry);
  engine::Supervisor::Report report;
  const auto look = [&] {
    for (int i = 0; i < 100; ++i)
      if (const std::uint64_t now = s.now_ms(); other.tick(now, report) > now) break;
  };
  look();
  EXPECT_EQ(reason_of(waits), "enqueue_ttl_expired");
  ASSERT_TRUE(s.admin.set_maintenance(true).ok());
  s.move_clock(50 * kSecond);
  look();
  EXPECT_EQ(reason_of(failed), "total_timeout");
  EXPECT_EQ(s.get(active).errors.at(0).code, "total_timeout");
}

TEST_F(OwnTimes, a_total_timeout_below_the_timeout_is_refused) {
  JobSpec spec = timed(0, 10);
  spec.timeout_ms = 10'001;
  EXPECT_EQ(s.producer.enqueue(spec).error().subject, "total_timeout");
}

}  // namespace
}  // namespace ojs_shm::test
