// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ojs_shm {

/// Why a text is no time or no duration.
enum class TimeFault : std::uint8_t {
  kNone,
  kSyntax,
  kNoZone,      ///< a timestamp that does not say where; it must not be guessed
  kNoSuchTime,  ///< 30 February, 25 o'clock
  kTooLong,
};
/// The rest of a sentence that begins with the member's name, such as "must have a time zone, ...".
std::string_view text_of(TimeFault fault) noexcept;

struct ParsedMs {
  std::int64_t ms = 0;
  TimeFault fault = TimeFault::kNone;

  explicit operator bool() const noexcept { return fault == TimeFault::kNone; }
};

/// RFC 3339 ("2026-01-27T12:00:00.250Z", any offset, any number of decimals of which three count)
/// to Unix time.
ParsedMs parse_timestamp(std::string_view text) noexcept;

/// The same, or a duration from now on: "+PT2S".
ParsedMs parse_time(std::string_view text, std::int64_t now_ms) noexcept;

/// ISO 8601 ("PT1S", "PT0.2S", "P1D", "P1W", "P1DT2H30M") or short ("250ms", "1s", "5m", "1h30m",
/// "2d"). Only the last number may have decimals; what is below a millisecond is cut off. Never
/// negative.
ParsedMs parse_duration(std::string_view text) noexcept;

/// "2026-01-27T12:00:00.250Z". Whatever lies beyond the year 9999 prints as its last millisecond.
std::string print_timestamp(std::uint64_t unix_ms);
void append_timestamp(std::string& out, std::uint64_t unix_ms);

/// "PT0.2S", "PT5M", "P1DT1S"; "PT0S" for nothing.
std::string print_duration(std::uint64_t ms);

}  // namespace ojs_shm
