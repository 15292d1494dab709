// SPDX-License-Identifier: Apache-2.0
// Batches of hints: filled by one lane, and given as one hint to one lane.
#include "shm/batches.hpp"

#include <gtest/gtest.h>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Batches;
using shm::ChunkControl;
using shm::Hint;
using shm::kNoIndex;
using shm::Rings;

class BatchesOfHints : public testing::Test {
 protected:
  /// A batch of this lane with so many hints.
  std::uint32_t filled(unsigned hints) {
    const std::uint32_t batch = batches_.open();
    for (unsigned i = 0; i < hints; ++i) Batches::put(segment_->chunk(batch), i, Hint(100 + i, 9));
    return batch;
  }
  Hint hint_of(std::uint32_t batch) {
    return {batch, ChunkControl(segment_->chunk(batch).control.load()).incarnation()};
  }

  BareSegment segment_;
  Rings rings_{*segment_, 0}, other_rings_{*segment_, 1};
  Batches batches_{rings_}, others_{other_rings_};
  std::uint32_t ring_ = rings_.make_unindexed();
};

TEST_F(BatchesOfHints, stand_as_one_hint_and_are_given_away_once) {
  const std::uint32_t batch = filled(3);
  ASSERT_NE(batch, kNoIndex);
  const Hint hint = hint_of(batch);
  ASSERT_TRUE(batches_.close(batch, ring_));
  EXPECT_EQ(rings_.peek(ring_).value, hint.word);
  ASSERT_TRUE(rings_.push(ring_, hint, nullptr, 0));  // as a repair may double it
  EXPECT_EQ(others_.take(ring_), batch);
  EXPECT_EQ(batches_.take(ring_), kNoIndex);
  EXPECT_TRUE(rings_.peek(ring_).empty());
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(Hint(segment_->chunk(batch).cell[i].load()).index(), 100 + i);
}

TEST_F(BatchesOfHints, are_taken_in_their_order) {
  const std::uint32_t first = filled(1), second = filled(2);
  ASSERT_TRUE(batches_.close(first, ring_));
  ASSERT_TRUE(batches_.close(second, ring_));
  EXPECT_EQ(batches_.take(ring_), first);
  EXPECT_EQ(batches_.take(ring_), second);
}

TEST_F(BatchesOfHints, are_filled_further_unless_a_lane_has_taken_them) {
  const std::uint32_t batch = filled(2);
  const Hint hint = hint_of(batch);
  ASSERT_TRUE(batches_.close(batch, ring_));
  ASSERT_TRUE(batches_.reopen(hint));
  EXPECT_EQ(others_.take(ring_), kNoIndex) << "it is in the hands of its lane";
  Batches::put(segment_->chunk(batch), 2, Hint(102, 9));
  ASSERT_TRUE(batches_.close(batch, ring_));
  EXPECT_EQ(others_.take(ring_), batch);
  EXPECT_EQ(Hint(segment_->chunk(batch).cell[2].load()).index(), 102U);
  EXPECT_FALSE(batches_.reopen(hint));
  others_.drop(batch);
  ASSERT_EQ(others_.open(), batch) << "in another life";
  ASSERT_TRUE(others_.close(batch, ring_));
  EXPECT_FALSE(batches_.reopen(hint));
}

TEST_F(BatchesOfHints, that_a_dead_lane_was_closing_or_kept_come_into_the_ring) {
  const std::uint32_t closing = filled(1), kept = filled(2);
  const Hint hint = hint_of(closing);
  segment_->lane(0).batch_intent.set(hint.word | 1, shm::Point::kIntentSet);
  segment_->chunk(closing).control.store(
      ChunkControl(shm::ChunkState::kBatched, 0, hint.tag()).word, shm::Point::kBatchClosed);
  Rings again(*segment_, 0);
  const std::uint32_t own[] = {kept};
  Batches(again).repair(ring_, own);
  EXPECT_EQ(segment_->lane(0).batch_intent.get(), 0U);
  EXPECT_EQ(rings_.peek(ring_).value, hint.word);
  EXPECT_EQ(others_.take(ring_), closing);
  EXPECT_EQ(others_.take(ring_), kept);
}

TEST_F(BatchesOfHints, that_another_has_taken_since_their_lane_died_get_no_hint) {
  const std::uint32_t batch = filled(1);
  segment_->lane(0).batch_intent.set(hint_of(batch).word | 1, shm::Point::kIntentSet);
  ASSERT_EQ(ChunkControl(segment_->chunk(batch).control.load()).state(), shm::ChunkState::kBatch);
  Rings again(*segment_, 0);
  Batches(again).repair(ring_, {});
  EXPECT_EQ(segment_->lane(0).batch_intent.get(), 0U);
  EXPECT_TRUE(rings_.peek(ring_).empty());
}

TEST_F(BatchesOfHints, need_a_chunk_that_is_free) {
  for (unsigned i = 0; i < shm::kCellsPerChunk; ++i)
    ASSERT_TRUE(rings_.push(ring_, Hint(1, 1), nullptr, 0));  // the next hint needs a chunk
  const std::uint32_t batch = filled(1);
  while (rings_.chunks().take() != kNoIndex) {}
  EXPECT_EQ(others_.open(), kNoIndex);
  EXPECT_FALSE(batches_.close(batch, ring_));
  EXPECT_EQ(ChunkControl(segment_->chunk(batch).control.load()).state(), shm::ChunkState::kBatch);
  EXPECT_EQ(segment_->lane(0).batch_intent.get(), 0U);
}

/// A batch that was filled further has the hint of before in the ring. Without a chunk for another
/// one its lane takes it back, unless a lane has taken it by that hint meanwhile.
TEST_F(BatchesOfHints, that_another_takes_while_they_are_closed_again_are_that_lane_s) {
  for (unsigned i = 0; i + 1 < shm::kCellsPerChunk; ++i)
    ASSERT_TRUE(rings_.push(ring_, Hint(1, 1), nullptr, 0));  // the hint behind it needs a chunk
  const std::uint32_t batch = filled(2);
  const Hint hint = hint_of(batch);
  ASSERT_TRUE(batches_.close(batch, ring_));
  ASSERT_TRUE(batches_.reopen(hint));
  while (rings_.chunks().take() != kNoIndex) {}
  static Batches* others;
  static std::uint32_t ring, taken;
  others = &others_, ring = ring_, taken = kNoIndex;
  shm::thread_hook = [](shm::Access access, shm::Point point, const void*) {
    if (access != shm::Access::kWritten || point != shm::Point::kBatchClosed) return;
    shm::thread_hook = nullptr;
    taken = others->take(ring);
  };
  EXPECT_TRUE(batches_.close(batch, ring_)) << "another lane has it";
  shm::thread_hook = nullptr;
  EXPECT_EQ(taken, batch);
  const ChunkControl control(segment_->chunk(batch).control.load());
  EXPECT_EQ(control.state(), shm::ChunkState::kBatch);
  EXPECT_EQ(control.owner(), other_rings_.chunks().owner());
}

}  // namespace
}  // namespace ojs_shm::test
