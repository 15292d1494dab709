// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ojs_shm::shell {

/// Rows for a person or a script: on a terminal aligned under a heading, else one line for each row
/// with a tab between the cells and no heading. Control characters inside a cell are written out,
/// so a row is one line.
class Table {
 public:
  /// A heading that ends in '>' is set flush right. The cells below a heading that ends in '!' say
  /// how something is, and are coloured where the terminal allows.
  explicit Table(std::initializer_list<std::string_view> headings);
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// To stdout.
  void print() const;
  std::string aligned(bool in_colours = false) const;
  std::string tab_separated() const;

 private:
  struct Column {
    std::string heading;
    bool right = false, state = false;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

bool stdout_is_terminal();

}  // namespace ojs_shm::shell
