// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ojs_shm::top {

/// What a key asks for; kText is a character for a prompt as well.
enum class Key : std::uint8_t {
  kNone,
  kText,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kBack,   ///< Esc
  kErase,  ///< Backspace
  kTab,
  kBackTab,
  kHelp,
  kSort,   ///< F6
  kQuit,   ///< F10, Ctrl-C
  kClick,  ///< the mouse, on a line
};

struct Stroke {
  Key key = Key::kNone;
  std::string text = {};  ///< of kText, one character in UTF-8
  int line = 0;           ///< of kClick
};

}  // namespace ojs_shm::top
