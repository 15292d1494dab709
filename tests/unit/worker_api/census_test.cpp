// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/census.hpp>

#include <filesystem>
#include <map>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::test {
namespace {

JobSpec of_tenant(std::string_view tenant, std::string& extra) {
  JobSpec spec = spec_of();
  extra = R"({"meta":{"tenant_id":")" + std::string(tenant) + R"("}})";
  spec.extra = extra;
  return spec;
}

TEST(Census, waits_and_runs_are_those_of_the_jobs_that_ended) {
  QuietSegment s;
  s.stop_clock();
  for (int i = 0; i < 3; ++i) s.put();
  s.move_clock(1000);
  for (int i = 0; i < 3; ++i) {
    s.take();
    s.move_clock(i < 2 ? 100 : 400);
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  }
  const QueueCensus queue = s.observer.census().queues.at(0);
  EXPECT_EQ(queue.run.count, 3U);
  EXPECT_NEAR(static_cast<double>(queue.run.p50_ms), 100, 30);
  EXPECT_NEAR(static_cast<double>(queue.run.p99_ms), 400, 50);
  EXPECT_NEAR(static_cast<double>(queue.wait.p99_ms), 1200, 100);
  s.move_clock(61'000);
  EXPECT_EQ(s.observer.census().queues.at(0).run.count, 0U) << "longer ago than a minute";
}

TEST(Census, tenants_have_their_names_shares_and_bounds) {
  QuietSegment s;
  QueueSettings settings;
  settings.tenant_fairness = TenantFairness{.weights = {{"acme", 3}}};
  settings.tenant_max_depth = 7;
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  std::string extra;
  for (int i = 0; i < 4; ++i) s.put(of_tenant("acme", extra));
  for (int i = 0; i < 2; ++i) s.put(of_tenant("bulk", extra));
  s.put();
  s.take();
  const Census census = s.observer.census();
  std::map<std::string, TenantCensus> tenants;
  for (const TenantCensus& tenant : census.tenants) tenants[tenant.tenant] = tenant;
  ASSERT_EQ(tenants.size(), 3U);
  EXPECT_EQ(tenants["acme"].weight, 3U);
  EXPECT_DOUBLE_EQ(tenants["acme"].entitled.value_or(0), 0.6);
  EXPECT_DOUBLE_EQ(tenants["bulk"].entitled.value_or(0), 0.2);
  EXPECT_EQ(tenants["acme"].depth + tenants["acme"].active, 4U);
  EXPECT_EQ(tenants["bulk"].max_depth, 7U);
  EXPECT_EQ(tenants[""].depth + tenants[""].active, 1U);
  double begun = 0;
  for (const auto& [name, tenant] : tenants) begun += tenant.actual;
  EXPECT_DOUBLE_EQ(begun, 1);
}

TEST(Census, a_worker_shows_the_job_that_it_has_held_longest) {
  QuietSegment s;
  s.stop_clock();
  s.put();
  s.move_clock(5000);
  const std::string id = s.take();
  s.move_clock(2000);
  const Census census = s.observer.census();
  ASSERT_EQ(census.workers.size(), 1U);
  EXPECT_EQ(census.workers[0].oldest_job, id);
  EXPECT_EQ(census.workers[0].oldest_type, "unit.test");
  EXPECT_NEAR(static_cast<double>(census.workers[0].oldest_age_ms), 2000, 100);
  EXPECT_EQ(census.workers[0].queues, std::vector<std::string>{"default"});
  EXPECT_EQ(census.workers[0].dispatched_total, 1U);
}

TEST(Census, a_queue_says_in_a_word_how_it_is) {
  QuietSegment s;
  s.put();
  EXPECT_EQ(s.observer.census().queues[0].state(), "running");
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 2, .warning_threshold = 0.5}).ok());
  EXPECT_EQ(s.observer.census().queues[0].state(), "warning");
  s.put();
  EXPECT_EQ(s.observer.census().queues[0].state(), "full");
  ASSERT_TRUE(s.admin.set_queue("default", {.paused = true}).ok());
  EXPECT_EQ(s.observer.census().queues[0].state(), "paused");
}

TEST(Census, a_copy_of_the_file_is_shown_as_its_last_trace_left_it) {
  QuietSegment s;
  const std::string id = s.put();
  const ScratchDirectory elsewhere;
  const std::string copy = elsewhere / "ojs-shm.dead";
  std::filesystem::copy_file(s.segment.path(), copy);
  std::filesystem::permissions(copy, std::filesystem::perms::owner_read);
  const auto before = std::filesystem::last_write_time(copy);
  s.move_clock(3'600'000);
  const auto segment = Segment::examine(copy);
  ASSERT_TRUE(segment.ok()) << segment.error().message;
  const Observer observer = Observer::attach(segment.value()).value();
  const Census census = observer.census();
  EXPECT_TRUE(census.post_mortem);
  EXPECT_EQ(census.segment.name, "dead");
  EXPECT_EQ(census.queues.at(0).info.depth, 1U);
  EXPECT_LT(census.queues.at(0).info.oldest_age_ms, 1000U) << "time stands where the copy was made";
  EXPECT_EQ(observer.get(id).value().state, State::kAvailable);
  EXPECT_EQ(census.state_of(census.segment.processes.at(0)), "attached");
  EXPECT_EQ(std::filesystem::last_write_time(copy), before);
  EXPECT_FALSE(Segment::examine(elsewhere / "nothing").ok());
}

TEST(Census, a_segment_that_was_removed_is_still_seen) {
  QuietSegment s;
  s.put();
  const Observer observer = Observer::attach(s.where()).value();
  EXPECT_FALSE(observer.census().removed);
  std::filesystem::rename(s.segment.path(), s.segment.path() + ".gone");
  const Census census = observer.census();
  std::filesystem::rename(s.segment.path() + ".gone", s.segment.path());
  EXPECT_TRUE(census.removed);
  EXPECT_EQ(census.queues.at(0).info.depth, 1U);
}

/// Attempts fail and jobs expire between any two reads.
TEST(Census, a_number_is_never_less_than_its_parts) {
  QuietSegment s;
  s.put();
  engine::QueueRecord& queue = s.store().queue(s.store().find_queue("default"));
  QueueInfo info;
  std::uint64_t reads = 0;
  {
    const AtAccess meanwhile([&](shm::Access access, shm::Point, const void*) {
      static bool inside = false;
      if (inside || access != shm::Access::kLoad) return;
      inside = true;
      ++reads;
      queue.retried.fetch_add(1, shm::Point::kNone);
      queue.expired.fetch_add(1, shm::Point::kNone);
      inside = false;
    });
    info = s.observer.queue("default").value();
  }
  EXPECT_GT(reads, 10U);
  EXPECT_GE(info.failed_attempts_total, info.retried_total);
  EXPECT_GE(info.discarded_total, info.expired_total + info.dropped_total);
}

TEST(Census, it_is_json) {
  QuietSegment s;
  std::string extra;
  s.put(of_tenant("a\\u0022b", extra));
  const std::string text = print_census(s.observer.census());
  EXPECT_TRUE(json::check(text).ok()) << text;
}

}  // namespace
}  // namespace ojs_shm::test
