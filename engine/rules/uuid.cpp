// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/uuid.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ojs_shm::engine {
namespace {

constexpr std::uint64_t low_bits(unsigned count) { return (std::uint64_t{1} << count) - 1; }

constexpr std::uint64_t kVersion = 7;
constexpr std::uint64_t kVariant = 2;
constexpr std::uint64_t kSaltMask = low_bits(56);

constexpr bool is_uuid7(JobId id) noexcept {
  return (id.hi >> 12 & 0xF) == kVersion && id.lo >> 62 == kVariant;
}

constexpr std::uint8_t kNoDigit = 0x10;
/// What a character is worth as a hexadecimal digit in lower case.
constexpr auto kDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 16; ++i)
    digits[static_cast<std::uint8_t>("0123456789abcdef"[i])] = i;
  return digits;
}();

}  // namespace

std::optional<JobId> parse_id(std::string_view text) noexcept {
  if (text.size() != kJobIdLength) return std::nullopt;
  if (text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-') return std::nullopt;
  unsigned wrong = 0;
  const auto add = [&](std::uint64_t& word, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint8_t digit = kDigits[static_cast<std::uint8_t>(text[i])];
      wrong |= digit;
      word = word << 4 | (digit & 0xF);
    }
  };
  JobId id;
  add(id.hi, 0, 8), add(id.hi, 9, 13), add(id.hi, 14, 18);
  add(id.lo, 19, 23), add(id.lo, 24, kJobIdLength);
  if ((wrong & kNoDigit) != 0 || !is_uuid7(id)) return std::nullopt;
  return id;
}

namespace {

/// Eight hexadecimal digits of a 32-bit number, first digit in the lowest byte: nibbles are spread
/// into bytes, and what is above nine moves on to the letters.
[[maybe_unused]] constexpr std::uint64_t hex_digits(std::uint32_t number) {
  std::uint64_t v = __builtin_bswap32(number);
  v = (v & 0xFFFF'0000) << 16 | (v & 0xFFFF);
  v = (v & 0x0000'FF00'0000'FF00) << 8 | (v & 0x0000'00FF'0000'00FF);
  v = (v >> 4 & 0x000F'000F'000F'000F) | (v & 0x000F'000F'000F'000F) << 8;
  const std::uint64_t letters = (v + 0x0606'0606'0606'0606) >> 4 & 0x0101'0101'0101'0101;
  return v + 0x3030'3030'3030'3030 + letters * ('a' - '0' - 10);
}

}  // namespace

void print_id(JobId id, std::span<char, kJobIdLength> out) noexcept {
  static_assert(std::endian::native == std::endian::little,
                "hex_digits puts the first digit in the lowest byte");
  char digits[32];
#if defined(__SSE2__)
  const auto half = [&](std::uint64_t number, char* to) {
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(__builtin_bswap64(number)));
    const __m128i low = _mm_set1_epi8(0xF);
    const __m128i nibbles =
        _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi64(bytes, 4), low), _mm_and_si128(bytes, low));
    const __m128i letters = _mm_cmpgt_epi8(nibbles, _mm_set1_epi8(9));
    const __m128i text = _mm_add_epi8(_mm_add_epi8(nibbles, _mm_set1_epi8('0')),
                                      _mm_and_si128(letters, _mm_set1_epi8('a' - '0' - 10)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), text);
  };
  half(id.hi, digits);
  half(id.lo, digits + 16);
#else
  const std::uint64_t parts[4] = {hex_digits(static_cast<std::uint32_t>(id.hi >> 32)),
                                  hex_digits(static_cast<std::uint32_t>(id.hi)),
                                  hex_digits(static_cast<std::uint32_t>(id.lo >> 32)),
                                  hex_digits(static_cast<std::uint32_t>(id.lo))};
  std::memcpy(digits, parts, sizeof digits);
#endif
  char* to = out.data();
  std::memcpy(to, digits, 8);
  std::memcpy(to + 9, digits + 8, 4);
  std::memcpy(to + 14, digits + 12, 4);
  std::memcpy(to + 19, digits + 16, 4);
  std::memcpy(to + 24, digits + 20, 12);
  to[8] = to[13] = to[18] = to[23] = '-';
}

std::string to_string(JobId id) {
  std::string text(kJobIdLength, '\0');
  print_id(id, std::span<char, kJobIdLength>(text.data(), kJobIdLength));
  return text;
}

std::optional<IdParts> parts(JobId id, std::uint64_t salt56) noexcept {
  if (!is_uuid7(id)) return std::nullopt;
  const std::uint64_t place = (id.lo ^ salt56) & kSaltMask;
  return IdParts{
      .unix_ms = id.hi >> 16,
      .seq = static_cast<std::uint32_t>((id.hi & low_bits(12)) << 6 | (id.lo >> 56 & low_bits(6))),
      .slot = static_cast<std::uint32_t>(place >> 32),
      .generation = static_cast<std::uint32_t>(place)};
}

}  // namespace ojs_shm::engine
