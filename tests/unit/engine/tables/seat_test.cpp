// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/seat.hpp"

#include <gtest/gtest.h>

namespace ojs_shm::engine {
namespace {

using SeatOfWord = Seat<shm::Word>;

TEST(Seat, is_taken_by_one_and_left_by_that_one) {
  shm::Word word{};
  const SeatOfWord one(word, 1, shm::Point::kSettlerSet), two(word, 2, shm::Point::kSettlerSet);
  EXPECT_FALSE(one.ours());
  ASSERT_TRUE(one.take());
  EXPECT_TRUE(one.ours());
  EXPECT_FALSE(two.take(3)) << "the first has it";
  two.leave_if_ours();
  EXPECT_TRUE(one.ours()) << "it was not the second's to leave";
  one.leave();
  EXPECT_TRUE(two.take(0)) << "a free seat is taken at the first look";
}

TEST(Seat, is_its_owner_s_whatever_the_word_says_beside) {
  shm::Word word{};
  const SeatOfWord seat(word, 7, shm::Point::kSettlerSet);
  ASSERT_TRUE(seat.take());
  word.store(word.load() | 42ULL << 32, shm::Point::kSettlerSet);
  EXPECT_TRUE(seat.ours());
  seat.leave_if_ours();
  EXPECT_EQ(word.load(), 0U);
}

}  // namespace
}  // namespace ojs_shm::engine
