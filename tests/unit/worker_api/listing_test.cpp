// SPDX-License-Identifier: Apache-2.0
// The order in which Observer::list() names available jobs, beside the one in which they are
// fetched.

#include <set>

#include <ojs_shm/transfer.hpp>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

Ids listed(const QuietSegment& s) {
  Ids ids;
  for (const JobInfo& job : s.observer.list({.state = State::kAvailable})) ids.push_back(job.id);
  return ids;
}

/// Jobs of several ages, levels and rates; one that has moved to another level and one that was
/// given back.
void let_wait(QuietSegment& s) {
  const std::string moved = s.put(6);
  const std::string returned = s.put(0);
  EXPECT_EQ(s.take(), returned);
  s.put(4);
  s.move_clock(3 * kHour);
  EXPECT_TRUE(s.worker.requeue(s.job).ok());
  JobSpec quick = spec_of(9);
  quick.priority_age_rate = 8;
  s.put(quick);
  s.put(2);
  s.put(0);
  EXPECT_TRUE(s.producer.reprioritize(moved, 2).ok());
  s.move_clock(2 * kHour);
  s.put(2);
  s.put(1);
  quick.priority = 3;
  s.put(quick);
}

TEST(Listing, SUM_07_QO_14_an_ageing_queue_is_listed_as_it_is_fetched) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = AgingSettings{.interval_ms = kHour}}).ok());
  let_wait(s);
  const Ids as_listed = listed(s);
  ASSERT_EQ(as_listed.size(), 9U);
  EXPECT_EQ(s.get(as_listed[0]).priority, 9) << "9 - 2 * 8";
  EXPECT_EQ(s.drain(), as_listed);
}

TEST(Listing, QO_14_without_ageing_rates_of_jobs_change_nothing) {
  QuietSegment s;
  let_wait(s);
  const Ids as_listed = listed(s);
  std::int64_t before = 0;
  for (const std::string& id : as_listed) {
    EXPECT_GE(s.get(id).priority, before);
    before = s.get(id).priority;
  }
  EXPECT_EQ(s.drain(), as_listed);
}

TEST(Listing, SUM_04_a_weighted_queue_is_listed_level_by_level) {
  QuietSegment s;
  ASSERT_TRUE(
      s.admin.set_queue("default", {.level_weights = std::vector<LevelWeight>{{"0", 1}, {"2", 3}}})
          .ok());
  const Ids low{s.put(2), s.put(2)}, high{s.put(0), s.put(0)};
  EXPECT_EQ(listed(s), (Ids{high[0], high[1], low[0], low[1]}));
}

TEST(Listing, SUM_07_an_export_of_an_ageing_queue_keeps_its_order) {
  QuietSegment from, to;
  ASSERT_TRUE(from.admin.set_queue("default", {.aging = AgingSettings{.interval_ms = kHour}}).ok());
  let_wait(from);
  const Ids as_listed = listed(from);
  Import import = Import::attach(to.segment).value();
  ASSERT_TRUE(
      export_segment(from.segment, [&](std::string_view line) { return import.take(line); }).ok());
  ASSERT_TRUE(import.finish().ok());
  to.move_clock(5 * kHour);  // the ages are the old ones
  EXPECT_EQ(to.drain(), as_listed);
}

/// Turns by weight decide among the tenants of a level, and no list tells whose turn is next.
TEST(Listing, of_tenants_goes_level_by_level_and_through_each_tenant_in_its_own_order) {
  QuietSegment s;
  ASSERT_TRUE(
      s.admin.set_queue("default", {.tenant_fairness = TenantFairness{.enabled = true}}).ok());
  const auto put = [&s](std::int64_t priority, const std::string& tenant) {
    const std::string extra = R"({"meta":{"tenant_id":")" + tenant + "\"}}";
    JobSpec spec = spec_of(priority);
    spec.extra = extra;
    spec.tenant = tenant;
    return s.put(spec);
  };
  const Ids many = {put(2, "many"), put(2, "many"), put(2, "many")};
  const Ids few = {put(2, "few")};
  const Ids some = {put(2, "some"), put(2, "some")};
  const std::string urgent = put(0, "many");
  const Ids as_listed = listed(s);
  ASSERT_EQ(as_listed.size(), 7U);
  EXPECT_EQ(as_listed[0], urgent);
  const auto part = [&as_listed](std::ptrdiff_t from, std::ptrdiff_t to) {
    return std::set<std::string>(as_listed.begin() + from, as_listed.begin() + to);
  };
  EXPECT_EQ(part(1, 4), (std::set<std::string>{many[0], few[0], some[0]})) << "the first of each";
  EXPECT_EQ(part(4, 6), (std::set<std::string>{many[1], some[1]})) << "the second ones";
  EXPECT_EQ(as_listed[6], many[2]);
}

}  // namespace
}  // namespace ojs_shm::test
