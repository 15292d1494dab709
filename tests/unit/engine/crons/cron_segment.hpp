// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/roles/cron_keeper.hpp"

namespace ojs_shm::test {

constexpr std::uint64_t kMonday = 1'767'571'200'000;  // 2026-01-05T00:00:00Z

/// A segment with crons whose clock stands; each test ends with an audit.
class Crons : public testing::Test {
 protected:
  Crons() : keeper(s.actor()) {
    s.segment.attachment()->segment().header().clock_offset_ms.store(shm::kStandingClock | kMonday,
                                                                     shm::Point::kNone);
  }
  CronSpec spec(std::string_view name = "hourly", std::string_view expression = "0 * * * *") {
    CronSpec spec;
    spec.name = name;
    spec.expression = expression;
    spec.job.type = "report.make";
    spec.job.args = R"([{"n":1}])";
    return spec;
  }
  bool set(const CronSpec& spec) {
    const auto made = s.admin.set_cron(spec);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() && *made;
  }
  CronInfo look(std::string_view name = "hourly") {
    const auto info = s.observer.cron(name);
    EXPECT_TRUE(info.ok()) << name;
    return info.ok() ? *info : CronInfo{};
  }
  /// So much later, as the supervisor finds it.
  std::uint64_t pass(std::uint64_t ms) {
    s.move_clock(ms);
    return keeper.look(s.now_ms());
  }
  std::vector<JobInfo> jobs(std::string_view name = "hourly") {
    std::vector<JobInfo> found;
    for (JobInfo& job : s.observer.list({}))
      if (job.cron_name == name) found.push_back(std::move(job));
    return found;
  }
  std::vector<Event> events() {
    std::vector<Event> all;
    for (Event event; reader->next(event);)
      if (event.type.starts_with("cron.")) all.push_back(event);
    return all;
  }
  void listen() {
    ASSERT_TRUE(s.admin.set_events(true).ok());
    reader.emplace(s.observer.events({.from_start = false, .settle_ms = 0}));
  }
  QuietSegment s;
  internal::CronKeeper keeper;
  std::optional<EventReader> reader;
};

}  // namespace ojs_shm::test
