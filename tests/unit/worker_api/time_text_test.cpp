// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/time_text.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/seed.hpp"

namespace ojs_shm {
namespace {

// 2026-01-27T12:00:00Z, as `date -u -d @1769515200` says
constexpr std::int64_t kNow = 1'769'515'200'000;

TEST(Timestamp, utc_with_and_without_decimals) {
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00Z").ms, 0);
  EXPECT_EQ(parse_timestamp("2026-01-27T12:00:00Z").ms, kNow);
  EXPECT_EQ(parse_timestamp("2026-01-27T12:00:00.250Z").ms, kNow + 250);
  EXPECT_EQ(parse_timestamp("2026-01-27T12:00:00.2Z").ms, kNow + 200);
  EXPECT_EQ(parse_timestamp("2026-01-27T12:00:00.999999999999Z").ms, kNow + 999);
  EXPECT_EQ(parse_timestamp("2026-01-27t12:00:00z").ms, kNow);
  EXPECT_EQ(parse_timestamp("1969-12-31T23:59:59.999Z").ms, -1);
  EXPECT_EQ(parse_timestamp("2099-12-31T23:59:59Z").ms, 4'102'444'799'000);
}

TEST(Timestamp, offsets_are_taken_away) {
  EXPECT_EQ(parse_timestamp("2026-01-27T13:30:00+01:30").ms, kNow);
  EXPECT_EQ(parse_timestamp("2026-01-27T07:00:00-05:00").ms, kNow);
  EXPECT_EQ(parse_timestamp("2026-01-27T12:00:00-00:00").ms, kNow);
}

TEST(Timestamp, leap_years_and_leap_seconds) {
  EXPECT_TRUE(parse_timestamp("2024-02-29T00:00:00Z"));
  EXPECT_EQ(parse_timestamp("2025-02-29T00:00:00Z").fault, TimeFault::kNoSuchTime);
  EXPECT_EQ(parse_timestamp("2100-02-29T00:00:00Z").fault, TimeFault::kNoSuchTime);
  EXPECT_EQ(parse_timestamp("2016-12-31T23:59:60Z").ms, parse_timestamp("2017-01-01T00:00:00Z").ms);
}

TEST(Timestamp, without_a_zone_it_is_an_error_of_its_own) {
  for (const std::string_view text : {"2026-01-27T12:00:00", "2026-01-27T12:00:00.250"})
    EXPECT_EQ(parse_timestamp(text).fault, TimeFault::kNoZone) << text;
}

TEST(Timestamp, times_that_do_not_exist) {
  for (const std::string_view text :
       {"2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z", "2026-01-27T24:00:00Z", "2026-01-27T12:60:00Z",
        "2026-01-27T12:00:61Z", "2026-01-27T12:00:00+24:00"})
    EXPECT_EQ(parse_timestamp(text).fault, TimeFault::kNoSuchTime) << text;
}

TEST(Timestamp, other_texts_are_no_times) {
  for (const std::string_view text :
       {"", "tomorrow", "1769515200", "2026-01-27", "2026-01-27 12:00:00Z", "26-01-27T12:00:00Z",
        "2026-1-27T12:00:00Z", "2026-01-27T12:00Z", "2026-01-27T12:00:00.Z",
        "2026-01-27T12:00:00ZZ", "2026-01-27T12:00:00+0100", "2026-01-27T12:00:00+01",
        "2026-01-27T12:00:00 Z", " 2026-01-27T12:00:00Z", "-026-01-27T12:00:00Z", "+PT2S"})
    EXPECT_EQ(parse_timestamp(text).fault, TimeFault::kSyntax) << text;
}

TEST(Timestamp, prints_milliseconds_and_Z) {
  EXPECT_EQ(print_timestamp(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(print_timestamp(kNow + 7), "2026-01-27T12:00:00.007Z");
  EXPECT_EQ(print_timestamp(~std::uint64_t{0}), "9999-12-31T23:59:59.999Z");
}

TEST(Timestamp, any_printed_time_reads_back) {
  test::Seeded random;
  for (int i = 0; i < 50'000; ++i) {
    const std::int64_t ms = random.between(0, 253'402'300'799'999);
    ASSERT_EQ(parse_timestamp(print_timestamp(static_cast<std::uint64_t>(ms))).ms, ms);
  }
}

TEST(Time, relative_times_count_from_now) {
  EXPECT_EQ(parse_time("+PT2S", kNow).ms, kNow + 2'000);
  EXPECT_EQ(parse_time("+250ms", kNow).ms, kNow + 250);
  EXPECT_EQ(parse_time("2026-01-27T12:00:00Z", 5).ms, kNow);
  EXPECT_EQ(parse_time("+", kNow).fault, TimeFault::kSyntax);
  EXPECT_EQ(parse_time("PT2S", kNow).fault, TimeFault::kSyntax);
  EXPECT_EQ(parse_time("-PT2S", kNow).fault, TimeFault::kSyntax);
  EXPECT_EQ(parse_time("2026-01-27T12:00:00", kNow).fault, TimeFault::kNoZone);
}

TEST(Duration, both_styles) {
  const std::pair<std::string_view, std::int64_t> durations[] = {{"PT1S", 1'000},
                                                                 {"PT0.2S", 200},
                                                                 {"PT0,5S", 500},
                                                                 {"P1D", 86'400'000},
                                                                 {"P1W", 604'800'000},
                                                                 {"PT5M", 300'000},
                                                                 {"PT24H", 86'400'000},
                                                                 {"P1DT2H30M", 95'400'000},
                                                                 {"PT1.5H", 5'400'000},
                                                                 {"PT0S", 0},
                                                                 {"PT1M0.001S", 60'001},
                                                                 {"PT0.0009S", 0},
                                                                 {"P2W3D", 1'468'800'000},
                                                                 {"250ms", 250},
                                                                 {"1s", 1'000},
                                                                 {"5m", 300'000},
                                                                 {"2h", 7'200'000},
                                                                 {"1d", 86'400'000},
                                                                 {"1h30m", 5'400'000},
                                                                 {"1.5s", 1'500},
                                                                 {"1m250ms", 60'250},
                                                                 {"0s", 0}};
  for (const auto& [text, ms] : durations) {
    EXPECT_EQ(parse_duration(text).fault, TimeFault::kNone) << text;
    EXPECT_EQ(parse_duration(text).ms, ms) << text;
  }
}

TEST(Duration, other_texts_are_no_durations) {
  for (const std::string_view text :
       {"",      "P",     "PT",       "P1DT",     "1",    "S",     "PT1",   "PTS",
        "P1S",   "PT1D",  "PT1S2M",   "PT1S1S",   "pt1s", "PT-1S", "-PT1S", "+PT1S",
        "PT.5S", "PT1.S", "PT1.5M1S", "P0.5DT1H", "1x",   "1sm",   "1m1h",  "1 s",
        "-1s",   "1s ",   "PT1S ",    "10",       "ms",   "PT1sS", "1mss"})
    EXPECT_EQ(parse_duration(text).fault, TimeFault::kSyntax) << text;
}

TEST(Duration, a_year_has_365_days_and_a_month_30) {
  constexpr std::int64_t kDay = 86'400'000;
  EXPECT_EQ(parse_duration("P1Y").ms, 365 * kDay);
  EXPECT_EQ(parse_duration("P1M").ms, 30 * kDay);
  EXPECT_EQ(parse_duration("P1Y2M3DT1S").ms, (365 + 60 + 3) * kDay + 1000);
  EXPECT_EQ(parse_duration("P0.5Y").ms, 365 * kDay / 2);
  for (const std::string_view text : {"P1M1Y", "P1D1M", "P1Y1Y", "PT1Y", "P1y"})
    EXPECT_EQ(parse_duration(text).fault, TimeFault::kSyntax) << text;
  EXPECT_EQ(parse_duration("P8000Y").fault, TimeFault::kNone);
  EXPECT_EQ(parse_duration("P99999Y").fault, TimeFault::kTooLong);
}

TEST(Duration, too_long_is_told_and_never_overflows) {
  for (const std::string_view text :
       {"P99999999999999999999D", "PT253402300800S", "PT18446744073709551617S", "P15250284452472W",
        "999999999999999999d", "P2932897D", "P2932896DT24H"})
    EXPECT_EQ(parse_duration(text).fault, TimeFault::kTooLong) << text;
  EXPECT_EQ(parse_duration("P2932896DT23H59M59.999S").ms, 253'402'300'799'999);
}

TEST(Duration, prints_the_shortest_iso_form) {
  EXPECT_EQ(print_duration(0), "PT0S");
  EXPECT_EQ(print_duration(200), "PT0.2S");
  EXPECT_EQ(print_duration(1'000), "PT1S");
  EXPECT_EQ(print_duration(300'000), "PT5M");
  EXPECT_EQ(print_duration(3'600'001), "PT1H0.001S");
  EXPECT_EQ(print_duration(86'400'000), "P1D");
  EXPECT_EQ(print_duration(95'410'000), "P1DT2H30M10S");
}

TEST(Duration, any_printed_duration_reads_back) {
  test::Seeded random;
  for (int i = 0; i < 50'000; ++i) {
    const std::int64_t ms = random.between(0, std::int64_t{1} << random.between(0, 47));
    ASSERT_EQ(parse_duration(print_duration(static_cast<std::uint64_t>(ms))).ms, ms);
  }
}

// Texts made of what times are made of: none of them may crash, overflow or give a negative
// duration.
TEST(Duration, any_text_is_read_or_refused) {
  test::Seeded random;
  constexpr std::string_view kLetters = "PTWDHMSYdhms0123456789.,+-:Z ";
  for (int i = 0; i < 200'000; ++i) {
    std::string text(static_cast<std::size_t>(random.between(0, 24)), ' ');
    for (char& c : text)
      c = kLetters[static_cast<std::size_t>(random.between(0, std::ssize(kLetters) - 1))];
    ASSERT_GE(parse_duration(text).ms, 0) << text;
    (void)parse_time(text, kNow);
    (void)parse_duration("P" + text);
  }
}

TEST(TimeFault, each_has_a_text_of_its_own) {
  EXPECT_NE(text_of(TimeFault::kNoZone).find("zone"), std::string_view::npos);
  EXPECT_NE(text_of(TimeFault::kSyntax), text_of(TimeFault::kTooLong));
}

}  // namespace
}  // namespace ojs_shm
