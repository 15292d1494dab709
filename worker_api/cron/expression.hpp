// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include <ojs_shm/result.hpp>

namespace ojs_shm {

/// When a cron fires, as its expression says: which seconds, minutes and hours of which days, on
/// the clock of a wall. A value v of a field is in it when bit v is set.
class CronExpression {
 public:
  /// "0 9 * * MON-FRI", six fields with the seconds first, "@daily" and its like, "@every 90s".
  /// Errors: kInvalid, whose message names the field and what is wrong in it.
  static Result<CronExpression> parse(std::string_view text);

  /// "@every": the time between two; else 0.
  std::int64_t every_ms() const noexcept { return every_ms_; }
  bool has_month(unsigned month) const noexcept { return months_ >> month & 1; }
  /// Whether it fires on that day. When both day fields say something, either may choose the day.
  bool has_day(std::chrono::year_month_day day) const noexcept;
  std::uint64_t hours() const noexcept { return hours_; }
  std::uint64_t minutes() const noexcept { return minutes_; }
  std::uint64_t seconds() const noexcept { return seconds_; }

 private:
  friend class CronReader;
  bool has_day_of_month(std::chrono::year_month_day day) const noexcept;
  bool has_weekday(std::chrono::year_month_day day) const noexcept;
  /// Whether there is a year with such a day.
  bool comes() const noexcept;

  std::int64_t every_ms_ = 0;
  std::uint64_t seconds_ = 1, minutes_ = 0, hours_ = 0, months_ = 0;
  std::uint64_t days_ = 0, nearest_ = 0;       // of the month; the weekday nearest to one ("15W")
  std::uint64_t weekdays_ = 0, lasts_ = 0;     // Sunday is 0; the last of its month ("5L")
  std::array<std::uint64_t, 7> counted_ = {};  // of each weekday: which of its month ("5#3")
  bool last_day_ = false;                      // of the month ("L")
  bool any_day_ = false, any_weekday_ = false;
};

}  // namespace ojs_shm
