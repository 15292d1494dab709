// SPDX-License-Identifier: Apache-2.0
// Turns by weight, as pure functions of numbers.

#include "engine/fetch/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

namespace ojs_shm::test {
namespace {

using engine::smooth_schedule;
using engine::Turns;
using Weights = std::vector<std::uint32_t>;
using Cycle = std::vector<std::uint16_t>;

std::uint64_t sum_of(const Weights& weights) {
  std::uint64_t sum = 0;
  for (const std::uint32_t weight : weights) sum += weight;
  return sum;
}

/// Of others, between two turns of the party.
std::size_t longest_gap(const Cycle& cycle, std::uint16_t party) {
  std::size_t longest = 0, since = 0;
  bool seen = false;
  for (std::size_t i = 0; i < 2 * cycle.size(); ++i) {
    if (cycle[i % cycle.size()] == party) {
      if (seen) longest = std::max(longest, since);
      seen = true;
      since = 0;
    } else {
      ++since;
    }
  }
  return longest;
}

TEST(SmoothSchedule, spreads_the_turns_of_each_party) {
  EXPECT_EQ(smooth_schedule(Weights{5, 2, 1}), (Cycle{0, 1, 0, 0, 2, 0, 1, 0}));
  EXPECT_EQ(smooth_schedule(Weights{1}), (Cycle{0}));
  EXPECT_EQ(smooth_schedule(Weights{1, 1, 1}), (Cycle{0, 1, 2}));
}

TEST(SmoothSchedule, only_the_ratio_of_the_weights_counts) {
  EXPECT_EQ(smooth_schedule(Weights{500, 200, 100}), smooth_schedule(Weights{5, 2, 1}));
  EXPECT_EQ(smooth_schedule(Weights{1000, 1000}).size(), 2U);
  EXPECT_EQ(smooth_schedule(Weights{4'000'000'000, 2'000'000'000}), (Cycle{0, 1, 0}));
}

TEST(SmoothSchedule, a_weight_of_nothing_has_no_turn) {
  EXPECT_EQ(smooth_schedule(Weights{0, 3, 0, 1}), (Cycle{1, 1, 3, 1}));
  EXPECT_TRUE(smooth_schedule(Weights{0, 0}).empty());
  EXPECT_TRUE(smooth_schedule(Weights{}).empty());
}

TEST(SmoothSchedule, holds_each_party_as_often_as_its_weight_and_never_far_apart) {
  for (std::uint32_t a = 1; a <= 12; ++a)
    for (std::uint32_t b = 1; b <= 12; ++b)
      for (std::uint32_t c = 0; c <= 12; ++c) {
        const Weights weights = {a, b, c};
        const Cycle cycle = smooth_schedule(weights);
        const std::uint64_t sum = sum_of(weights);
        ASSERT_EQ(sum % cycle.size(), 0U);
        for (std::uint16_t party = 0; party < weights.size(); ++party) {
          const auto turns =
              static_cast<std::uint64_t>(std::count(cycle.begin(), cycle.end(), party));
          ASSERT_EQ(turns * (sum / cycle.size()), weights[party]) << a << ' ' << b << ' ' << c;
          if (turns == 0) continue;
          ASSERT_LE(longest_gap(cycle, party), cycle.size() - turns);
          ASSERT_LE(longest_gap(cycle, party) * weights[party], 2 * sum)
              << a << ' ' << b << ' ' << c;
        }
      }
}

TEST(Turns, a_party_without_anything_gives_its_turns_to_the_others_by_their_weights) {
  Turns turns(Weights{5, 2, 1});
  std::array<int, 3> served{};
  for (int i = 0; i < 70; ++i)
    EXPECT_TRUE(turns.serve_next(
        [&](std::size_t party) { return party == 2 ? false : (++served[party], true); }));
  EXPECT_EQ(served, (std::array<int, 3>{50, 20, 0}));
}

TEST(Turns, asks_each_party_once_and_keeps_its_place_when_all_decline) {
  Turns turns(Weights{5, 2, 1});
  std::map<std::size_t, int> asked;
  EXPECT_FALSE(turns.serve_next([&](std::size_t party) { return ++asked[party], false; }));
  EXPECT_EQ(asked, (std::map<std::size_t, int>{{0, 1}, {1, 1}, {2, 1}}));
  Cycle served;
  for (int i = 0; i < 8; ++i)
    turns.serve_next([&](std::size_t party) {
      return served.push_back(static_cast<std::uint16_t>(party)), true;
    });
  EXPECT_EQ(served, smooth_schedule(Weights{5, 2, 1}));
}

TEST(Turns, with_no_weight_at_all_nobody_is_asked) {
  Turns turns(Weights{0, 0});
  EXPECT_FALSE(turns.serve_next([](std::size_t) { return true; }));
}

}  // namespace
}  // namespace ojs_shm::test
