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
    EXPECT_EQ(control(chunk).owner(), 1 + i % 2) << "the number of the lane, from 1";
  }
  EXPECT_EQ(mine_.take(), kNoIndex);
  EXPECT_EQ(mine_.in_use(), all_);
}

TEST_F(ChunksOfLanes, are_kept_by_a_lane_only_as_far_as_it_soon_needs_them) {
  for (std::uint32_t i = 0; i < all_; ++i) ASSERT_NE(mine_.take(), kNoIndex);
  for (std::uint32_t i = 0; i < 10; ++i) mine_.keep_or_free(i);
  EXPECT_EQ(mine_.in_use(), all_ - 6) << "four are kept";
  EXPECT_NE(others_.take(), kNoIndex);
  EXPECT_EQ(mine_.take(), 3U) << "the one that it kept last";
  mine_.release();
  EXPECT_EQ(mine_.in_use(), all_ - 8);
}

TEST_F(ChunksOfLanes, are_found_without_a_hint) {
  for (std::uint32_t i = 0; i < (all_ + 63) / 64; ++i)
    segment_->chunk_map()[i].store(0, shm::Point::kNone);  // as a dead lane's magazine leaves it
  EXPECT_NE(mine_.take(), kNoIndex);
}

TEST_F(ChunksOfLanes, begin_each_life_empty_and_under_the_next_incarnation) {
  const std::uint32_t chunk = mine_.take();
  shm::Chunk& cells = segment_->chunk(chunk);
  const ChunkControl before(ChunkState::kSpare, mine_.owner(), 41);
  cells.control.store(before.word, shm::Point::kNone);
  cells.cell[3].store(shm::Hint(7, 7).word, shm::Point::kNone);
  const std::uint64_t now = mine_.renew(chunk);
  EXPECT_EQ(now, 42U);
  EXPECT_EQ(control(chunk).word, ChunkControl(ChunkState::kSpare, mine_.owner(), now).word);
  for (const shm::Word& cell : cells.cell) EXPECT_EQ(cell.load(), shm::empty_word(now, 0));
  EXPECT_EQ(cells.next.load(), shm::empty_word(now, 0));
}

TEST_F(ChunksOfLanes, are_settled_as_linked_when_a_ring_leads_to_them_else_as_free) {
  const auto linking = [this] {
    const std::uint32_t chunk = mine_.take();
    const std::uint64_t incarnation = mine_.renew(chunk);
    segment_->chunk(chunk).control.store(
        ChunkControl(ChunkState::kLinking, mine_.owner(), incarnation).word, shm::Point::kNone);
    return chunk;
  };
  const std::uint32_t linked = linking(), lost = linking();
  const ChunkControl before = control(linked);
  mine_.settle(linked, before, true);
  mine_.settle(lost, control(lost), false);
  EXPECT_EQ(control(linked).word, ChunkControl(ChunkState::kLinked, 0, 1).word);
  EXPECT_EQ(mine_.linked()[linked], 1U);
  EXPECT_EQ(control(lost).word, ChunkControl(ChunkState::kFree, 0, 1).word);
  EXPECT_EQ(mine_.linked()[lost], ~0ULL);
  // What is no longer as it was found is another's to settle.
  mine_.settle(linked, before, false);
  mine_.settle(lost, before, true);
  EXPECT_EQ(control(linked).state(), ChunkState::kLinked);
  EXPECT_EQ(control(lost).state(), ChunkState::kFree);
}

/// One who copies it sees by its incarnation whether what he read may be of the next life.
TEST_F(ChunksOfLanes, say_that_a_life_begins_before_a_cell_of_it_is_written) {
  const std::uint32_t chunk = mine_.take();
  shm::Chunk& cells = segment_->chunk(chunk);
  static const shm::Chunk* seen;
  static std::uint64_t before;
  static unsigned cells_written, too_early;
  seen = &cells, before = control(chunk).incarnation(), cells_written = too_early = 0;
  shm::thread_hook = [](shm::Access access, shm::Point, const void* word) {
    if (access != shm::Access::kWritten || word < &seen->cell || word >= &seen->cell + 1) return;
    ++cells_written;
    too_early += ChunkControl(seen->control.load()).incarnation() == before ? 1 : 0;
  };
  mine_.renew(chunk);
  shm::thread_hook = nullptr;
  EXPECT_EQ(cells_written, shm::kCellsPerChunk);
  EXPECT_EQ(too_early, 0U);
}

}  // namespace
}  // namespace ojs_shm::test
