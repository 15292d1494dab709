// SPDX-License-Identifier: Apache-2.0
#include "tools/top/grid.hpp"

#include <gtest/gtest.h>

#include <clocale>

namespace ojs_shm::top {
namespace {

Grid members(bool wraps, const std::string& value) {
  Grid grid;
  grid.columns = {{"MEMBER"}, {"VALUE"}};
  grid.wraps = wraps;
  grid.rows = {{"id", {{"id"}, {"1"}}, {}}, {"args", {{"args"}, {value}}, {}}};
  return grid;
}

/// What is shown right of the names.
std::string value_of(const Grid& grid, std::size_t width) {
  Look look;
  std::string value;
  Picture picture = draw(grid, look, width, 0, false);
  for (std::size_t line = 2; line < picture.size(); ++line)
    value += plain_text(picture[line]).substr(8);
  return value;
}

TEST(Grid, wraps_what_does_not_fit_its_last_column) {
  std::string value;
  for (int i = 0; i < 100; ++i) value += std::to_string(10'000 + i);
  Grid grid = members(true, value);
  wrap(grid, 80);
  ASSERT_EQ(grid.rows.size(), 1 + (value.size() + 71) / 72);
  EXPECT_EQ(value_of(grid, 80), value);
  EXPECT_EQ(grid.rows[1].cells[0].text, "args");
  EXPECT_EQ(grid.rows[2].cells[0].text, "");
  EXPECT_NE(grid.rows[1].key, grid.rows[2].key) << "the cursor goes through the lines";
}

TEST(Grid, wraps_at_whole_characters_also_where_there_is_no_room) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  Grid grid = members(true, "日本語日本語");
  wrap(grid, 8 + 5);  // two of them, each two places wide
  EXPECT_EQ(grid.rows.size(), 1U + 3U);
  EXPECT_EQ(value_of(grid, 8 + 5), "日本語日本語");
  for (const std::size_t narrow : {0U, 1U, 8U, 9U}) {
    Grid tight = members(true, "日本語");
    wrap(tight, narrow);
    EXPECT_EQ(tight.rows.size(), 1U + 3U) << narrow;
  }
}

TEST(Grid, keeps_its_rows_unless_it_wraps) {
  Grid grid = members(false, std::string(500, 'x'));
  wrap(grid, 80);
  EXPECT_EQ(grid.rows.size(), 2U);
  Grid empty;
  empty.wraps = true;
  wrap(empty, 80);
  EXPECT_TRUE(empty.rows.empty());
}

}  // namespace
}  // namespace ojs_shm::top
