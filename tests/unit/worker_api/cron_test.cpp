// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "worker_api/cron/schedule.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::int64_t at(std::string_view time) { return parse_timestamp(time).ms; }

/// The next times after `from`, without their milliseconds.
std::vector<std::string> next(std::string_view expression, std::string_view from, int count,
                              std::string_view zone = "UTC") {
  const auto schedule = CronSchedule::read(expression, zone);
  EXPECT_TRUE(schedule) << (schedule ? "" : schedule.error().message);
  std::vector<std::string> times;
  if (!schedule) return times;
  std::optional<std::int64_t> time = at(from);
  for (; count > 0 && (time = schedule->next_after(*time)); --count)
    times.push_back(print_timestamp(static_cast<std::uint64_t>(*time)).substr(0, 19));
  return times;
}

Error refused(std::string_view expression, std::string_view zone = "UTC") {
  const auto schedule = CronSchedule::read(expression, zone);
  EXPECT_FALSE(schedule) << expression << " in " << zone;
  return schedule ? Error{} : schedule.error();
}

TEST(Cron, stars_lists_ranges_and_steps) {
  EXPECT_THAT(next("* * * * *", "2026-02-12T10:59:30Z", 2),
              ElementsAre("2026-02-12T11:00:00", "2026-02-12T11:01:00"));
  EXPECT_THAT(next("*/15 9-10 * * *", "2026-02-12T09:30:00Z", 4),
              ElementsAre("2026-02-12T09:45:00", "2026-02-12T10:00:00", "2026-02-12T10:15:00",
                          "2026-02-12T10:30:00"));
  EXPECT_THAT(next("5,1 0 1,15 * *", "2026-02-12T00:00:00Z", 3),
              ElementsAre("2026-02-15T00:01:00", "2026-02-15T00:05:00", "2026-03-01T00:01:00"));
  EXPECT_THAT(next("10-40/15 0 * * *", "2026-02-12T00:00:00Z", 3),
              ElementsAre("2026-02-12T00:10:00", "2026-02-12T00:25:00", "2026-02-12T00:40:00"));
  EXPECT_THAT(next("50/5 0 * * *", "2026-02-12T00:00:00Z", 2),
              ElementsAre("2026-02-12T00:50:00", "2026-02-12T00:55:00"));
}

TEST(Cron, the_next_time_is_later_than_the_given_one) {
  EXPECT_THAT(next("0 9 * * *", "2026-02-12T08:59:59.999Z", 1), ElementsAre("2026-02-12T09:00:00"));
  EXPECT_THAT(next("0 9 * * *", "2026-02-12T09:00:00Z", 1), ElementsAre("2026-02-13T09:00:00"));
  EXPECT_THAT(next("0 9 * * *", "2026-02-12T09:00:00.001Z", 1), ElementsAre("2026-02-13T09:00:00"));
}

TEST(Cron, names_of_months_and_weekdays_in_any_case) {
  EXPECT_THAT(next("0 0 1 jan,JUL *", "2026-02-12T00:00:00Z", 2),
              ElementsAre("2026-07-01T00:00:00", "2027-01-01T00:00:00"));
  // 2026-02-12 is a Thursday.
  EXPECT_THAT(next("0 9 * * Mon-FRI", "2026-02-12T12:00:00Z", 2),
              ElementsAre("2026-02-13T09:00:00", "2026-02-16T09:00:00"));
  EXPECT_THAT(next("0 9 * * SAT-SUN", "2026-02-12T12:00:00Z", 3),
              ElementsAre("2026-02-14T09:00:00", "2026-02-15T09:00:00", "2026-02-21T09:00:00"));
}

TEST(Cron, zero_and_seven_are_sunday) {
  for (const char* expression : {"0 0 * * 0", "0 0 * * 7", "0 0 * * SUN", "@weekly"})
    EXPECT_THAT(next(expression, "2026-02-12T00:00:00Z", 2),
                ElementsAre("2026-02-15T00:00:00", "2026-02-22T00:00:00"))
        << expression;
  EXPECT_THAT(next("0 0 * * 5-7", "2026-02-12T00:00:00Z", 4),
              ElementsAre("2026-02-13T00:00:00", "2026-02-14T00:00:00", "2026-02-15T00:00:00",
                          "2026-02-20T00:00:00"));
}

TEST(Cron, a_day_of_the_month_or_a_day_of_the_week) {
  EXPECT_THAT(next("0 0 13 * FRI", "2026-02-01T00:00:00Z", 4),
              ElementsAre("2026-02-06T00:00:00", "2026-02-13T00:00:00", "2026-02-20T00:00:00",
                          "2026-02-27T00:00:00"));
  EXPECT_THAT(next("0 0 15 * FRI", "2026-02-13T12:00:00Z", 2),
              ElementsAre("2026-02-15T00:00:00", "2026-02-20T00:00:00"));
}

TEST(Cron, short_forms) {
  for (const char* expression : {"@yearly", "@annually"})
    EXPECT_THAT(next(expression, "2026-02-12T00:00:00Z", 1), ElementsAre("2027-01-01T00:00:00"));
  EXPECT_THAT(next("@monthly", "2026-02-12T00:00:00Z", 1), ElementsAre("2026-03-01T00:00:00"));
  for (const char* expression : {"@daily", "@midnight", "@DAILY"})
    EXPECT_THAT(next(expression, "2026-02-12T01:00:00Z", 1), ElementsAre("2026-02-13T00:00:00"));
  EXPECT_THAT(next("@hourly", "2026-02-12T01:30:00Z", 1), ElementsAre("2026-02-12T02:00:00"));
  EXPECT_THAT(next("@every 1h30m", "2026-02-12T01:00:07Z", 2),
              ElementsAre("2026-02-12T02:30:07", "2026-02-12T04:00:07"));
}

TEST(Cron, six_fields_have_the_seconds_first) {
  EXPECT_THAT(next("*/20 0 12 * * *", "2026-02-12T00:00:00Z", 4),
              ElementsAre("2026-02-12T12:00:00", "2026-02-12T12:00:20", "2026-02-12T12:00:40",
                          "2026-02-13T12:00:00"));
}

TEST(Cron, last_days_nearest_workdays_and_counted_weekdays) {
  EXPECT_THAT(next("0 23 L * *", "2028-01-31T23:00:00Z", 2),
              ElementsAre("2028-02-29T23:00:00", "2028-03-31T23:00:00"));
  // 2026-02-15 is a Sunday, 2026-08-01 a Saturday, 2026-05-31 a Sunday.
  EXPECT_THAT(next("0 0 15W * *", "2026-02-01T00:00:00Z", 1), ElementsAre("2026-02-16T00:00:00"));
  EXPECT_THAT(next("0 0 1W 8 *", "2026-02-01T00:00:00Z", 1), ElementsAre("2026-08-03T00:00:00"));
  EXPECT_THAT(next("0 0 31W 5 *", "2026-02-01T00:00:00Z", 1), ElementsAre("2026-05-29T00:00:00"));
  EXPECT_THAT(next("0 0 * * 5#3", "2026-02-01T00:00:00Z", 2),
              ElementsAre("2026-02-20T00:00:00", "2026-03-20T00:00:00"));
  EXPECT_THAT(next("0 0 * * SUN#5", "2026-02-01T00:00:00Z", 1), ElementsAre("2026-03-29T00:00:00"));
  EXPECT_THAT(next("0 0 * * 5L", "2026-02-01T00:00:00Z", 2),
              ElementsAre("2026-02-27T00:00:00", "2026-03-27T00:00:00"));
}

TEST(Cron, days_that_only_some_months_and_years_have) {
  EXPECT_THAT(next("0 0 31 * *", "2026-01-31T00:00:00Z", 2),
              ElementsAre("2026-03-31T00:00:00", "2026-05-31T00:00:00"));
  EXPECT_THAT(next("0 0 29 2 *", "2096-02-29T00:00:00Z", 1), ElementsAre("2104-02-29T00:00:00"));
}

TEST(Cron, a_time_that_clocks_jump_over_does_not_come) {
  // 2026-03-08: New York goes from 2:00 to 3:00.
  EXPECT_THAT(next("30 2 * * *", "2026-03-07T00:00:00Z", 3, "America/New_York"),
              ElementsAre("2026-03-07T07:30:00", "2026-03-09T06:30:00", "2026-03-10T06:30:00"));
  EXPECT_THAT(next("*/30 1-3 8 3 *", "2026-03-08T00:00:00Z", 4, "America/New_York"),
              ElementsAre("2026-03-08T06:00:00", "2026-03-08T06:30:00", "2026-03-08T07:00:00",
                          "2026-03-08T07:30:00"));
}

TEST(Cron, a_time_that_clocks_show_twice_comes_once_the_first_time) {
  // 2026-11-01: New York goes from 2:00 back to 1:00.
  EXPECT_THAT(next("30 1 * * *", "2026-10-31T12:00:00Z", 2, "America/New_York"),
              ElementsAre("2026-11-01T05:30:00", "2026-11-02T06:30:00"));
  EXPECT_THAT(next("*/30 * * * *", "2026-11-01T05:00:00Z", 2, "America/New_York"),
              ElementsAre("2026-11-01T05:30:00", "2026-11-01T07:00:00"));
  // Asked within the second time.
  EXPECT_THAT(next("45 1 * * *", "2026-11-01T06:10:00Z", 1, "America/New_York"),
              ElementsAre("2026-11-02T06:45:00"));
}

TEST(Cron, zones_keep_their_rules_in_years_to_come) {
  EXPECT_THAT(next("0 9 1 1,7 *", "2036-01-01T12:00:00Z", 2, "Europe/Berlin"),
              ElementsAre("2036-07-01T07:00:00", "2037-01-01T08:00:00"));
}

TEST(Cron, errors_name_the_field_and_what_is_wrong_in_it) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "it is empty"},
      {"  ", "it is empty"},
      {"not a valid cron", "it has 4 fields"},
      {"0 0 0 0 0 0 0", "it has 7 fields"},
      {"99 25 32 13 8", "minute: 99 is not from 0 to 59"},
      {"0 24 * * *", "hour: 24 is not from 0 to 23"},
      {"0 0 32 * *", "day of month: 32 is not from 1 to 31"},
      {"0 0 0 * *", "day of month: 0 is not from 1 to 31"},
      {"0 0 * 13 *", "month: 13 is not from 1 to 12"},
      {"0 0 * * 8", "day of week: 8 is not from 0 to 7"},
      {"*/0 * * * *", "minute: the step of */0"},
      {"*/ * * * *", "minute: the step of */"},
      {"*/-1 * * * *", "minute: the step"},
      {"*/x * * * *", "minute: the step of */x"},
      {"30-10 * * * *", "minute: the range 30-10 goes downwards"},
      {"1- * * * *", "minute: \"\" is not a value"},
      {"-1 * * * *", "minute: \"\" is not a value"},
      {"1,,2 * * * *", "minute: there is nothing between two commas"},
      {"+1 * * * *", "minute: \"+1\" is not a value"},
      {"1.5 * * * *", "minute: \"1.5\" is not a value"},
      {"99999999999999999999 * * * *", "minute: 99999999999999999999 is not from"},
      {"0 0 * JANUARY *", "month: \"JANUARY\" is not a value"},
      {"MON * * * *", "minute: \"MON\" is not a value"},
      {"L * * * *", "minute: \"L\" is not a value"},
      {"0 0 * * 5#6", "day of week: 5#6 must end with #1 to #5"},
      {"0 0 30 2 *", "none of its months has such a day"},
      {"0 0 31 2,4,6,9,11 *", "none of its months"},
      {"@dayly", "it is none of @yearly"},
      {"@daily 5", "it is none of @yearly"},
      {"@every", "@every wants one duration"},
      {"@every 500ms", "@every is at least a second"},
      {"@every -5m", "@every wants one duration"},
  };
  for (const auto& [expression, message] : wrong) {
    const Error error = refused(expression);
    EXPECT_EQ(error.code, Code::kInvalid) << expression;
    EXPECT_EQ(error.subject, "expression");
    EXPECT_THAT(error.message, HasSubstr(message));
  }
}

TEST(Cron, zones_are_names_of_places) {
  for (const char* zone : {"", "UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Ushuaia"})
    EXPECT_TRUE(CronSchedule::read("@daily", zone)) << zone;
  for (const char* zone :
       {"+05:00", "-08:00", "UTC+5", "EST", "PST", "CST", "CET", "EST5EDT", "Mars/Olympus", "utc",
        "europe/berlin", "right/Europe/Berlin", "../../etc/passwd", "/etc/localtime", "GMT+0"}) {
    const Error error = refused("@daily", zone);
    EXPECT_EQ(error.code, Code::kInvalid) << zone;
    EXPECT_EQ(error.subject, "timezone");
    EXPECT_THAT(error.message, HasSubstr("\"" + std::string(zone) + "\""));
  }
}

}  // namespace
}  // namespace ojs_shm
