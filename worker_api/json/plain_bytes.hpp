// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// What of a JSON text may be passed over, many bytes at a time.
namespace ojs_shm::json {

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

#if defined(__SSE2__)
/// Of sixteen bytes of a string a bit for each that does not stand for itself, as plain_bytes().
inline unsigned marked_bytes(const char* bytes) noexcept {
  const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  // As signed numbers what lies beyond ASCII is below the blank, too.
  const __m128i marks = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')),
                                                  _mm_cmpeq_epi8(text, _mm_set1_epi8('\\'))),
                                     _mm_cmplt_epi8(text, _mm_set1_epi8(' ')));
  return static_cast<unsigned>(_mm_movemask_epi8(marks));
}
#endif

/// How many of eight bytes of a string stand for themselves before the first that does not: a
/// quote, a backslash, a control character, or one beyond ASCII.
inline std::size_t plain_bytes(const char* bytes) noexcept {
  static_assert(std::endian::native == std::endian::little, "The first byte is the lowest.");
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101, kHighs = kOnes * 0x80;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  const std::uint64_t quotes = word ^ (kOnes * '"'), slashes = word ^ (kOnes * '\\');
  // A borrow only reaches bytes behind a byte that is marked rightly.
  const std::uint64_t marks =
      ((quotes - kOnes) | (slashes - kOnes) | (word - kOnes * 0x20) | word) & kHighs;
  return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
}

/// Behind bytes of a string that stand for themselves, sixteen or eight at a time; the last few may
/// be left. The text begins at `begin`.
inline const char* past_plain([[maybe_unused]] const char* begin, const char* at,
                              const char* end) noexcept {
#if defined(__SSE2__)
  while (end - at >= 16) {
    const unsigned marks = marked_bytes(at);
    if (marks != 0) return at + std::countr_zero(marks);
    at += 16;
  }
  if (at != end && end - begin >= 16) {  // the rest, with some that were seen before it
    const unsigned marks = marked_bytes(end - 16) >> (16 - (end - at));
    return marks != 0 ? at + std::countr_zero(marks) : end;
  }
#endif
  for (std::size_t plain = 8; plain == 8 && end - at >= 8; at += plain) plain = plain_bytes(at);
  return at;
}

/// Whether a blank, a tab or an end of line is among the bytes of a JSON text, also in its strings.
inline bool has_blanks(std::string_view text) noexcept {
  std::size_t i = 0;
#if defined(__SSE2__)
  const __m128i blank = _mm_set1_epi8(' ');  // JSON has no other bytes below it
  for (; text.size() - i >= 16; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i));
    if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes)) != 0) return true;
  }
#endif
  for (; i < text.size(); ++i)
    if (is_space(text[i])) return true;
  return false;
}

}  // namespace ojs_shm::json
