// SPDX-License-Identifier: Apache-2.0
#include "worker_api/cron/schedule.hpp"

#include <chrono>
#include <utility>

namespace ojs_shm {
namespace {

namespace chrono = std::chrono;

constexpr std::int64_t kDaySeconds = 86'400;
constexpr chrono::days kHorizon{40 * 366};

}  // namespace

Result<CronSchedule> CronSchedule::read(std::string_view expression, std::string_view timezone) {
  auto parsed = CronExpression::parse(expression);
  if (!parsed) return parsed.error();
  auto zone = Zone::find(timezone);
  if (!zone) return zone.error();
  CronSchedule schedule;
  schedule.expression_ = *parsed;
  schedule.zone_ = *zone;
  return schedule;
}

std::optional<std::int64_t> CronSchedule::next_after(std::int64_t time_ms) const {
  if (expression_.every_ms() != 0) return time_ms + expression_.every_ms();

  const auto after = chrono::floor<chrono::seconds>(chrono::milliseconds{time_ms}).count();
  // What the wall shows now and showed before has had its first time.
  const chrono::seconds wall{zone_.wall_at(after) + 1};
  const chrono::sys_days today{chrono::floor<chrono::days>(wall)};
  std::int64_t from = (wall - today.time_since_epoch()).count();

  for (chrono::sys_days day = today; day < today + kHorizon; from = 0) {
    const chrono::year_month_day date{day};
    if (!expression_.has_month(static_cast<unsigned>(date.month()))) {
      day = chrono::sys_days{(date.year() / date.month() + chrono::months{1}) / chrono::day{1}};
      continue;
    }
    if (expression_.has_day(date))
      if (const auto time = next_on(day, from, after)) return *time * 1'000;
    day += chrono::days{1};
  }
  return std::nullopt;
}

// From that second of that day on.
std::optional<std::int64_t> CronSchedule::next_on(chrono::sys_days day, std::int64_t from_second,
                                                  std::int64_t after) const {
  const std::int64_t midnight = day.time_since_epoch().count() * kDaySeconds;
  for (unsigned hour = 0; hour < 24; ++hour) {
    if (!(expression_.hours() >> hour & 1) || (hour + 1) * 3'600 <= from_second) continue;
    for (unsigned minute = 0; minute < 60; ++minute) {
      if (!(expression_.minutes() >> minute & 1)) continue;
      for (unsigned second = 0; second < 60; ++second) {
        const std::int64_t of_day = hour * 3'600 + minute * 60 + second;
        if (!(expression_.seconds() >> second & 1) || of_day < from_second) continue;
        const auto time = zone_.first_time_of(midnight + of_day);
        if (time && *time > after) return time;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ojs_shm
