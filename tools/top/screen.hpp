// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "tools/top/keys.hpp"
#include "tools/top/picture.hpp"

namespace ojs_shm::top {

/// The terminal, from the first line to the last, until this object ends. One for each program.
class Screen {
 public:
  /// Throws shell::Refusal when there is no terminal that could show anything.
  explicit Screen(bool colors);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::size_t width() const;
  std::size_t height() const;
  /// Shows the picture; only what has changed goes to the terminal.
  void show(const Picture& picture);
  /// The next key, or kNone when none comes for so long.
  Stroke wait(int ms);
};

}  // namespace ojs_shm::top
