// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ojs_shm::top {

/// What a color means. The words beside it say the same.
enum class Tone : std::uint8_t { kPlain, kGood, kCare, kBad, kNote };

struct Style {
  Tone tone = Tone::kPlain;
  bool bold = false, reverse = false, dim = false;
  bool operator==(const Style&) const = default;
};

struct Span {
  std::string text;
  Style style = {};
};
using Line = std::vector<Span>;
/// A screen before a terminal is asked to show it.
using Picture = std::vector<Line>;

/// How many places the text takes on a terminal.
std::size_t width_of(std::string_view text);
std::size_t width_of(const Line& line);
/// The text in exactly `width` places: cut with an ellipsis, or filled with spaces.
std::string fitted(std::string_view text, std::size_t width, bool right = false);
/// The text in pieces of at most `width` places each, at least one of them.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);
/// The line in at most `width` places.
Line cut(const Line& line, std::size_t width);
/// Without styles and without spaces at the end.
std::string plain_text(const Line& line);
std::string plain_text(const Picture& picture);

}  // namespace ojs_shm::top
