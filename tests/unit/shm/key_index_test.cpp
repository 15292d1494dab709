// SPDX-License-Identifier: Apache-2.0
// Insert-if-absent from a key to a slot, where the slot says whether it carries the key.
#include "shm/key_index.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::KeyIndex;
using shm::kNoIndex;
using Insert = shm::KeyIndex::Insert;

/// What slots carry, by hash.
struct Carried final : KeyIndex::Carries {
  explicit Carried(std::uint64_t wanted_hash) : wanted(wanted_hash) {}
  bool operator()(std::uint32_t slot) const override {
    const auto found = slots.find(slot);
    return found != slots.end() && found->second == wanted;
  }
  bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const override {
    const auto found = slots.find(slot);
    return found != slots.end() && KeyIndex::fingerprint(found->second) == fingerprint;
  }
  std::uint64_t wanted;
  static inline std::map<std::uint32_t, std::uint64_t> slots;
};

class Keys : public testing::Test {
 protected:
  Keys() { Carried::slots.clear(); }
  Insert insert(std::uint64_t hash, std::uint32_t slot) {
    Carried::slots[slot] = hash;
    const Insert done = index_.insert(hash, slot, Carried(hash));
    if (done != Insert::kDone) Carried::slots.erase(slot);
    return done;
  }
  void give_up(std::uint64_t hash, std::uint32_t slot) {
    index_.remove(hash, slot);
    Carried::slots.erase(slot);
  }
  /// Of the index: entries, and lines that count any beyond them.
  unsigned words_in_use() {
    unsigned count = 0;
    for (std::uint32_t i = 0; i < segment_->geometry().key_cells; ++i)
      count += segment_->key_cell(i).load() != 0;
    return count;
  }
  /// That share a line to begin with, for they differ far above its place.
  std::uint64_t neighbour(unsigned number) {
    return 5 + number * (std::uint64_t{segment_->geometry().key_cells} << 20);
  }
  std::uint32_t find(std::uint64_t hash) { return KeyIndex::find(*segment_, hash, Carried(hash)); }
  BareSegment segment_;
  KeyIndex index_{*segment_};
};

/// Lets the other slot of its key pass, and is thrown out of the index in its first round.
struct ThrownOut final : KeyIndex::Carries {
  explicit ThrownOut(KeyIndex& of) : index(of) {}
  void begin() const override { seen = 0, ++rounds; }
  bool operator()(std::uint32_t) const override {
    ++seen;
    if (rounds == 1) index.remove(42, 8);
    return false;
  }
  bool plausible(std::uint32_t, std::uint64_t) const override { return true; }
  KeyIndex& index;
  mutable int rounds = 0, seen = 0;
};

TEST_F(Keys, a_round_that_was_lost_is_looked_at_anew) {
  ASSERT_EQ(insert(42, 7), Insert::kDone);
  const ThrownOut look(index_);
  EXPECT_EQ(index_.insert(42, 8, look), Insert::kDone);
  EXPECT_EQ(look.rounds, 2);
  EXPECT_EQ(look.seen, 1);
}

TEST_F(Keys, are_found_by_the_slot_that_carries_them_until_it_gives_them_up) {
  EXPECT_EQ(find(42), kNoIndex);
  ASSERT_EQ(insert(42, 7), Insert::kDone);
  EXPECT_EQ(find(42), 7U);
  EXPECT_EQ(insert(42, 8), Insert::kDuplicate);
  EXPECT_EQ(find(42), 7U) << "the second left nothing";
  give_up(42, 7);
  EXPECT_EQ(find(42), kNoIndex);
  EXPECT_EQ(insert(42, 8), Insert::kDone);
}

TEST_F(Keys, whose_slot_no_longer_carries_them_are_in_the_way_of_none) {
  ASSERT_EQ(insert(42, 7), Insert::kDone);
  Carried::slots.erase(7);  // as if its holder had died
  EXPECT_EQ(find(42), kNoIndex);
  EXPECT_EQ(KeyIndex::strays(*segment_, Carried(0)).size(), 1U);
  EXPECT_EQ(insert(42, 8), Insert::kDone) << "replaces it";
  EXPECT_EQ(find(42), 8U);
  Carried::slots.erase(8);
  index_.sweep(Carried(0));
  EXPECT_TRUE(KeyIndex::strays(*segment_, Carried(0)).empty());
}

TEST_F(Keys, of_one_window_stand_beside_each_other_until_it_is_full) {
  std::uint32_t slot = 0;
  while (slot <= KeyIndex::kWindow && insert(neighbour(slot), slot) == Insert::kDone) ++slot;
  EXPECT_EQ(slot, KeyIndex::kWindow);
  for (std::uint32_t each = 0; each < slot; ++each) EXPECT_EQ(find(neighbour(each)), each);
  const unsigned before = words_in_use();
  EXPECT_EQ(insert(neighbour(slot), slot), Insert::kFull);
  EXPECT_EQ(words_in_use(), before);
  Carried::slots.erase(20);  // as if its holder had died
  EXPECT_EQ(insert(neighbour(slot), slot), Insert::kDone) << "takes the place of a stray";
  EXPECT_EQ(find(neighbour(slot)), slot);
  for (std::uint32_t each = 0; each <= slot; ++each) give_up(neighbour(each), each);
  EXPECT_EQ(words_in_use(), 0U);
}

TEST_F(Keys, beyond_their_line_are_found_when_those_before_them_are_gone) {
  constexpr unsigned kMany = 2 * KeyIndex::kLineWords;
  for (std::uint32_t slot = 0; slot < kMany; ++slot)
    ASSERT_EQ(insert(neighbour(slot), slot), Insert::kDone);
  for (std::uint32_t slot = 0; slot + 1 < kMany; ++slot) give_up(neighbour(slot), slot);
  EXPECT_EQ(find(neighbour(kMany - 1)), kMany - 1);
  EXPECT_EQ(insert(neighbour(kMany - 1), kMany), Insert::kDuplicate);
  EXPECT_EQ(find(neighbour(kMany - 1)), kMany - 1);
  Carried::slots.erase(kMany - 1);  // as if its holder had died
  index_.sweep(Carried(0));
  EXPECT_EQ(words_in_use(), 0U) << "no line counts it any longer";
}

TEST_F(Keys, as_many_as_slots_find_room) {
  const std::uint32_t half = segment_->geometry().key_cells / 2;
  std::uint64_t hash = 88'172'645'463'325'252ULL;
  std::map<std::uint32_t, std::uint64_t> all;
  for (std::uint32_t slot = 0; slot < half; ++slot) {
    hash ^= hash << 13, hash ^= hash >> 7, hash ^= hash << 17;
    ASSERT_EQ(insert(hash, slot), Insert::kDone) << slot;
    all[slot] = hash;
  }
  for (const auto& [slot, each] : all) EXPECT_EQ(find(each), slot);
  for (const auto& [slot, each] : all) give_up(each, slot);
  EXPECT_EQ(words_in_use(), 0U);
}

}  // namespace
}  // namespace ojs_shm::test
