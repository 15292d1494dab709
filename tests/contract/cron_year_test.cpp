// SPDX-License-Identifier: Apache-2.0
//
// Crons of a year in twenty zones agree with what croniter and zoneinfo compute.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "tests/support/process.hpp"
#include "worker_api/cron/schedule.hpp"

namespace ojs_shm::test {
namespace {

// The year 2026, a day longer on both sides than that of any zone.
constexpr std::int64_t kBefore = 1'767'139'200'000, kBehind = 1'798'848'000'000;

TEST(CronYear, a_year_of_twenty_zones_agrees_with_another_reckoning) {
  if (run({"/usr/bin/python3", "-c", "import croniter, zoneinfo"}).exit_code != 0)
    GTEST_SKIP() << "NOT RUN: there is no croniter for Python";
  const Finished told =
      run({"/usr/bin/python3", OJS_SHM_SOURCE_DIR "/tests/contract/cron_year.py", "2026"});
  ASSERT_EQ(told.exit_code, 0) << told.err;

  std::set<std::string> zones;
  std::size_t times = 0;
  std::istringstream lines(told.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    const std::string zone = line.substr(0, first);
    const std::string expression = line.substr(first + 1, second - first - 1);
    zones.insert(zone);
    const auto schedule = CronSchedule::read(expression, zone);
    ASSERT_TRUE(schedule) << schedule.error().message;

    std::istringstream expected(line.substr(second + 1));
    std::int64_t seconds = 0, now = kBefore;
    bool first_time = true;
    for (; expected >> seconds; now = seconds * 1'000, first_time = false, ++times) {
      // What comes before the zone's year is not in the list.
      if (first_time) now = seconds * 1'000 - 1;
      ASSERT_EQ(schedule->next_after(now).value_or(0), seconds * 1'000)
          << expression << " in " << zone << " after " << now;
    }
    if (first_time) {
      EXPECT_GT(schedule->next_after(kBefore), kBehind) << expression << " in " << zone;
    }
  }
  EXPECT_GE(zones.size(), 20u);
  EXPECT_GT(times, 500'000u);
}

}  // namespace
}  // namespace ojs_shm::test
