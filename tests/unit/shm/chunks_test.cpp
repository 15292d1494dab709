// SPDX-License-Identifier: Apache-2.0
// The chunks of lanes: each is one lane's at a time, and begins each life anew.
#include "shm/chunks.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::ChunkControl;
using shm::Chunks;
using shm::ChunkState;
using shm::kNoIndex;

class ChunksOfLanes : public testing::Test {
 protected:
  ChunkControl control(std::uint32_t chunk) {
    return ChunkControl(segment_->chunk(chunk).control.load());
  }

  BareSegment segment_;
  const std::uint32_t all_ = segment_->geometry().chunks;
  Chunks mine_{*segment_, 0}, others_{*segment_, 1};
};

TEST_F(ChunksOfLanes, are_given_to_one_lane_each_until_none_is_free) {
  std::set<std::uint32_t> taken;
  for (std::uint32_t i = 0; i < all_; ++i) {
    const std::uint32_t chunk = i % 2 == 0 ? mine_.take() : others_.take();
    ASSERT_NE(chunk, kNoIndex);
    EXPECT_TRUE(taken.insert(chunk).second);
    EXPECT_EQ(control(chunk).owner(), i % 2 == 0 ? mine_.owner() : others_.owner());
  }
  EXPECT_EQ(mine_.take(), kNoIndex);
  EXPECT_EQ(mine_.in_use(), all_);
}

TEST_F(ChunksOfLanes, are_kept_by_a_lane_only_as_far_as_it_soon_needs_them) {
  for (std::uint32_t i = 0; i < all_; ++i) ASSERT_NE(mine_.take(), kNoIndex);
  for (std::uint32_t i = 0; i < 10; ++i) mine_.keep_or_free(i);
  EXPECT_EQ(mine_.in_use(), all_ - 6) << "four are kept";
  EXPECT_NE(others_.take(), kNoIndex);
  mine_.release();
  EXPECT_EQ(mine_.in_use(), all_ - 9);
}

TEST_F(ChunksOfLanes, are_found_without_a_hint) {
  for (std::uint32_t i = 0; i < (all_ + 63) / 64; ++i)
    segment_->chunk_map()[i].store(0, shm::Point::kNone);  // as a dead lane's magazine leaves it
  EXPECT_NE(mine_.take(), kNoIndex);
}

TEST_F(ChunksOfLanes, begin_each_life_empty_and_under_the_next_incarnation) {
  const std::uint32_t chunk = mine_.take();
  shm::Chunk& cells = segment_->chunk(chunk);
  const std::uint64_t before = control(chunk).incarnation();
  cells.cell[3].store(shm::Hint(7, 7).word, shm::Point::kNone);
  const std::uint64_t now = mine_.renew(chunk);
  EXPECT_EQ(now, before + 1);
  for (const shm::Word& cell : cells.cell) EXPECT_EQ(cell.load(), shm::empty_word(now, 0));
  EXPECT_EQ(cells.next.load(), shm::empty_word(now, 0));
}

TEST_F(ChunksOfLanes, are_settled_as_linked_when_a_ring_leads_to_them_else_as_free) {
  const std::uint32_t linked = mine_.take(), lost = mine_.take();
  mine_.settle(linked, control(linked), true);
  mine_.settle(lost, control(lost), false);
  EXPECT_EQ(control(linked).state(), ChunkState::kLinked);
  EXPECT_EQ(mine_.linked()[linked], control(linked).incarnation());
  EXPECT_EQ(control(lost).state(), ChunkState::kFree);
  EXPECT_EQ(mine_.linked()[lost], ~0ULL);
  mine_.settle(lost, ChunkControl(ChunkState::kSpare, mine_.owner(), 0), true);
  EXPECT_EQ(control(lost).state(), ChunkState::kFree) << "it was not as it was found";
}

}  // namespace
}  // namespace ojs_shm::test
