// SPDX-License-Identifier: Apache-2.0
// Hints at free objects: each is handed out once, goes back, and a stranger's bits lead nowhere.
#include "shm/magazine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace ojs_shm::test {
namespace {

using shm::kNoIndex;
using shm::Magazine;
using shm::Point;

/// A map of a hundred objects, all of them free.
class Magazines : public testing::Test {
 protected:
  static constexpr std::uint32_t kCount = 100;
  Magazines() {
    for (shm::Word& word : map_) word.store(~0ULL, Point::kNone);  // also bits past the end
  }
  std::set<std::uint32_t> all_of(Magazine& magazine) {
    std::set<std::uint32_t> taken;
    for (std::uint32_t i = magazine.take(true); i != kNoIndex; i = magazine.take(true))
      EXPECT_TRUE(taken.insert(i).second) << i << " was handed out twice";
    return taken;
  }
  std::array<shm::Word, 2> map_{};
};

TEST_F(Magazines, hand_out_each_object_once_and_none_past_the_end) {
  Magazine magazine(map_.data(), kCount, 0);
  const std::set<std::uint32_t> taken = all_of(magazine);
  EXPECT_EQ(taken.size(), kCount);
  EXPECT_EQ(*taken.rbegin(), kCount - 1);
}

TEST_F(Magazines, of_two_lanes_share_no_object) {
  Magazine one(map_.data(), kCount, 0), two(map_.data(), kCount, 1);
  std::set<std::uint32_t> taken;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(taken.insert(one.take()).second);
    EXPECT_TRUE(taken.insert(two.take()).second);
  }
}

TEST_F(Magazines, give_back_what_they_hold_when_they_are_flushed) {
  Magazine one(map_.data(), kCount, 0);
  const std::uint32_t kept = one.take();
  Magazine two(map_.data(), kCount, 0);
  EXPECT_EQ(all_of(two).size(), kCount - 64) << "the first holds a word of them";
  one.flush();
  std::set<std::uint32_t> left = all_of(two);
  EXPECT_EQ(left.size(), 63U);
  EXPECT_FALSE(left.contains(kept));
}

TEST_F(Magazines, find_what_another_lane_gave_back) {
  Magazine one(map_.data(), kCount, 0), two(map_.data(), kCount, 0);
  all_of(one);
  EXPECT_EQ(two.take(true), kNoIndex);
  one.give(77);
  EXPECT_EQ(two.take(true), 77U);
}

TEST_F(Magazines, find_what_they_gave_back_themselves_without_a_search) {
  Magazine one(map_.data(), kCount, 0);
  all_of(one);
  ASSERT_EQ(one.take(), kNoIndex);
  for (const std::uint32_t index : {5U, kCount - 1}) {
    one.give(index);
    EXPECT_EQ(one.take(), index);
    EXPECT_EQ(one.take(), kNoIndex);
  }
}

TEST_F(Magazines, look_seldom_while_there_is_nothing) {
  Magazine one(map_.data(), kCount, 0), two(map_.data(), kCount, 0);
  all_of(one);
  EXPECT_EQ(two.take(), kNoIndex);
  one.give(5);
  int calls = 1;
  while (two.take() == kNoIndex) ++calls;
  EXPECT_GT(calls, 4);
  EXPECT_LT(calls, 20);
}

TEST_F(Magazines, take_no_strangers_number_back) {
  Magazine magazine(map_.data(), kCount, 0);
  all_of(magazine);
  magazine.give(kCount);
  magazine.give(kNoIndex);
  EXPECT_EQ(magazine.take(true), kNoIndex);
}

}  // namespace
}  // namespace ojs_shm::test
