// SPDX-License-Identifier: Apache-2.0
//
// Crons of a year in twenty zones agree with what croniter and zoneinfo compute: the times that a
// schedule tells, and those at which a segment on a moved clock makes jobs.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/cron/schedule.hpp"
#include "worker_api/roles/cron_keeper.hpp"

namespace ojs_shm::test {
namespace {

// The year 2026, a day longer on both sides than that of any zone.
constexpr std::int64_t kBefore = 1'767'139'200'000, kBehind = 1'798'848'000'000;

class CronYear : public testing::Test {
 protected:
  void SetUp() override {
    if (run({"/usr/bin/python3", "-c", "import croniter, zoneinfo"}).exit_code != 0)
      GTEST_SKIP() << "NOT RUN: there is no croniter for Python";
    const Finished told =
        Process::start(
            {"/usr/bin/python3", OJS_SHM_SOURCE_DIR "/tests/contract/cron_year.py", "2026"})
            .wait(std::chrono::minutes(5));
    ASSERT_EQ(told.exit_code, 0) << told.err;
    reference_.str(told.out);
  }
  std::istringstream reference_;
};

TEST_F(CronYear, a_year_of_twenty_zones_agrees_with_another_reckoning) {
  std::set<std::string> zones;
  std::size_t times = 0;
  for (std::string line; std::getline(reference_, line);) {
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

/// Each job comes in the millisecond that the reference says, no other does, and each comes once.
TEST_F(CronYear, a_segment_makes_the_jobs_of_a_year_on_a_moved_clock) {
  // Those that fire most often say nothing here that the others do not.
  const std::set<std::string> left_out = {"*/15 * * * *", "7,37 * * * *"};
  struct Cron {
    std::string expression, zone;
    std::uint64_t first = 0, last = 0;
  };
  std::map<std::string, Cron> crons;                             // by name
  std::map<std::uint64_t, std::multiset<std::string>> expected;  // names by time
  std::set<std::string> zones;
  for (std::string line; std::getline(reference_, line);) {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    Cron cron{line.substr(first + 1, second - first - 1), line.substr(0, first)};
    if (left_out.contains(cron.expression)) continue;
    const std::string name = "c" + std::to_string(crons.size());
    std::istringstream times(line.substr(second + 1));
    for (std::uint64_t seconds = 0; times >> seconds; cron.last = seconds * 1'000) {
      if (cron.first == 0) cron.first = seconds * 1'000;
      expected[seconds * 1'000].insert(name);
    }
    zones.insert(cron.zone);
    if (cron.first != 0) crons.emplace(name, cron);
  }
  ASSERT_GE(zones.size(), 20u);

  QuietSegment s(few_slots(2048));
  internal::CronKeeper keeper(s.actor());
  shm::Word& clock = s.segment.attachment()->segment().header().clock_offset_ms;
  const auto stand_at = [&clock](std::uint64_t ms) {
    clock.store(shm::kStandingClock | ms, shm::Point::kNone);
  };
  const auto worked_off = [&s] {
    std::multiset<std::string> names;
    while (s.worker.try_fetch(s.job)) {
      names.emplace(s.job.cron_name());
      EXPECT_TRUE(s.worker.ack(s.job).ok());
    }
    return names;
  };
  std::size_t jobs = 0;
  for (const auto& [time, names] : expected) {
    stand_at(time - 1);
    for (const std::string& name : names)
      if (const Cron& cron = crons.at(name); cron.first == time) {
        CronSpec spec;
        spec.name = name;
        spec.expression = cron.expression;
        spec.timezone = cron.zone;
        spec.job.type = "year.test";
        const auto made = s.admin.set_cron(spec);
        ASSERT_TRUE(made.ok()) << made.error().message;
      }
    keeper.look(s.now_ms());
    ASSERT_EQ(worked_off(), std::multiset<std::string>{}) << "a millisecond before " << time;
    stand_at(time);
    keeper.look(s.now_ms());
    ASSERT_EQ(worked_off(), names) << "at " << time;
    jobs += names.size();
    // The reference ends with the zone's year.
    for (const std::string& name : names)
      if (crons.at(name).last == time) {
        ASSERT_TRUE(s.admin.remove_cron(name).ok());
      }
  }
  EXPECT_GT(jobs, 25'000u);
  EXPECT_TRUE(s.observer.crons().empty());
}

}  // namespace
}  // namespace ojs_shm::test
