// SPDX-License-Identifier: Apache-2.0
#include "tools/top/grid.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace ojs_shm::top {
namespace {

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

bool contains(const Row& row, const std::string& wanted) {
  return std::any_of(row.cells.begin(), row.cells.end(), [&wanted](const Cell& cell) {
    return lower(cell.text).find(wanted) != std::string::npos;
  });
}

bool before(const Cell& a, const Cell& b) {
  if (a.number && b.number) return *a.number < *b.number;
  if (a.number.has_value() != b.number.has_value()) return !a.number;
  return a.text < b.text;
}

std::vector<std::size_t> widths_of(const Grid& grid) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    // With room for the mark of the order.
    std::size_t width = std::max(width_of(grid.columns[c].title) + 1, grid.columns[c].least_width);
    for (const Row& row : grid.rows)
      if (c < row.cells.size()) width = std::max(width, width_of(row.cells[c].text));
    // The last column takes nothing from another.
    widths.push_back(c + 1 == grid.columns.size() ? width : std::min<std::size_t>(width, 60));
  }
  return widths;
}

/// The first column always, then those from `first` on.
std::vector<std::size_t> shown_columns(const Grid& grid, std::size_t first) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < grid.columns.size(); ++c)
    if (c == 0 || c > first) shown.push_back(c);
  return shown;
}

Line heading(const Grid& grid, const Look& look, const std::vector<std::size_t>& shown,
             const std::vector<std::size_t>& widths) {
  Line line;
  const Style style{Tone::kPlain, true, true, false};
  for (const std::size_t c : shown) {
    std::string title = grid.columns[c].title;
    if (look.sort == static_cast<int>(c)) title += look.descending ? "▼" : "▲";
    line.push_back({fitted(title, widths[c], grid.columns[c].right) + " ", style});
  }
  return line;
}

Line drawn(const Grid& grid, const Row& row, bool chosen, const std::vector<std::size_t>& shown,
           const std::vector<std::size_t>& widths) {
  Line line;
  for (const std::size_t c : shown) {
    const Cell cell = c < row.cells.size() ? row.cells[c] : Cell{};
    Style style = cell.style == Style{} ? row.style : cell.style;
    style.reverse = style.reverse || row.style.reverse;
    if (chosen) style.bold = true, style.reverse = !row.style.reverse;
    line.push_back({fitted(cell.text, widths[c], grid.columns[c].right), style});
    style.tone = chosen || row.style.reverse ? style.tone : Tone::kPlain;
    line.push_back({" ", style});
  }
  return line;
}

/// Spaces to the edge, so that a reversed line is a bar.
void fill(Line& line, std::size_t width) {
  const std::size_t now = width_of(line);
  if (now < width && !line.empty() && line.back().style.reverse)
    line.push_back({std::string(width - now, ' '), line.back().style});
}

}  // namespace

void arrange(Grid& grid, const Look& look) {
  if (!look.filter.empty()) {
    const std::string wanted = lower(look.filter);
    std::erase_if(grid.rows, [&wanted](const Row& row) { return !contains(row, wanted); });
  }
  const auto by = static_cast<std::size_t>(look.sort);
  if (look.sort < 0 || by >= grid.columns.size()) return;
  std::stable_sort(grid.rows.begin(), grid.rows.end(), [&](const Row& a, const Row& b) {
    if (by >= a.cells.size() || by >= b.cells.size()) return false;
    return look.descending ? before(b.cells[by], a.cells[by]) : before(a.cells[by], b.cells[by]);
  });
}

void wrap(Grid& grid, std::size_t width) {
  if (!grid.wraps || grid.columns.empty()) return;
  const std::vector<std::size_t> widths = widths_of(grid);
  const std::size_t last = widths.size() - 1;
  const std::size_t others = std::accumulate(widths.begin(), widths.end() - 1, last);
  const std::size_t room = width > others ? width - others : 1;
  std::vector<Row> rows;
  for (const Row& row : grid.rows) {
    Row part = row;
    const std::string text = row.cells.size() == widths.size() ? row.cells.back().text : "";
    const std::vector<std::string> pieces = wrapped(text, room);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i != 0) {
        part.key = row.key + "\n" + std::to_string(i);
        for (std::size_t c = 0; c < last; ++c) part.cells[c].text.clear();
      }
      if (!text.empty()) part.cells.back().text = pieces[i];
      rows.push_back(part);
    }
  }
  grid.rows = std::move(rows);
}

std::size_t place_of(const Grid& grid, const Look& look) {
  const auto found = std::find_if(grid.rows.begin(), grid.rows.end(),
                                  [&look](const Row& row) { return row.key == look.cursor; });
  return found == grid.rows.end() ? 0 : static_cast<std::size_t>(found - grid.rows.begin());
}

Picture draw(const Grid& grid, Look& look, std::size_t width, std::size_t height, bool cursor) {
  const std::size_t last = grid.columns.empty() ? 0 : grid.columns.size() - 1;
  look.first_column = std::min(look.first_column, last == 0 ? 0 : last - 1);
  const std::vector<std::size_t> widths = widths_of(grid);
  const std::vector<std::size_t> shown = shown_columns(grid, look.first_column);
  Picture picture;
  const auto add = [&](Line line) {
    fill(line, width);
    picture.push_back(cut(line, width));
  };
  add(heading(grid, look, shown, widths));
  if (grid.rows.empty()) {
    picture.push_back(
        cut({{look.filter.empty() ? grid.nothing : "nothing contains \"" + look.filter + "\""}},
            width));
    return picture;
  }
  const std::size_t room = height == 0 ? grid.rows.size() : std::max<std::size_t>(height, 2) - 1;
  const std::size_t chosen = place_of(grid, look);
  look.scrolled = std::min(look.scrolled, grid.rows.size() - std::min(grid.rows.size(), room));
  if (chosen < look.scrolled) look.scrolled = chosen;
  if (chosen >= look.scrolled + room) look.scrolled = chosen - room + 1;
  for (std::size_t r = look.scrolled; r < grid.rows.size() && r < look.scrolled + room; ++r)
    add(drawn(grid, grid.rows[r], cursor && r == chosen, shown, widths));
  return picture;
}

}  // namespace ojs_shm::top
