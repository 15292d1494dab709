// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ojs_shm::engine {

/// A job's id: the 128 bits of a UUIDv7 as two numbers, so that the order of ids is the order of
/// these.
struct JobId {
  std::uint64_t hi = 0, lo = 0;

  friend constexpr bool operator==(const JobId&, const JobId&) = default;
  friend constexpr std::strong_ordering operator<=>(const JobId&, const JobId&) = default;
};

inline constexpr std::size_t kJobIdLength = 36;

/// Reads "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f": lower case, version 7, variant 10, nothing around
/// it. Source: RFC 9562; ojs-core 5.1.
std::optional<JobId> parse_id(std::string_view text) noexcept;

/// Writes the 36 characters, and no terminating zero.
void print_id(JobId id, std::span<char, kJobIdLength> out) noexcept;
std::string to_string(JobId id);

inline constexpr unsigned kIdSeqBits = 18;
inline constexpr unsigned kIdSlotBits = 24;

/// What an id made here says about itself.
///
///     hi  63         16 15 12 11         0   lo  63 62 61      56 55                         0
///        | unix_ms 48   | 7   | seq 17..6 |      | 10  | seq 5..0 | (slot, generation) ^ salt |
///
/// The slot has 24 bits, the generation 32.
/// The salt hides from clients how many slots there are and how often they turn over; it is the
/// segment's own.
struct IdParts {
  std::uint64_t unix_ms = 0;
  std::uint32_t seq = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;

  friend constexpr bool operator==(const IdParts&, const IdParts&) = default;
};

/// Strictly increasing in (unix_ms, seq). Bits beyond a part's width are cut off.
inline JobId make_id(std::uint64_t unix_ms, std::uint32_t seq18, std::uint32_t slot24,
                     std::uint32_t generation32, std::uint64_t salt56) noexcept {
  const auto low = [](std::uint64_t word, unsigned bits) {
    return word & ((std::uint64_t{1} << bits) - 1);
  };
  const std::uint64_t place = std::uint64_t{slot24} << 32 | generation32;
  return {.hi = unix_ms << 16 | std::uint64_t{7} << 12 | low(seq18 >> 6, kIdSeqBits - 6),
          .lo = std::uint64_t{2} << 62 | low(seq18, 6) << 56 | low(place ^ salt56, 56)};
}

/// The parts of an id of ours; of a client's id some numbers that mean nothing, so compare the id
/// with the one the slot holds. Nothing when it is no UUIDv7.
std::optional<IdParts> parts(JobId id, std::uint64_t salt56) noexcept;

/// Hands out (unix_ms, seq) pairs that only grow: when the clock stands or steps back, and when a
/// millisecond's 2^18 numbers are used up (then it runs ahead of the clock by one). Not
/// thread-safe: one for each producer.
class IdClock {
 public:
  struct Stamp {
    std::uint64_t unix_ms = 0;
    std::uint32_t seq = 0;

    friend constexpr auto operator<=>(const Stamp&, const Stamp&) = default;
  };
  Stamp next(std::uint64_t now_ms) noexcept {
    if (now_ms > unix_ms_) {
      unix_ms_ = now_ms;
      next_seq_ = 0;
    } else if (next_seq_ >> kIdSeqBits != 0) [[unlikely]] {
      ++unix_ms_;
      next_seq_ = 0;
    }
    return {.unix_ms = unix_ms_, .seq = next_seq_++};
  }

 private:
  std::uint64_t unix_ms_ = 0;
  std::uint32_t next_seq_ = 0;
};

}  // namespace ojs_shm::engine
