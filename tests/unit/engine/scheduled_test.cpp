// SPDX-License-Identifier: Apache-2.0
// Jobs that wait for a time.

#include <algorithm>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

JobSpec in(QuietSegment& s, std::uint64_t ms, std::int64_t priority = 2) {
  JobSpec spec = spec_of(priority);
  spec.scheduled_at_ms = s.now_ms() + ms;
  return spec;
}

TEST(Scheduled, PRI_T29_a_scheduled_job_waits_for_its_time_and_then_goes_by_its_priority) {
  QuietSegment s;
  const std::string urgent = s.put(in(s, kHour, 0)), low = s.put(5);
  s.tick();
  EXPECT_EQ(s.take(), low);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  s.pass(2 * kHour);
  EXPECT_EQ(s.take(), urgent);
  EXPECT_EQ(s.take(), low);
}

TEST(Scheduled, jobs_become_available_in_the_order_of_their_times) {
  QuietSegment s;
  std::vector<std::pair<std::int64_t, std::string>> expected;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t minutes = i * 7919 % 300 + 60;
    expected.emplace_back(minutes, s.put(in(s, static_cast<std::uint64_t>(minutes) * kMinute)));
  }
  std::sort(expected.begin(), expected.end());
  Ids got;
  for (int hour = 0; hour < 8; ++hour) {
    s.pass(kHour);
    for (std::string& id : s.drain()) got.push_back(std::move(id));
  }
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i].second) << i;
}

TEST(Scheduled, a_new_supervisor_finds_every_timer_in_the_slots) {
  QuietSegment s;
  const std::string id = s.put(in(s, kHour));
  s.tick();  // the announcement is read, and forgotten with this supervisor
  s.move_clock(2 * kHour);
  engine::Supervisor heir(s.actor());
  engine::Supervisor::Report report;
  heir.tick(s.now_ms(), report);
  EXPECT_EQ(s.take(), id);
}

TEST(Scheduled, timers_that_found_no_room_are_found_by_looking_at_all_slots) {
  QuietSegment s;
  s.tick();
  const std::string id = s.put(in(s, kHour));
  const std::uint32_t ring = s.store().header().timers_ring;
  for (shm::Peeked front = s.actor().rings().peek(ring); !front.empty();
       front = s.actor().rings().peek(ring))
    s.actor().rings().retire(front);  // lost
  s.store().header().timers_lost.fetch_add(1, shm::Point::kCounterMoved);
  s.pass(2 * kHour);
  EXPECT_EQ(s.take(), id);
}

TEST(Scheduled, a_job_that_expires_before_its_time_never_runs) {
  QuietSegment s;
  JobSpec spec = in(s, 2 * kHour);
  spec.expires_at_ms = s.now_ms() + kHour;
  const std::string id = s.put(spec);
  s.pass(3 * kHour);
  EXPECT_EQ(s.take(), "");
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
}

TEST(Scheduled, an_expired_available_job_is_not_handed_out_even_before_the_supervisor_looked) {
  QuietSegment s;
  JobSpec spec = spec_of(0);
  spec.expires_at_ms = s.now_ms() + kHour;
  const std::string expired = s.put(spec), good = s.put(1);
  s.move_clock(2 * kHour);
  EXPECT_EQ(s.take(), good);
  EXPECT_EQ(s.state_of(expired), State::kDiscarded);
  EXPECT_EQ(s.get(expired).completed_at_ms, 0U);
}

TEST(Scheduled, a_retryable_job_is_not_expired_but_its_next_turn_is) {
  QuietSegment s;
  JobSpec spec = spec_of(2);
  spec.retry.max_attempts = 5;
  spec.retry.jitter = false;
  spec.retry.initial_ms = 100'000;
  spec.expires_at_ms = s.now_ms() + 50'000;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(60'000);
  EXPECT_EQ(s.state_of(id), State::kRetryable);
  s.pass(kHour);
  EXPECT_EQ(s.take(), "");
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
}

TEST(Scheduled, PRI_T03_of_the_same_time_the_one_that_was_accepted_first_comes_first) {
  QuietSegment s;
  JobSpec spec = in(s, kHour);
  Ids expected;
  for (int i = 0; i < 100; ++i) expected.push_back(s.put(spec));
  s.pass(2 * kHour);
  EXPECT_EQ(s.drain(), expected);
}

TEST(Scheduled, PRI_T03_retries_of_the_same_time_come_in_the_order_of_their_failures) {
  QuietSegment s;
  s.stop_clock();
  JobSpec spec = spec_of();
  spec.retry = {3, 1000, 1000, 1.0F, RetryBackoff::kConstant, false, false};
  for (int i = 0; i < 50; ++i) s.put(spec);
  Ids expected;
  while (!s.take().empty()) {
    expected.emplace_back(s.job.id());
    ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  }
  s.pass(kHour);
  EXPECT_EQ(s.drain(), expected);
}

}  // namespace
}  // namespace ojs_shm::test
