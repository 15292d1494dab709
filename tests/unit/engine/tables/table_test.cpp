// SPDX-License-Identifier: Apache-2.0
// Tables of records in an area of a segment.
#include "engine/tables/table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace ojs_shm::test {
namespace {

TEST(Tables, lie_behind_each_other_in_the_order_in_which_they_are_asked_for) {
  alignas(8) std::array<std::byte, 64> area{};
  engine::Tables tables(area.data());
  const engine::Table<std::uint64_t> first = tables.table<std::uint64_t>(3);
  const engine::Table<std::uint32_t> second = tables.table<std::uint32_t>(2);
  EXPECT_EQ(reinterpret_cast<std::byte*>(&first[2]), area.data() + 16);
  EXPECT_EQ(reinterpret_cast<std::byte*>(&second[0]), area.data() + 24);
  EXPECT_EQ(reinterpret_cast<std::byte*>(tables.next<std::uint64_t>(0)), area.data() + 32);
  EXPECT_EQ(second.size(), 2U);
}

TEST(Tables, an_index_beyond_the_end_leads_to_the_first_record) {
  std::array<std::uint64_t, 3> records{};
  const engine::Table<std::uint64_t> table(records.data(), 3);
  EXPECT_EQ(&table[2], &records[2]);
  EXPECT_EQ(&table[3], records.data());
  EXPECT_EQ(&table[~0U], records.data());
}

}  // namespace
}  // namespace ojs_shm::test
