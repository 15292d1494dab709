// SPDX-License-Identifier: Apache-2.0
// Insert-if-absent from a key to a slot, where the slot says whether it carries the key.
#include "shm/key_index.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::KeyIndex;
using shm::kNoIndex;
using Insert = shm::KeyIndex::Insert;

using Standing = shm::KeyIndex::Standing;

/// What slots carry, by hash, and which are being filled.
struct Carried final : KeyIndex::Carries {
  explicit Carried(std::uint64_t wanted_hash) : wanted(wanted_hash) {}
  Standing operator()(std::uint32_t slot) const override {
    const auto found = slots.find(slot);
    if (found == slots.end() || found->second != wanted) return Standing::kPasses;
    return filling.contains(slot) ? Standing::kComes : Standing::kKeepsOut;
  }
  bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const override {
    const auto found = slots.find(slot);
    return found != slots.end() && KeyIndex::fingerprint(found->second) == fingerprint;
  }
  void begin() const override {
    if (++looks == act_in_look) act();
  }
  unsigned patience() const override { return 3; }
  std::uint64_t wanted;
  mutable unsigned looks = 0;
  unsigned act_in_look = ~0U;
  std::function<void()> act;
  static inline std::map<std::uint32_t, std::uint64_t> slots;
  static inline std::set<std::uint32_t> filling;
};

class Keys : public testing::Test {
 protected:
  Keys() { Carried::slots.clear(), Carried::filling.clear(); }
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
  bool alone(std::uint64_t hash, std::uint32_t slot) {
    return index_.insert_alone(hash, slot, KeyIndex::glance(*segment_, hash));
  }
  std::uint32_t find(std::uint64_t hash) { return KeyIndex::find(*segment_, hash, Carried(hash)); }
  BareSegment segment_;
  KeyIndex index_{*segment_};
};

TEST_F(Keys, who_comes_alone_sees_one_that_came_into_an_earlier_cell_meanwhile) {
  const std::uint64_t first = neighbour(0), second = neighbour(1);
  ASSERT_TRUE(alone(first, 1));
  static std::function<void()> meanwhile;
  meanwhile = [&] {
    index_.remove(first, 1);
    EXPECT_TRUE(alone(second, 2));
  };
  shm::thread_hook = [](shm::Access access, shm::Point point, const void*) {
    if (access != shm::Access::kRmw || point != shm::Point::kKeyPlaced) return;
    shm::thread_hook = nullptr;
    meanwhile();
  };
  EXPECT_FALSE(alone(second, 3));
  shm::thread_hook = nullptr;
  Carried::slots[2] = second;
  EXPECT_EQ(find(second), 2U);
}

// Slot 8 comes while slot 7 does; the cells of a line are given out from the lowest on.

TEST_F(Keys, one_that_comes_gives_way_to_one_in_a_lower_cell) {
  ASSERT_EQ(insert(42, 7), Insert::kDone);
  Carried::filling = {7, 8};
  const unsigned before = words_in_use();
  EXPECT_EQ(insert(42, 8), Insert::kDuplicate);
  EXPECT_EQ(words_in_use(), before) << "its entry is gone";
}

TEST_F(Keys, one_that_comes_waits_for_one_in_a_higher_cell_until_that_one_is_gone) {
  ASSERT_EQ(insert(neighbour(0), 1), Insert::kDone);
  ASSERT_EQ(insert(neighbour(1), 7), Insert::kDone);
  give_up(neighbour(0), 1);  // the lowest cell is empty
  Carried::filling = {7, 8};
  Carried::slots[8] = neighbour(1);
  Carried look(neighbour(1));
  look.act_in_look = 3;
  look.act = [this] { give_up(neighbour(1), 7); };
  EXPECT_EQ(index_.insert(neighbour(1), 8, look), Insert::kDone);
  EXPECT_EQ(look.looks, 3U);
}

TEST_F(Keys, one_that_waits_is_kept_out_once_the_other_is_published) {
  ASSERT_EQ(insert(neighbour(0), 1), Insert::kDone);
  ASSERT_EQ(insert(neighbour(1), 7), Insert::kDone);
  give_up(neighbour(0), 1);
  Carried::filling = {7, 8};
  Carried::slots[8] = neighbour(1);
  Carried look(neighbour(1));
  look.act_in_look = 2;
  look.act = [] { Carried::filling.erase(7); };
  const unsigned before = words_in_use();
  EXPECT_EQ(index_.insert(neighbour(1), 8, look), Insert::kDuplicate);
  EXPECT_EQ(words_in_use(), before);
}

TEST_F(Keys, one_that_waits_in_vain_leaves_nothing) {
  ASSERT_EQ(insert(neighbour(0), 1), Insert::kDone);
  ASSERT_EQ(insert(neighbour(1), 7), Insert::kDone);
  give_up(neighbour(0), 1);
  Carried::filling = {7, 8};
  const unsigned before = words_in_use();
  EXPECT_EQ(insert(neighbour(1), 8), Insert::kBusy);
  EXPECT_EQ(words_in_use(), before);
}

TEST_F(Keys, a_key_without_another_entry_goes_in_without_a_look_at_slots) {
  EXPECT_TRUE(alone(42, 7));
  Carried::slots[7] = 42;
  EXPECT_EQ(find(42), 7U);
  const unsigned before = words_in_use();
  EXPECT_FALSE(alone(42, 8)) << "there is another";
  EXPECT_EQ(words_in_use(), before);
  give_up(42, 7);
  EXPECT_EQ(words_in_use(), 0U);
  // Its line is full, or counts others beyond it: the whole window is to be looked at.
  for (std::uint32_t slot = 0; slot < KeyIndex::kLineWords; ++slot)
    ASSERT_EQ(insert(neighbour(slot), slot), Insert::kDone);
  EXPECT_FALSE(alone(neighbour(20), 20));
  give_up(neighbour(0), 0);
  EXPECT_FALSE(alone(neighbour(20), 20));
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

/// As a newcomer does that found the finished job superfluous, removed its entry, and then gave up.
TEST_F(Keys, one_that_stands_again_notices_that_its_entry_was_taken_meanwhile) {
  ASSERT_EQ(insert(7, 5), Insert::kDone);
  Carried look(7);
  look.act_in_look = 1;
  look.act = [&] { index_.remove(7, 5); };
  EXPECT_EQ(index_.stand(7, 5, look), Insert::kDone);
  EXPECT_EQ(look.looks, 2U) << "with its new entry it looks again";
  EXPECT_EQ(find(7), 5U);
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
