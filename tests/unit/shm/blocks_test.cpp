// SPDX-License-Identifier: Apache-2.0
// Texts in chains of blocks: whole or not at all, and never another slot's.
#include "shm/blocks.hpp"

#include <gtest/gtest.h>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Blocks;
using shm::kNoIndex;
using shm::Point;

class Chains : public testing::Test {
 protected:
  static std::string text(std::size_t size, char first = 'a') {
    std::string bytes(size, ' ');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + i % 23);
    return bytes;
  }
  std::string read(std::uint32_t block, std::uint32_t slot, std::uint32_t generation,
                   std::size_t size) {
    std::string out;
    Blocks::read(*segment_, block, slot, generation, size, out);
    return out;
  }
  std::uint32_t used() {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < segment_->geometry().blocks; ++i)
      count += segment_->block_word(i).load() != 0 ? 1U : 0U;
    return count;
  }
  BareSegment segment_;
  Blocks blocks_{*segment_, 0};
};

TEST_F(Chains, keep_texts_of_every_length_around_a_block) {
  for (const std::size_t size : {1U, 255U, 256U, 257U, 512U, 5'000U}) {
    const std::uint32_t first = blocks_.write(3, 7, text(size));
    ASSERT_NE(first, kNoIndex);
    EXPECT_EQ(read(first, 3, 7, size), text(size)) << size;
    EXPECT_EQ(used(), (size + shm::kBlockBytes - 1) / shm::kBlockBytes);
    blocks_.free_chain(first, 3, 7);
    EXPECT_EQ(used(), 0U);
  }
}

TEST_F(Chains, are_written_whole_or_not_at_all) {
  const std::size_t all = std::size_t{segment_->geometry().blocks} * shm::kBlockBytes;
  EXPECT_EQ(blocks_.write(1, 1, text(all + 1)), kNoIndex);
  EXPECT_EQ(used(), 0U) << "what was taken went back";
  const std::uint32_t first = blocks_.write(1, 1, text(all));
  ASSERT_NE(first, kNoIndex);
  EXPECT_EQ(read(first, 1, 1, all), text(all));
}

TEST_F(Chains, are_read_for_their_own_slot_and_generation_alone) {
  const std::uint32_t first = blocks_.write(3, 7, text(600));
  EXPECT_EQ(read(first, 4, 7, 600), "");
  EXPECT_EQ(read(first, 3, 8, 600), "");
  EXPECT_EQ(read(kNoIndex, 3, 7, 600), "");
  EXPECT_EQ(read(first, 3, 7, 100), text(600).substr(0, 100)) << "no more than is asked for";
}

TEST_F(Chains, end_where_a_link_leads_astray) {
  const std::uint32_t first = blocks_.write(3, 7, text(600));
  segment_->block_link(first).store(first, Point::kNone);  // a circle
  EXPECT_EQ(read(first, 3, 7, 600).size(), 600U) << "bounded by the length";
  segment_->block_link(first).store(kNoIndex - 1, Point::kNone);
  EXPECT_LE(read(first, 3, 7, 600).size(), 600U);
  blocks_.free_chain(first, 3, 7);  // and ends
}

TEST_F(Chains, of_a_generation_that_is_over_are_freed_by_one_of_those_who_sweep) {
  const std::uint32_t first = blocks_.write(3, 7, text(10));
  const std::uint64_t word = Blocks::word_of(3, 7);
  EXPECT_FALSE(blocks_.free_orphan(first, Blocks::word_of(3, 8))) << "it is another one's by now";
  EXPECT_TRUE(blocks_.free_orphan(first, word));
  EXPECT_FALSE(blocks_.free_orphan(first, word));
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(Blocks::slot_of(word), 3U);
  EXPECT_EQ(Blocks::generation_of(word), 7U);
}

TEST_F(Chains, of_two_lanes_share_no_block) {
  Blocks other(*segment_, 1);
  const std::uint32_t one = blocks_.write(1, 1, text(2'000, 'a'));
  const std::uint32_t two = other.write(2, 1, text(2'000, 'b'));
  EXPECT_EQ(read(one, 1, 1, 2'000), text(2'000, 'a'));
  EXPECT_EQ(read(two, 2, 1, 2'000), text(2'000, 'b'));
}

}  // namespace
}  // namespace ojs_shm::test
