// SPDX-License-Identifier: Apache-2.0
// Rings of hints, by one lane and by two that take turns: order, emptiness, packing, and what a
// dead lane leaves.
#include "shm/batches.hpp"
#include "shm/ring_splice.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Batches;
using shm::Hint;
using shm::kNoIndex;
using shm::Peeked;
using shm::Point;
using shm::Rings;

class RingOfHints : public testing::Test {
 protected:
  RingOfHints() : ring_(rings_.ensure(segment_.set(), kNumber)) {}
  bool push(std::uint32_t index, std::uint64_t tag = 1) {
    return rings_.push(ring_, Hint(index, tag), &segment_.set(), kNumber);
  }
  /// Takes the first hint out; kNoIndex: there is none.
  std::uint32_t pop(Rings& rings) {
    const Peeked head = rings.peek(ring_);
    if (head.empty()) return kNoIndex;
    Rings::retire(head);
    return head.hint().index();
  }
  std::uint32_t pop() { return pop(rings_); }
  bool open() { return (segment_.set().index[kNumber / 32].load() >> (kNumber % 32) & 1) != 0; }
  std::uint32_t free_chunks() {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < segment_->geometry().chunks; ++i)
      count +=
          shm::ChunkControl(segment_->chunk(i).control.load()).state() == shm::ChunkState::kFree
              ? 1U
              : 0U;
    return count;
  }

  static constexpr unsigned kNumber = 37;
  BareSegment segment_;
  Rings rings_{*segment_, 0};
  std::uint32_t ring_;
};

TEST_F(RingOfHints, hands_them_out_in_their_order_over_many_chunks) {
  EXPECT_EQ(pop(), kNoIndex);
  for (std::uint32_t i = 0; i < 200; ++i) ASSERT_TRUE(push(i));
  for (std::uint32_t i = 0; i < 200; ++i) ASSERT_EQ(pop(), i);
  EXPECT_EQ(pop(), kNoIndex);
}

/// Behind the last cell of a chunk stands the link to the next one, which is not a hint.
TEST_F(RingOfHints, a_look_that_is_kept_passes_ends_of_chunks) {
  Peeked kept = rings_.peek(ring_);
  for (std::uint32_t i = 100; i < 100 + shm::kCellsPerChunk * 3; ++i) {
    rings_.peek_again(kept);
    ASSERT_TRUE(kept.empty()) << i;
    ASSERT_TRUE(push(i));
    rings_.peek_again(kept);
    ASSERT_FALSE(kept.empty()) << i;
    ASSERT_EQ(kept.hint().index(), i);
    Rings::retire(kept);
    Rings::step(kept);
  }
}

/// Both ends move once; another lane that comes in between finds all that is there.
TEST_F(RingOfHints, fills_and_leaves_cells_in_a_row) {
  Rings other{*segment_, 1};
  Rings::PushRun run;
  for (std::uint32_t i = 0; i < shm::kCellsPerChunk * 2 + 3; ++i) {
    ASSERT_TRUE(rings_.push_next(run, ring_, Hint(i, 1), &segment_.set(), kNumber));
    if (i % 5 != 4) continue;
    ASSERT_TRUE(other.push(ring_, Hint(++i, 1), &segment_.set(), kNumber));
  }
  rings_.end_run(run);
  std::uint32_t next = 0;
  for (Peeked head = rings_.peek(ring_); !head.empty(); head = rings_.peek(ring_)) {
    const unsigned cell = shm::Place(head.head).cell();
    unsigned hints = 0;
    for (;
         hints < 3 && cell + hints < shm::kCellsPerChunk && !shm::is_empty(head.cell[hints].load());
         ++hints)
      ASSERT_EQ(Hint(head.cell[hints].load()).index(), next++);
    Rings::retire(head, hints);
  }
  EXPECT_GE(next, shm::kCellsPerChunk * 2 + 3);
}

TEST_F(RingOfHints, uses_its_chunks_again_for_ever) {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(push(i % 200)) << i;
    ASSERT_EQ(pop(), i % 200);
  }
}

TEST_F(RingOfHints, says_no_when_no_chunk_is_left_and_goes_on_afterwards) {
  std::uint32_t pushed = 0;
  while (push(pushed % 200)) ++pushed;
  EXPECT_GE(pushed, 60 * shm::kCellsPerChunk);
  for (std::uint32_t i = 0; i < pushed; ++i) ASSERT_EQ(pop(), i % 200);
  EXPECT_EQ(pop(), kNoIndex);
  EXPECT_TRUE(push(5));
  EXPECT_EQ(pop(), 5U);
}

TEST_F(RingOfHints, is_open_while_it_may_hold_one_and_closed_by_the_proof_that_it_is_empty) {
  ASSERT_TRUE(push(1));
  EXPECT_TRUE(open());
  EXPECT_EQ(pop(), 1U);
  const Peeked empty = rings_.peek(ring_);
  ASSERT_TRUE(empty.empty());
  ASSERT_TRUE(push(2));
  Rings::close(segment_.set(), kNumber, *empty.cell, empty.value);
  EXPECT_TRUE(open()) << "the proof is out of date";
  EXPECT_EQ(pop(), 2U);
  const Peeked now = rings_.peek(ring_);
  Rings::close(segment_.set(), kNumber, *now.cell, now.value);
  EXPECT_FALSE(open());
  ASSERT_TRUE(push(3));
  EXPECT_TRUE(open()) << "the next one opens it";
}

TEST_F(RingOfHints, gives_a_hint_to_one_of_two_who_saw_it) {
  Rings other(*segment_, 1);
  ASSERT_TRUE(push(1));
  ASSERT_TRUE(push(2));
  const Peeked mine = rings_.peek(ring_), theirs = other.peek(ring_);
  EXPECT_EQ(mine.hint().index(), theirs.hint().index());
  Rings::retire(mine);
  Rings::retire(theirs);  // too late
  EXPECT_EQ(pop(other), 2U);
}

bool is_odd(const shm::Segment&, Hint hint) { return hint.index() % 2 != 0; }

TEST_F(RingOfHints, packs_what_is_alive_and_keeps_its_order) {
  for (std::uint32_t i = 0; i < 200; ++i) ASSERT_TRUE(push(i));
  ASSERT_TRUE(has_middle(*segment_, ring_));
  EXPECT_GT(splice(rings_, ring_, &is_odd), 3U);
  std::vector<std::uint32_t> odd;
  for (std::uint32_t i = pop(); i != kNoIndex; i = pop())
    if (i % 2 != 0) odd.push_back(i);
  ASSERT_EQ(odd.size(), 100U);
  for (std::uint32_t i = 0; i < odd.size(); ++i) EXPECT_EQ(odd[i], 2 * i + 1);
}

TEST_F(RingOfHints, passes_dead_ones_at_the_front) {
  for (const std::uint32_t i : {2U, 4U, 6U, 7U, 8U}) ASSERT_TRUE(push(i));
  rings_.reap(ring_, &is_odd, 2);
  EXPECT_EQ(rings_.peek(ring_).hint().index(), 6U) << "no more than two";
  rings_.reap(ring_, &is_odd, 100);
  EXPECT_EQ(rings_.peek(ring_).hint().index(), 7U);
}

TEST_F(RingOfHints, of_a_lane_that_died_is_settled_by_its_repair) {
  const std::uint32_t before = free_chunks();
  {
    Rings dead(*segment_, 2);  // keeps a spare chunk and a batch, and gives nothing back
    ASSERT_NE(dead.chunks().take(), kNoIndex);
    ASSERT_NE(Batches(dead).open(), kNoIndex);
  }
  EXPECT_LT(free_chunks(), before);
  const std::uint32_t finished = rings_.make_unindexed();
  const std::uint32_t with_ring = free_chunks();
  Rings repair(*segment_, 2);
  const auto kept = repair.repair({&segment_.set(0), &segment_.set(1)}, {finished});
  EXPECT_EQ(kept.size(), 1U);
  Batches(repair).repair(finished, kept);
  repair.chunks().release();
  EXPECT_GT(free_chunks(), with_ring);
  ASSERT_TRUE(push(1));
  EXPECT_EQ(pop(), 1U);
}

TEST_F(RingOfHints, visits_every_cell_from_head_to_tail) {
  for (std::uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(push(i));
  for (int i = 0; i < 5; ++i) pop();
  std::vector<std::uint32_t> seen;
  Rings::walk(*segment_, ring_, [&seen](std::uint32_t, unsigned, std::uint64_t value) {
    if (!shm::is_empty(value)) seen.push_back(Hint(value).index());
  });
  ASSERT_EQ(seen.size(), 35U);
  EXPECT_EQ(seen.front(), 5U);
  EXPECT_EQ(seen.back(), 39U);
}

}  // namespace
}  // namespace ojs_shm::test
