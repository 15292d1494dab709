// SPDX-License-Identifier: Apache-2.0
#include "tools/top/picture.hpp"

#include <algorithm>
#include <cwchar>

namespace ojs_shm::top {
namespace {

/// One character of UTF-8 text: its bytes and its places.
struct Glyph {
  std::size_t bytes = 1, places = 1;
};

Glyph first_glyph(std::string_view text) {
  std::mbstate_t state{};
  wchar_t wide = 0;
  const std::size_t bytes = std::mbrtowc(&wide, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) return {};
  const int places = ::wcwidth(wide);
  return {bytes, places < 0 ? 1 : static_cast<std::size_t>(places)};
}

/// The longest beginning of the text that takes no more than `width` places.
std::string_view beginning(std::string_view text, std::size_t width, std::size_t& places) {
  std::size_t bytes = 0;
  places = 0;
  while (bytes < text.size()) {
    const Glyph glyph = first_glyph(text.substr(bytes));
    if (places + glyph.places > width) break;
    bytes += glyph.bytes;
    places += glyph.places;
  }
  return text.substr(0, bytes);
}

}  // namespace

std::size_t width_of(std::string_view text) {
  std::size_t places = 0;
  beginning(text, ~std::size_t{0}, places);
  return places;
}

std::size_t width_of(const Line& line) {
  std::size_t places = 0;
  for (const Span& span : line) places += width_of(span.text);
  return places;
}

std::string fitted(std::string_view text, std::size_t width, bool right) {
  std::size_t places = 0;
  std::string_view fits = beginning(text, width, places);
  std::string shown(fits);
  if (fits.size() < text.size() && width > 0) {
    shown = std::string(beginning(text, width - 1, places)) + "…";
    ++places;
  }
  const std::string pad(width - std::min(width, places), ' ');
  return right ? pad + shown : shown + pad;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> pieces;
  do {
    std::size_t places = 0;
    // A character that is wider than a whole piece is one all the same.
    const std::size_t bytes =
        text.empty() ? 0 : std::max(beginning(text, width, places).size(), first_glyph(text).bytes);
    pieces.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  } while (!text.empty());
  return pieces;
}

Line cut(const Line& line, std::size_t width) {
  Line shown;
  for (const Span& span : line) {
    if (width == 0) break;
    std::size_t places = 0;
    const std::string_view fits = beginning(span.text, width, places);
    shown.push_back({std::string(fits), span.style});
    width -= places;
    if (fits.size() < span.text.size()) break;
  }
  return shown;
}

std::string plain_text(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string plain_text(const Picture& picture) {
  std::string text;
  for (const Line& line : picture) text += plain_text(line) + '\n';
  return text;
}

}  // namespace ojs_shm::top
