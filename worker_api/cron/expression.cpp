// SPDX-License-Identifier: Apache-2.0
#include "worker_api/cron/expression.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "worker_api/json/time_text.hpp"

namespace ojs_shm {
namespace {

namespace chrono = std::chrono;

constexpr std::string_view kMonths[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                        "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::string_view kWeekdays[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

struct Field {
  std::string_view name;
  unsigned low, high;
  std::span<const std::string_view> words = {};  // the first is `low`
};
constexpr Field kSecond = {"second", 0, 59}, kMinute = {"minute", 0, 59}, kHour = {"hour", 0, 23},
                kDay = {"day of month", 1, 31}, kMonth = {"month", 1, 12, kMonths},
                kWeekday = {"day of week", 0, 7, kWeekdays};

struct Short {
  std::string_view name, meaning;
};
constexpr Short kShorts[] = {{"@yearly", "0 0 1 1 *"},  {"@annually", "0 0 1 1 *"},
                             {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
                             {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
                             {"@hourly", "0 * * * *"}};

constexpr std::string_view kSpaces = " \t";

constexpr char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }

bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return upper(x) == upper(y); });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) return parts;
    at = end + 1;
  }
}

std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (true) {
    const std::size_t from = text.find_first_not_of(kSpaces);
    if (from == text.npos) return tokens;
    text.remove_prefix(from);
    const std::size_t length = std::min(text.find_first_of(kSpaces), text.size());
    tokens.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

constexpr std::uint64_t bit(unsigned value) noexcept { return std::uint64_t{1} << value; }

bool eat_last(std::string_view& text, char letter) noexcept {
  if (text.empty() || upper(text.back()) != letter) return false;
  text.remove_suffix(1);
  return true;
}

unsigned number(chrono::day day) noexcept { return static_cast<unsigned>(day); }

chrono::day last_of(chrono::year_month_day day) noexcept {
  return (day.year() / day.month() / chrono::last).day();
}

// The day from Monday to Friday that is nearest to `target` and in the same month.
unsigned nearest_workday(chrono::year_month_day month, unsigned target) noexcept {
  const unsigned last = number(last_of(month));
  if (target > last) return 0;
  const chrono::weekday weekday{
      chrono::sys_days{month.year() / month.month() / chrono::day{target}}};
  if (weekday == chrono::Saturday) return target == 1 ? 3 : target - 1;
  if (weekday == chrono::Sunday) return target == last ? target - 2 : target + 1;
  return target;
}

}  // namespace

/// Reads one expression. The first thing that is wrong ends it.
class CronReader {
 public:
  explicit CronReader(std::string_view text) : text_(text) {}

  Result<CronExpression> read() {
    if (read_all()) return expression_;
    return Error{Code::kInvalid,
                 fmt::format("cron expression \"{}\": {}", text_.substr(0, 100), wrong_)}
        .about("expression");
  }

 private:
  bool read_all() {
    std::vector<std::string_view> tokens = tokens_of(text_);
    if (tokens.empty()) return fail("it is empty; write five fields, such as \"0 9 * * *\"");
    if (tokens[0] == "@every") return read_every(tokens);
    if (tokens[0][0] == '@') {
      const auto known = std::find_if(std::begin(kShorts), std::end(kShorts), [&](const Short& it) {
        return same_word(it.name, tokens[0]);
      });
      if (known == std::end(kShorts) || tokens.size() > 1)
        return fail(
            "it is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, "
            "@hourly and @every DURATION");
      tokens = tokens_of(known->meaning);
    }
    if (tokens.size() != 5 && tokens.size() != 6)
      return fail(
          fmt::format("it has {} field{}; write five (minute, hour, day of month, month, "
                      "day of week), or six with the seconds first",
                      tokens.size(), tokens.size() == 1 ? "" : "s"));
    if (tokens.size() == 6) {
      if (!read_field(kSecond, tokens[0], expression_.seconds_)) return false;
      tokens.erase(tokens.begin());
    }
    return read_fields(tokens);
  }

  bool read_fields(const std::vector<std::string_view>& tokens) {
    expression_.any_day_ = tokens[2] == "*";
    expression_.any_weekday_ = tokens[4] == "*";
    if (!read_field(kMinute, tokens[0], expression_.minutes_) ||
        !read_field(kHour, tokens[1], expression_.hours_) ||
        !read_field(kDay, tokens[2], expression_.days_) ||
        !read_field(kMonth, tokens[3], expression_.months_) ||
        !read_field(kWeekday, tokens[4], expression_.weekdays_))
      return false;
    if (expression_.weekdays_ & bit(7)) expression_.weekdays_ |= bit(0);  // both are Sunday
    if (!expression_.comes()) return fail("none of its months has such a day");
    return true;
  }

  bool read_every(const std::vector<std::string_view>& tokens) {
    if (tokens.size() != 2 || tokens[1][0] < '0' || tokens[1][0] > '9')
      return fail("@every wants one duration, such as \"@every 1h30m\"");
    const ParsedMs parsed = parse_duration(tokens[1]);
    if (!parsed) return fail(fmt::format("\"{}\" {}", tokens[1], text_of(parsed.fault)));
    if (parsed.ms < 1'000) return fail("@every is at least a second");
    expression_.every_ms_ = parsed.ms;
    return true;
  }

  bool read_field(const Field& field, std::string_view token, std::uint64_t& bits) {
    for (const std::string_view item : split(token, ','))
      if (!read_item(field, item, bits)) return false;
    return true;
  }

  // "*", "7", "1-5", "MON", each with "/2" or without; in the fields of days also "L", "15W",
  // "5L" and "5#3".
  bool read_item(const Field& field, std::string_view item, std::uint64_t& bits) {
    if (item.empty()) return fail(field, "there is nothing between two commas, or around one");
    if (const auto special = read_special(field, item)) return *special;

    const std::size_t slash = item.find('/');
    const std::string_view range = item.substr(0, slash);
    const std::size_t dash = range.find('-');
    unsigned from = field.low, to = field.high;
    if (range != "*") {
      if (!read_value(field, range.substr(0, dash), from)) return false;
      // "5/15": from 5 on to the end.
      if (dash != range.npos) {
        if (!read_value(field, range.substr(dash + 1), to)) return false;
        if (&field == &kWeekday && to == 0 && from > 0) to = 7;
      } else if (slash == item.npos) {
        to = from;
      }
    } else if (&field == &kWeekday) {
      to = 6;
    }
    if (from > to) return fail(field, fmt::format("the range {} goes downwards", range));

    unsigned step = 1;
    if (slash != item.npos) {
      const std::string_view digits = item.substr(slash + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
      if (error != std::errc{} || end != digits.data() + digits.size() || step == 0 || step > 1'000)
        return fail(field, fmt::format("the step of {} is not a number from 1 on", item));
    }
    for (unsigned value = from; value <= to; value += step) bits |= bit(value);
    return true;
  }

  // Nothing: `item` is none of those.
  std::optional<bool> read_special(const Field& field, std::string_view item) {
    const bool day = &field == &kDay, weekday = &field == &kWeekday;
    if (!day && !weekday) return std::nullopt;
    if (day && same_word(item, "L")) return expression_.last_day_ = true;
    std::string_view rest = item;
    unsigned value = 0;
    if (day && eat_last(rest, 'W')) {
      if (!read_value(field, rest, value)) return false;
      expression_.nearest_ |= bit(value);
      return true;
    }
    if (weekday && rest.size() > 1 && eat_last(rest, 'L')) {
      if (!read_value(field, rest, value)) return false;
      expression_.lasts_ |= bit(value % 7);
      return true;
    }
    if (const std::size_t hash = item.find('#'); weekday && hash != item.npos) {
      if (!read_value(field, item.substr(0, hash), value)) return false;
      const std::string_view which = item.substr(hash + 1);
      if (which.size() != 1 || which[0] < '1' || which[0] > '5')
        return fail(field, fmt::format("{} must end with #1 to #5", item));
      expression_.counted_[value % 7] |= bit(unsigned(which[0] - '0'));
      return true;
    }
    return std::nullopt;
  }

  bool read_value(const Field& field, std::string_view text, unsigned& value) {
    for (std::size_t i = 0; i < field.words.size(); ++i)
      if (same_word(field.words[i], text)) {
        value = field.low + static_cast<unsigned>(i);
        return true;
      }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error == std::errc::invalid_argument || end != text.data() + text.size())
      return fail(field, fmt::format("\"{}\" is not a value of it", text));
    if (error != std::errc{} || value < field.low || value > field.high)
      return fail(field, fmt::format("{} is not from {} to {}", text, field.low, field.high));
    return true;
  }

  bool fail(const Field& field, std::string_view what) {
    return fail(fmt::format("{}: {}", field.name, what));
  }
  bool fail(std::string what) {
    wrong_ = std::move(what);
    return false;
  }

  std::string_view text_;
  CronExpression expression_;
  std::string wrong_;
};

Result<CronExpression> CronExpression::parse(std::string_view text) {
  return CronReader(text).read();
}

bool CronExpression::has_day_of_month(chrono::year_month_day day) const noexcept {
  if (days_ >> number(day.day()) & 1) return true;
  if (last_day_ && day.day() == last_of(day)) return true;
  for (unsigned target = 1; nearest_ >> target != 0; ++target)
    if (nearest_ >> target & 1 && nearest_workday(day, target) == number(day.day())) return true;
  return false;
}

bool CronExpression::has_weekday(chrono::year_month_day day) const noexcept {
  const unsigned weekday = chrono::weekday{chrono::sys_days{day}}.c_encoding();
  if (weekdays_ >> weekday & 1) return true;
  if (lasts_ >> weekday & 1 && number(day.day()) + 7 > number(last_of(day))) return true;
  return counted_[weekday] >> ((number(day.day()) - 1) / 7 + 1) & 1;
}

bool CronExpression::has_day(chrono::year_month_day day) const noexcept {
  if (!has_month(static_cast<unsigned>(day.month()))) return false;
  if (any_day_) return has_weekday(day);
  if (any_weekday_) return has_day_of_month(day);
  return has_day_of_month(day) || has_weekday(day);
}

bool CronExpression::comes() const noexcept {
  if (!any_weekday_ || any_day_ || last_day_) return true;
  const unsigned first = static_cast<unsigned>(std::countr_zero(days_ | nearest_));
  for (unsigned month = 1; month <= 12; ++month)
    if (has_month(month) &&
        first <= number(last_of(chrono::year{2024} / chrono::month{month} / chrono::day{1})))
      return true;
  return false;
}

}  // namespace ojs_shm
