// SPDX-License-Identifier: Apache-2.0
#include "engine/uuid.hpp"

#include <array>
#include <cstring>

namespace ojs_shm::engine {
namespace {

constexpr std::uint64_t low_bits(unsigned count) { return (std::uint64_t{1} << count) - 1; }

constexpr std::uint64_t kVersion = 7;
constexpr std::uint64_t kVariant = 2;
constexpr std::uint64_t kSaltMask = low_bits(56);

constexpr bool is_uuid7(JobId id) noexcept { return (id.hi >> 12 & 0xF) == kVersion && id.lo >> 62 == kVariant; }

constexpr bool is_dash_place(std::size_t i) noexcept { return i == 8 || i == 13 || i == 18 || i == 23; }

constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<JobId> parse_id(std::string_view text) noexcept {
  if (text.size() != kJobIdLength) return std::nullopt;
  JobId id;
  for (std::size_t i = 0; i < kJobIdLength; ++i) {
    if (is_dash_place(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int nibble = hex_value(text[i]);
    if (nibble < 0) return std::nullopt;
    id.hi = id.hi << 4 | id.lo >> 60;
    id.lo = id.lo << 4 | static_cast<std::uint64_t>(nibble);
  }
  if (!is_uuid7(id)) return std::nullopt;
  return id;
}

void print_id(JobId id, std::span<char, kJobIdLength> out) noexcept {
  static constexpr auto kPairs = [] {
    std::array<char, 512> pairs{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      pairs[byte * 2] = "0123456789abcdef"[byte >> 4];
      pairs[byte * 2 + 1] = "0123456789abcdef"[byte & 15];
    }
    return pairs;
  }();
  char* to = out.data();
  for (unsigned byte = 0; byte < 16; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) *to++ = '-';
    const std::uint64_t word = byte < 8 ? id.hi : id.lo;
    std::memcpy(to, &kPairs[(word >> (56 - byte % 8 * 8) & 0xFF) * 2], 2);
    to += 2;
  }
}

std::string to_string(JobId id) {
  std::string text(kJobIdLength, '\0');
  print_id(id, std::span<char, kJobIdLength>(text.data(), kJobIdLength));
  return text;
}

JobId make_id(std::uint64_t unix_ms, std::uint32_t seq18, std::uint32_t slot24, std::uint32_t generation32,
              std::uint64_t salt56) noexcept {
  const std::uint64_t seq = seq18 & low_bits(kIdSeqBits);
  const std::uint64_t place = (slot24 & low_bits(kIdSlotBits)) << 32 | generation32;
  return {.hi = (unix_ms & low_bits(48)) << 16 | kVersion << 12 | seq >> 6,
          .lo = kVariant << 62 | (seq & low_bits(6)) << 56 | (place ^ (salt56 & kSaltMask))};
}

std::optional<IdParts> parts(JobId id, std::uint64_t salt56) noexcept {
  if (!is_uuid7(id)) return std::nullopt;
  const std::uint64_t place = (id.lo ^ salt56) & kSaltMask;
  return IdParts{.unix_ms = id.hi >> 16,
                 .seq = static_cast<std::uint32_t>((id.hi & low_bits(12)) << 6 | (id.lo >> 56 & low_bits(6))),
                 .slot = static_cast<std::uint32_t>(place >> 32),
                 .generation = static_cast<std::uint32_t>(place)};
}

IdClock::Stamp IdClock::next(std::uint64_t now_ms) noexcept {
  if (now_ms > unix_ms_) {
    unix_ms_ = now_ms;
    next_seq_ = 0;
  } else if (next_seq_ > low_bits(kIdSeqBits)) {
    ++unix_ms_;
    next_seq_ = 0;
  }
  return {.unix_ms = unix_ms_, .seq = next_seq_++};
}

}  // namespace ojs_shm::engine
