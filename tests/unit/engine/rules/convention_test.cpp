// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/convention.hpp"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ojs_shm::engine {
namespace {

constexpr Convention kAll[] = {Convention::kOjs, Convention::kOjsCore, Convention::kQo};

std::map<std::string_view, int> words_of(Convention convention) {
  std::map<std::string_view, int> words;
  for (const NamedPriority& named : priority_names(convention))
    words.emplace(named.name, named.priority);
  return words;
}

// Walks from the first rank and lists what a fetch would give, best first.
std::vector<int> priorities_in_order(Convention convention) {
  std::vector<int> order;
  const int count = info(convention).max - info(convention).min + 1;
  for (int rank = 0; rank < count; ++rank)
    order.push_back(priority_of(convention, static_cast<std::uint8_t>(rank)));
  return order;
}

TEST(Convention, PRI_001_every_integer_from_0_to_255_has_a_rank_in_ojs) {
  for (const int priority : {0, 1, 2, 17, 255})
    EXPECT_TRUE(rank_of(Convention::kOjs, priority)) << priority;
}

TEST(Convention, PRI_002_the_default_of_ojs_is_2) {
  EXPECT_EQ(info(Convention::kOjs).default_priority, 2);
}

TEST(Convention, PRI_005_a_negative_priority_has_no_rank_in_ojs) {
  for (const std::int64_t priority :
       {std::int64_t{-1}, std::int64_t{-2147483648}, std::numeric_limits<std::int64_t>::min()})
    EXPECT_FALSE(rank_of(Convention::kOjs, priority)) << priority;
}

TEST(Convention, PRI_006_ojs_reaches_255_and_255_comes_after_254) {
  EXPECT_GE(info(Convention::kOjs).max, 255);
  EXPECT_GT(rank_of(Convention::kOjs, 255), rank_of(Convention::kOjs, 254));
}

TEST(Convention, PRI_T01_in_ojs_the_lower_number_goes_first) {
  EXPECT_LT(rank_of(Convention::kOjs, 0), rank_of(Convention::kOjs, 1));
  EXPECT_LT(rank_of(Convention::kOjs, 1), rank_of(Convention::kOjs, 2));
  EXPECT_EQ(priorities_in_order(Convention::kOjs).front(), 0);
}

TEST(Convention, PRI_T05_ojs_is_not_restricted_to_the_named_levels) {
  for (const int priority : {3, 5, 100, 254})
    EXPECT_TRUE(rank_of(Convention::kOjs, priority)) << priority;
}

TEST(Convention, PRI_T07_the_largest_priority_of_ojs_is_255) {
  EXPECT_EQ(info(Convention::kOjs).max, 255);
}

TEST(Convention, PRI_T12_PRI_T13_nothing_below_0_is_a_priority_of_ojs) {
  EXPECT_EQ(info(Convention::kOjs).min, 0);
  EXPECT_FALSE(rank_of(Convention::kOjs, -1));
}

TEST(Convention, PRI_T14_nothing_above_the_maximum_has_a_rank) {
  for (const Convention convention : kAll) {
    EXPECT_FALSE(rank_of(convention, std::int64_t{info(convention).max} + 1))
        << info(convention).name;
    EXPECT_FALSE(rank_of(convention, std::numeric_limits<std::int64_t>::max()))
        << info(convention).name;
    EXPECT_FALSE(rank_of(convention, std::int64_t{1} << 32))
        << "must not be read as 0 by " << info(convention).name;
  }
}

TEST(Convention, PRI_T06_the_names_of_ojs_are_words_for_0_to_4) {
  const std::map<std::string_view, int> expected = {
      {"critical", 0}, {"high", 1}, {"normal", 2}, {"low", 3}, {"bulk", 4}};
  EXPECT_EQ(words_of(Convention::kOjs), expected);
}

TEST(Convention, ojs_core_orders_100_to_minus_100) {
  const std::vector<int> order = priorities_in_order(Convention::kOjsCore);
  EXPECT_EQ(order.front(), 100);
  EXPECT_EQ(order.back(), -100);
  EXPECT_EQ(info(Convention::kOjsCore).default_priority, 0);
  EXPECT_EQ(rank_of(Convention::kOjsCore, 0), 100);
  EXPECT_FALSE(rank_of(Convention::kOjsCore, 101));
  EXPECT_FALSE(rank_of(Convention::kOjsCore, -101));
  const std::map<std::string_view, int> expected = {{"high", 10}, {"normal", 0}, {"low", -10}};
  EXPECT_EQ(words_of(Convention::kOjsCore), expected);
}

TEST(Convention, QO_01_255_goes_first_and_0_last_and_nothing_lies_outside) {
  EXPECT_EQ(rank_of(Convention::kQo, 255), 0);
  EXPECT_EQ(rank_of(Convention::kQo, 0), 255);
  EXPECT_FALSE(rank_of(Convention::kQo, 256));
  EXPECT_FALSE(rank_of(Convention::kQo, -1));
}

TEST(Convention, QO_02_the_default_of_qo_is_128) {
  EXPECT_EQ(info(Convention::kQo).default_priority, 128);
}

TEST(Convention, QO_03_QO_04_each_name_of_qo_maps_to_its_number) {
  const std::map<std::string_view, int> expected = {
      {"critical", 255}, {"urgent", 200},    {"high", 175}, {"normal", 128},
      {"low", 50},       {"background", 10}, {"bulk", 0}};
  EXPECT_EQ(words_of(Convention::kQo), expected);
}

TEST(Convention, QO_05_a_priority_is_found_by_its_name_in_its_own_convention_only) {
  EXPECT_EQ(priority_by_name(Convention::kQo, "critical"), 255);
  EXPECT_EQ(priority_by_name(Convention::kOjs, "critical"), 0);
  EXPECT_EQ(priority_by_name(Convention::kOjsCore, "critical"), std::nullopt);
  EXPECT_EQ(priority_by_name(Convention::kOjs, "urgent"), std::nullopt);
  EXPECT_EQ(priority_by_name(Convention::kQo, "Critical"), std::nullopt);
  EXPECT_EQ(priority_by_name(Convention::kQo, ""), std::nullopt);
}

TEST(Convention, QO_06_the_rank_of_qo_is_255_minus_the_priority) {
  for (int priority = 0; priority <= 255; ++priority)
    EXPECT_EQ(rank_of(Convention::kQo, priority), 255 - priority);
}

TEST(Convention, QO_09_only_qo_makes_priorities_immutable) {
  EXPECT_TRUE(info(Convention::kQo).immutable);
  EXPECT_FALSE(info(Convention::kOjs).immutable);
  EXPECT_FALSE(info(Convention::kOjsCore).immutable);
}

TEST(Convention, a_rank_and_its_priority_name_each_other) {
  for (const Convention convention : kAll) {
    int ranks = 0;
    for (int priority = info(convention).min; priority <= info(convention).max;
         ++priority, ++ranks) {
      const auto rank = rank_of(convention, priority);
      ASSERT_TRUE(rank) << priority;
      EXPECT_EQ(priority_of(convention, *rank), priority);
    }
    EXPECT_TRUE(rank_of(convention, info(convention).default_priority));
    EXPECT_EQ(static_cast<int>(priorities_in_order(convention).size()), ranks);
  }
}

TEST(Convention, a_rank_that_no_priority_has_reads_as_the_last) {
  EXPECT_EQ(priority_of(Convention::kOjsCore, 201), -100);
  EXPECT_EQ(priority_of(Convention::kOjsCore, 255), -100);
}

TEST(Convention, names_are_listed_from_the_most_urgent) {
  for (const Convention convention : kAll) {
    const auto names = priority_names(convention);
    for (std::size_t i = 1; i < names.size(); ++i)
      EXPECT_LT(rank_of(convention, names[i - 1].priority), rank_of(convention, names[i].priority))
          << names[i].name;
  }
}

TEST(Convention, is_found_by_name_and_by_byte) {
  for (const Convention convention : kAll) {
    EXPECT_EQ(convention_by_name(info(convention).name), convention);
    EXPECT_EQ(convention_of_byte(static_cast<std::uint8_t>(convention)), convention);
  }
  EXPECT_EQ(convention_by_name("OJS"), std::nullopt);
  EXPECT_EQ(convention_by_name(""), std::nullopt);
  for (int byte = 3; byte < 256; ++byte)
    EXPECT_EQ(convention_of_byte(static_cast<std::uint8_t>(byte)), std::nullopt);
}

}  // namespace
}  // namespace ojs_shm::engine
