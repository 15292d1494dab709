// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/time_text.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include <spdlog/fmt/fmt.h>

namespace ojs_shm {
namespace {

constexpr std::int64_t kSecond = 1'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
// 9999-12-31T23:59:59.999Z, where RFC 3339 ends
constexpr std::int64_t kLastMs = 253'402'300'799'999;

struct Unit {
  std::string_view symbol;
  std::int64_t ms;
};
// A duration stands nowhere in the calendar, so its years and months are as long as most of them.
constexpr Unit kIsoDateUnits[] = {
    {"Y", 365 * kDay}, {"M", 30 * kDay}, {"W", 7 * kDay}, {"D", kDay}};
constexpr Unit kIsoTimeUnits[] = {{"H", kHour}, {"M", kMinute}, {"S", kSecond}};
constexpr Unit kShortUnits[] = {
    {"d", kDay}, {"h", kHour}, {"m", kMinute}, {"s", kSecond}, {"ms", 1}};

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }

bool eat(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool eat_any_case(std::string_view& text, char upper) noexcept {
  if (text.empty() || (text[0] & ~0x20) != upper) return false;
  text.remove_prefix(1);
  return true;
}

// Exactly `count` digits.
bool eat_number(std::string_view& text, std::size_t count, int& number) noexcept {
  if (text.size() < count || !std::all_of(text.begin(), text.begin() + count, is_digit))
    return false;
  number = 0;
  for (const char c : text.substr(0, count)) number = number * 10 + (c - '0');
  text.remove_prefix(count);
  return true;
}

// The digits after a decimal point as billionths, of which nine count.
bool eat_billionths(std::string_view& text, std::int64_t& billionths) noexcept {
  billionths = 0;
  std::int64_t place = 100'000'000;
  const std::size_t before = text.size();
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1), place /= 10)
    billionths += (text[0] - '0') * place;
  return text.size() < before;
}

const Unit* unit_at_the_front(std::string_view text, std::span<const Unit> units) noexcept {
  for (const Unit& unit : units) {
    if (!text.starts_with(unit.symbol)) continue;
    const std::string_view rest = text.substr(unit.symbol.size());
    if (rest.empty() || !is_lower(rest[0])) return &unit;  // the m of "5ms" is no minute
  }
  return nullptr;
}

// Adds groups such as "12H" or "0.5S" as long as a digit follows; each unit is smaller than the one
// before.
TimeFault add_groups(std::string_view& text, std::span<const Unit> units,
                     std::int64_t& ms) noexcept {
  while (!text.empty() && is_digit(text[0])) {
    std::int64_t whole = 0;
    for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1)) {
      if (whole > kLastMs) return TimeFault::kTooLong;
      whole = whole * 10 + (text[0] - '0');
    }
    std::int64_t billionths = 0;
    const bool fraction = eat(text, ".") || eat(text, ",");
    if (fraction && !eat_billionths(text, billionths)) return TimeFault::kSyntax;

    const Unit* unit = unit_at_the_front(text, units);
    if (unit == nullptr) return TimeFault::kSyntax;
    text.remove_prefix(unit->symbol.size());
    if (fraction && !text.empty()) return TimeFault::kSyntax;
    if (whole > (kLastMs - ms) / unit->ms) return TimeFault::kTooLong;
    // in whole seconds from a day on, for billionths of a year in ms have no room
    const std::int64_t part = unit->ms < kDay ? billionths * unit->ms / 1'000'000'000
                                              : billionths * (unit->ms / 1000) / 1'000'000;
    ms += whole * unit->ms + part;
    units = units.subspan(static_cast<std::size_t>(unit - units.data()) + 1);
  }
  return TimeFault::kNone;
}

ParsedMs fault(TimeFault why) noexcept { return {.ms = 0, .fault = why}; }

ParsedMs add_iso_groups(std::string_view text) noexcept {
  std::int64_t ms = 0;
  if (text.empty()) return fault(TimeFault::kSyntax);
  if (const TimeFault why = add_groups(text, kIsoDateUnits, ms); why != TimeFault::kNone)
    return fault(why);
  if (eat(text, "T")) {
    if (text.empty()) return fault(TimeFault::kSyntax);
    if (const TimeFault why = add_groups(text, kIsoTimeUnits, ms); why != TimeFault::kNone)
      return fault(why);
  }
  return text.empty() ? ParsedMs{.ms = ms} : fault(TimeFault::kSyntax);
}

// "Z" or "+01:30", as milliseconds to take away.
TimeFault read_zone(std::string_view text, std::int64_t& offset_ms) noexcept {
  offset_ms = 0;
  if (text.empty()) return TimeFault::kNoZone;
  if (eat_any_case(text, 'Z')) return text.empty() ? TimeFault::kNone : TimeFault::kSyntax;
  const bool west = text.starts_with('-');
  int hours = 0, minutes = 0;
  if (!(eat(text, "+") || eat(text, "-")) || !eat_number(text, 2, hours) || !eat(text, ":") ||
      !eat_number(text, 2, minutes) || !text.empty())
    return TimeFault::kSyntax;
  if (hours > 23 || minutes > 59) return TimeFault::kNoSuchTime;
  offset_ms = (hours * kHour + minutes * kMinute) * (west ? -1 : 1);
  return TimeFault::kNone;
}

}  // namespace

std::string_view text_of(TimeFault fault) noexcept {
  switch (fault) {
    case TimeFault::kNone: return "is well";
    case TimeFault::kSyntax: return "is not of the expected form";
    case TimeFault::kNoZone: return "must have a time zone, such as the Z of 2026-01-27T12:00:00Z";
    case TimeFault::kNoSuchTime: return "is a time that does not exist";
    case TimeFault::kTooLong: return "is too long";
  }
  return "is wrong";
}

ParsedMs parse_timestamp(std::string_view text) noexcept {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!eat_number(text, 4, year) || !eat(text, "-") || !eat_number(text, 2, month) ||
      !eat(text, "-") || !eat_number(text, 2, day) || !eat_any_case(text, 'T') ||
      !eat_number(text, 2, hour) || !eat(text, ":") || !eat_number(text, 2, minute) ||
      !eat(text, ":") || !eat_number(text, 2, second))
    return fault(TimeFault::kSyntax);
  std::int64_t billionths = 0;
  if (eat(text, ".") && !eat_billionths(text, billionths)) return fault(TimeFault::kSyntax);
  std::int64_t offset_ms = 0;
  if (const TimeFault why = read_zone(text, offset_ms); why != TimeFault::kNone) return fault(why);

  using namespace std::chrono;
  const year_month_day date{std::chrono::year(year),
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  // Second 60, a leap second, is the first of the next minute in Unix time.
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return fault(TimeFault::kNoSuchTime);
  const std::int64_t days = sys_days(date).time_since_epoch().count();
  return {.ms = days * kDay + hour * kHour + minute * kMinute + second * kSecond +
                billionths / 1'000'000 - offset_ms};
}

ParsedMs parse_time(std::string_view text, std::int64_t now_ms) noexcept {
  if (!text.starts_with('+')) return parse_timestamp(text);
  ParsedMs parsed = parse_duration(text.substr(1));
  if (parsed) parsed.ms += now_ms;
  return parsed;
}

ParsedMs parse_duration(std::string_view text) noexcept {
  if (eat(text, "P")) return add_iso_groups(text);
  std::int64_t ms = 0;
  if (text.empty()) return fault(TimeFault::kSyntax);
  if (const TimeFault why = add_groups(text, kShortUnits, ms); why != TimeFault::kNone)
    return fault(why);
  return text.empty() ? ParsedMs{.ms = ms} : fault(TimeFault::kSyntax);
}

void append_timestamp(std::string& out, std::uint64_t unix_ms) {
  using namespace std::chrono;
  const auto ms = static_cast<std::int64_t>(std::min<std::uint64_t>(unix_ms, kLastMs));
  const year_month_day date{sys_days(days(ms / kDay))};
  const std::int64_t rest = ms % kDay;
  char text[] = "0000-00-00T00:00:00.000Z";
  const auto put = [&text](std::size_t first, std::int64_t number) {  // two digits
    text[first] = static_cast<char>('0' + number / 10);
    text[first + 1] = static_cast<char>('0' + number % 10);
  };
  const int year(date.year());
  put(0, year / 100);
  put(2, year % 100);
  put(5, static_cast<unsigned>(date.month()));
  put(8, static_cast<unsigned>(date.day()));
  put(11, rest / kHour);
  put(14, rest % kHour / kMinute);
  put(17, rest % kMinute / kSecond);
  put(20, rest % kSecond / 10);
  text[22] = static_cast<char>('0' + rest % 10);
  out.append(text, sizeof text - 1);
}

std::string print_timestamp(std::uint64_t unix_ms) {
  std::string text;
  append_timestamp(text, unix_ms);
  return text;
}

std::string print_duration(std::uint64_t duration_ms) {
  auto rest = static_cast<std::int64_t>(std::min<std::uint64_t>(duration_ms, kLastMs));
  if (rest == 0) return "PT0S";
  std::string text = "P";
  const auto put = [&text](std::int64_t number, std::string_view unit) {
    if (number != 0) text.append(std::to_string(number)).append(unit);
  };
  put(rest / kDay, "D");
  rest %= kDay;
  if (rest == 0) return text;
  text += 'T';
  put(rest / kHour, "H");
  put(rest % kHour / kMinute, "M");
  rest %= kMinute;
  if (rest == 0) return text;
  text += std::to_string(rest / kSecond);
  if (rest % kSecond != 0) {
    text += fmt::format(".{:03}", rest % kSecond);
    text.resize(text.find_last_not_of('0') + 1);
  }
  return text += 'S';
}

}  // namespace ojs_shm
