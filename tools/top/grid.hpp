// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/top/picture.hpp"

namespace ojs_shm::top {

struct Column {
  std::string title;
  bool right = false;
  std::size_t least_width = 0;  ///< so that columns stay where they are when times grow
};

/// A cell sorts by its number, if it has one, else by its text.
struct Cell {
  std::string text;
  std::optional<double> number = {};
  Style style = {};
};

struct Row {
  std::string key;  ///< what the row is about, for the cursor and for Enter
  std::vector<Cell> cells;
  Style style = {};
};

/// A table before the size of the screen is known.
struct Grid {
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::string nothing;  ///< what to say when there is no row
  bool wraps = false;   ///< nothing of its last column is cut off: see wrap()
};

/// How a person looks at a grid.
struct Look {
  std::string filter = {};  ///< rows that contain it, in whatever case
  int sort = -1;            ///< a column, -1: the order of the grid
  bool descending = false;
  std::string cursor = {};       ///< the key of the chosen row
  std::size_t scrolled = 0;      ///< rows above the screen
  std::size_t first_column = 0;  ///< the columns before it, but the very first, are hidden
  bool operator==(const Look&) const = default;
};

/// Filters and sorts.
void arrange(Grid& grid, const Look& look);
/// Of a grid that wraps, each row becomes as many as its last cell needs on a screen of that width.
void wrap(Grid& grid, std::size_t width);
/// The place of the cursor among the rows; the first when its row is gone.
std::size_t place_of(const Grid& grid, const Look& look);
/// Heading and rows in at most `height` lines of `width` places; scrolls so that the cursor is
/// seen. height 0: all rows.
Picture draw(const Grid& grid, Look& look, std::size_t width, std::size_t height, bool cursor);

}  // namespace ojs_shm::top
