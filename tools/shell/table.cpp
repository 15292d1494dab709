// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/table.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/shell/colour.hpp"
#include "tools/shell/output.hpp"

namespace ojs_shm::shell {
namespace {

/// How many places a cell takes: UTF-8 continuation bytes take none.
std::size_t width_of(std::string_view cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

Table::Table(std::initializer_list<std::string_view> headings) {
  for (std::string_view heading : headings) {
    const bool right = heading.ends_with('>'), state = heading.ends_with('!');
    if (right || state) heading.remove_suffix(1);
    columns_.push_back({std::string(heading), right, state});
  }
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::aligned(bool in_colours) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_[i].heading.size();
    for (const auto& cells : rows_) width = std::max(width, width_of(cells[i]));
    widths.push_back(width);
  }

  std::string text;
  const auto line = [&](const auto& cell_of, const auto& drawn) {
    std::string pending;  // spaces that nothing may follow
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string pad(widths[i] - width_of(cell), ' ');
      if (i != 0) pending += "  ";
      if (columns_[i].right) pending += pad;
      if (!cell.empty()) text += std::exchange(pending, {}) + drawn(i, cell);
      if (!columns_[i].right) pending += pad;
    }
    text += '\n';
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].heading; },
       [&](std::size_t, const std::string& heading) {
         return in_colours ? bold(heading) : heading;
       });
  for (const auto& cells : rows_)
    line([&](std::size_t i) -> const std::string& { return cells[i]; },
         [&](std::size_t i, const std::string& cell) {
           return in_colours && columns_[i].state ? coloured(cell) : cell;
         });
  return text;
}

std::string Table::tab_separated() const {
  std::string text;
  for (const auto& cells : rows_) text += fmt::format("{}\n", fmt::join(cells, "\t"));
  return text;
}

void Table::print() const {
  const std::string text =
      stdout_is_terminal() ? aligned(has_colours(STDOUT_FILENO)) : tab_separated();
  std::fwrite(text.data(), 1, text.size(), stdout);
  note_output();
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

}  // namespace ojs_shm::shell
