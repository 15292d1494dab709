// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats/past.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ojs_shm::gateway {
namespace {

constexpr std::uint64_t kNoon = 1'800'014'400'000;  // the beginning of an hour

/// A look then, when so many jobs had been enqueued.
StatsMark look(std::uint64_t after_ms, std::uint64_t enqueued) {
  return {.at_ms = kNoon + after_ms, .enqueued = enqueued};
}

std::vector<std::uint64_t> times_of(const Past& past) {
  std::vector<std::uint64_t> times;
  for (const StatsMark& mark : past.marks()) times.push_back(mark.at_ms - kNoon);
  return times;
}

TEST(Past, of_each_period_the_last_look_is_kept) {
  Past past(0);
  for (const std::uint64_t after : {30'000, 50'000, 58'000, 62'000, 119'000, 121'000, 125'000})
    past.add(look(after, after));
  // The first one, the last of two minutes, and the latest.
  EXPECT_EQ(times_of(past), (std::vector<std::uint64_t>{30'000, 58'000, 119'000, 125'000}));
}

TEST(Past, marks_that_lie_closest_together_are_told) {
  Past past(3);
  for (std::uint64_t after = 1'000; after <= 3 * 3'600'000; after += 5'000)
    past.add(look(after, after));
  const std::vector<std::uint64_t> times = times_of(past);
  ASSERT_GT(times.size(), 5U);
  EXPECT_EQ(times.front(), 1'000U);
  EXPECT_EQ(times.back(), 10'796'000U);
  EXPECT_EQ(times[1] - times[0], 55'000U) << "by minutes, as long as it was a day";
  EXPECT_EQ(times.end()[-1] - times.end()[-4], 15'000U) << "the latest by five seconds";
  EXPECT_TRUE(std::ranges::is_sorted(times));
}

TEST(Past, hours_outlive_minutes) {
  Past past(720);
  for (std::uint64_t after = 0; after < 72 * 3'600'000ULL; after += 30'000)
    past.add(look(after, after));
  const std::vector<std::uint64_t> times = times_of(past);
  EXPECT_EQ(times.front(), 0U);
  EXPECT_EQ(times[2] - times[1], 3'600'000U);
  // two days of hours, 18 hours of minutes, 6 of half minutes
  EXPECT_NEAR(static_cast<double>(times.size()), 48 + 18 * 60 + 720, 4);
}

TEST(Past, a_clock_that_goes_back_begins_anew) {
  Past past(10);
  past.add(look(600'000, 5));
  past.add(look(700'000, 6));
  past.add(look(1'000, 1));
  EXPECT_EQ(times_of(past), std::vector<std::uint64_t>{1'000});
  ASSERT_NE(past.first_since(kNoon), nullptr);
  EXPECT_EQ(past.first_since(kNoon)->enqueued, 1U);
}

TEST(Past, the_first_look_of_a_time_is_found) {
  Past past(3);
  EXPECT_EQ(past.first_since(0), nullptr) << "nothing was seen yet";
  for (const std::uint64_t after : {0, 5'000, 10'000, 15'000, 20'000}) past.add(look(after, after));
  ASSERT_NE(past.first_since(kNoon + 6'000), nullptr);
  EXPECT_EQ(past.first_since(kNoon + 6'000)->enqueued, 10'000U);
  EXPECT_EQ(past.first_since(kNoon + 16'000)->enqueued, 20'000U) << "the latest";
  EXPECT_EQ(past.first_since(kNoon + 20'001), nullptr);
}

TEST(Past, a_mark_sums_queues_and_waits) {
  QueueInfo one, two;
  one.by_state[static_cast<std::size_t>(State::kAvailable)] = 2;
  one.depth = 3, one.oldest_age_ms = 70, one.enqueued_total = 10;
  two.by_state[static_cast<std::size_t>(State::kActive)] = 4;
  two.depth = 1, two.oldest_age_ms = 20, two.completed_total = 5;
  StatsMark mark;
  mark.add(one);
  mark.add(two);
  EXPECT_EQ((std::vector{mark.available, mark.active, mark.depth, mark.oldest_age_ms}),
            (std::vector<std::uint64_t>{2, 4, 4, 70}));
  EXPECT_EQ((std::vector{mark.enqueued, mark.completed}), (std::vector<std::uint64_t>{10, 5}));
  mark.add({.count = 3, .sum_ms = 5, .up_to_ms = {{1, 1}, {4, 2}}});
  mark.add({.count = (1ULL << 32) + 1, .sum_ms = 1, .up_to_ms = {{1, 1}, {4, 1}}});
  EXPECT_EQ(mark.waited, (std::vector<std::uint32_t>{2, 3, 4}));
}

}  // namespace
}  // namespace ojs_shm::gateway
