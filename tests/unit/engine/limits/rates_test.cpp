// SPDX-License-Identifier: Apache-2.0
// How fast jobs of a key may begin: windows and throttles, by themselves on a clock of numbers, and
// with jobs on the segment's clock, which only the test moves.

#include "engine/limits/rates.hpp"

#include <atomic>
#include <deque>
#include <thread>

#include "engine/limits/limits.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::LimitKey;
using engine::Rates;

class RatesTest : public testing::Test {
 protected:
  QuietSegment s;
  Rates rates{s.store()};

  LimitKey& key(const RateLimit& limit, std::string_view name = "k") {
    EXPECT_TRUE(s.admin.set_limit(name, limit).ok());
    return s.store().limit_keys[engine::find_limit(s.store(), name)];
  }
  static RateLimit window(std::uint32_t most, std::uint32_t period_ms, bool sliding) {
    RateLimit limit;
    limit.rate = most;
    limit.rate_period_ms = period_ms;
    limit.sliding = sliding;
    return limit;
  }
  static RateLimit pace(std::uint32_t most, std::uint32_t period_ms, std::uint32_t burst = 1) {
    RateLimit limit;
    limit.throttle = most;
    limit.throttle_period_ms = period_ms;
    limit.burst = burst;
    return limit;
  }
};

TEST_F(RatesTest,
       PRI_T22_a_fixed_window_lets_its_number_begin_and_starts_anew_at_multiples_of_its_period) {
  LimitKey& k = key(window(3, 1000, false));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.take(k, 10'400));
  EXPECT_FALSE(rates.take(k, 10'999));
  EXPECT_EQ(rates.next(k, 10'500), 11'000U);
  EXPECT_EQ(rates.begun(k, 10'500), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.take(k, 11'000));
  EXPECT_FALSE(rates.take(k, 11'001));
  rates.give_back(k, 11'001);
  EXPECT_TRUE(rates.take(k, 11'002));
}

TEST_F(RatesTest, PRI_T22_a_sliding_window_never_sees_more_than_its_number_in_any_period) {
  Seeded random;
  LimitKey& k = key(window(20, 1000, true));
  std::deque<std::uint64_t> begun;
  std::uint64_t now = 100'000, taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += static_cast<std::uint64_t>(random.between(0, 39));
    const bool expected = begun.size() < 20 || begun.front() + 1000 <= now;
    const std::uint64_t next = rates.next(k, now);
    ASSERT_EQ(next == 0, expected) << "step " << i;
    if (!expected) {
      ASSERT_EQ(next, begun.front() + 1000);
    }
    ASSERT_EQ(rates.take(k, now), expected) << "step " << i;
    if (!expected) continue;
    ++taken;
    begun.push_back(now);
    if (begun.size() > 20) begun.pop_front();
  }
  EXPECT_GT(taken, 1000U);
}

TEST_F(RatesTest, a_sliding_window_remembers_what_began_when_it_is_raised_and_lowered) {
  LimitKey& k = key(window(10, 1000, true));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(rates.take(k, 5000 + static_cast<std::uint64_t>(i)));
  EXPECT_FALSE(rates.take(k, 5100));
  key(window(40, 1000, true));
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(rates.take(k, 5200)) << i;
  EXPECT_FALSE(rates.take(k, 5300));
  key(window(2, 1000, true));
  EXPECT_FALSE(rates.take(k, 6100));
  EXPECT_TRUE(rates.take(k, 6200));
  EXPECT_TRUE(rates.take(k, 6200));
  EXPECT_FALSE(rates.take(k, 6201));
}

TEST_F(RatesTest, PRI_T22_a_throttle_spaces_beginnings_evenly_and_a_burst_follows_a_pause) {
  LimitKey& k = key(pace(10, 1000));
  std::vector<std::uint64_t> begun;
  for (std::uint64_t now = 20'000; now < 22'000; ++now)
    if (rates.take(k, now)) begun.push_back(now);
  ASSERT_EQ(begun.size(), 20U);
  for (std::size_t i = 1; i < begun.size(); ++i) EXPECT_EQ(begun[i] - begun[i - 1], 100U);
  LimitKey& burst = key(pace(10, 1000, 4), "burst");
  int at_once = 0;
  while (rates.take(burst, 30'000)) ++at_once;
  EXPECT_EQ(at_once, 4);
  EXPECT_EQ(rates.next(burst, 30'000), 30'100U);
  EXPECT_TRUE(rates.take(burst, 30'100));
  EXPECT_FALSE(rates.take(burst, 30'199));
}

TEST_F(RatesTest, a_throttle_that_is_loosened_lets_begin_at_once) {
  LimitKey& k = key(pace(1, 86'400'000));
  const std::uint64_t now = s.now_ms();
  EXPECT_TRUE(rates.take(k, now));
  EXPECT_FALSE(rates.take(k, now + kHour));
  key(pace(10, 1000));
  EXPECT_EQ(rates.next(k, now + kMinute), 0U);
  EXPECT_TRUE(rates.take(k, now + kMinute));
}

TEST_F(RatesTest, what_is_given_back_under_another_throttle_closes_no_key) {
  LimitKey& k = key(window(3, 1000, false));
  EXPECT_TRUE(rates.take(k, 8000));
  RateLimit both = window(3, 1000, false);
  both.throttle = 1;
  both.throttle_period_ms = 60'000;
  key(both);
  rates.give_back(k, 8000);
  EXPECT_EQ(rates.next(k, 8001), 0U);
  EXPECT_TRUE(rates.take(k, 8001));
}

TEST_F(RatesTest, window_and_throttle_both_hold_and_what_one_refuses_the_other_does_not_count) {
  RateLimit both = window(3, 1000, false);
  both.throttle = 1000;
  both.throttle_period_ms = 1000;
  LimitKey& k = key(both);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(rates.take(k, 8000 + i));
  const std::uint64_t next = k.next_us.load();
  EXPECT_FALSE(rates.take(k, 8500));
  EXPECT_LE(k.next_us.load(), std::max<std::uint64_t>(next, 8'500'000));
}

// Threads take what they can at one instant; together they get exactly what there is.
TEST_F(RatesTest, no_schedule_of_threads_begins_more_than_a_window_allows) {
  for (const bool sliding : {false, true}) {
    LimitKey& k = key(window(200, 1000, sliding), sliding ? "sliding" : "fixed");
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 400 && rates.take(k, 40'000); ++i) ++taken;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken.load(), 200) << sliding;
  }
}

TEST_F(RatesTest, PRI_T22_PRI_T23_jobs_wait_for_the_window_and_go_when_it_is_due) {
  const JobLimit limit{"emails", window(2, 10 * kHour, true)};
  JobSpec spec = spec_of(0);
  spec.limit = &limit;
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(s.put(spec));
  const std::string plain = s.put(4);
  EXPECT_EQ(s.drain(), (std::vector<std::string>{ids[0], ids[1], plain}));
  EXPECT_EQ(s.state_of(ids[2]), State::kAvailable);
  EXPECT_EQ(s.observer.limit("emails")->waiting, 2U);
  s.pass(9 * kHour);
  EXPECT_EQ(s.drain(), std::vector<std::string>{});
  s.pass(2 * kHour);
  EXPECT_EQ(s.drain(), (std::vector<std::string>{ids[2], ids[3]}));
}

TEST_F(RatesTest, SUM_08_a_queue_with_a_rate_gives_nothing_until_it_is_due) {
  ASSERT_TRUE(s.admin.set_limit("queue:default", pace(1, kHour)).ok());
  const std::string b = s.put(3), a = s.put(1);
  EXPECT_EQ(s.drain(), std::vector<std::string>{a});
  s.pass(kHour + kMinute);
  EXPECT_EQ(s.drain(), std::vector<std::string>{b});
}

TEST_F(RatesTest, on_limit_reschedule_names_the_time_at_which_it_is_due) {
  JobLimit limit{"k", window(1, 5 * kHour, true)};
  limit.limit.on_limit = OnLimit::kReschedule;
  JobSpec spec = spec_of();
  spec.limit = &limit;
  s.put(spec);
  const std::string later = s.put(spec);
  EXPECT_EQ(s.drain().size(), 1U);
  EXPECT_EQ(s.state_of(later), State::kScheduled);
  s.pass(4 * kHour);
  EXPECT_EQ(s.drain(), std::vector<std::string>{});
  s.pass(2 * kHour);
  EXPECT_EQ(s.drain(), std::vector<std::string>{later});
}

}  // namespace
}  // namespace ojs_shm::test
