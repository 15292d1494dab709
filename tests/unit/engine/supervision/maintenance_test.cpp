// SPDX-License-Identifier: Apache-2.0
// Maintenance is a word of the segment: while it is on, no queue hands out a job to any handle.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include <ojs_shm/proxy.hpp>

#include "engine/supervision/maintenance.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(MaintenanceMode, no_handle_gets_a_job_and_all_else_goes_on) {
  QuietSegment s;
  const std::string held = s.put();
  ASSERT_EQ(s.take(), held);
  JobSpec of_tenant = spec_of({}, "own");
  of_tenant.tenant = "t";
  s.put(of_tenant);
  ASSERT_TRUE(s.admin.set_pool("web", {.queues = {"own"}}).ok());
  ASSERT_TRUE(s.admin.set_queue("fair", {.tenant_fairness = TenantFairness{.enabled = true}}).ok());
  s.put({}, "fair");
  ASSERT_TRUE(s.admin.set_maintenance(true, "moving house").ok());

  s.put(), s.put({}, "made.since");
  ASSERT_TRUE(s.worker.ack(s.job).ok()) << "what is at work ends";
  EXPECT_EQ(s.take(), "");
  for (const char* queue : {"default", "own", "fair", "made.since"}) {
    Worker worker = Worker::attach(s.segment, {.queues = {queue}}).value();
    EXPECT_EQ(worker.try_fetch(s.job).code(), Code::kEmpty) << queue;
  }
  Proxy proxy = Proxy::attach(s.segment).value();
  EXPECT_TRUE(proxy.fetch({.queues = {"default", "own"}}).value().empty());
  EXPECT_TRUE(proxy.fetch({.pool = "web"}).value().empty());
  EXPECT_TRUE(proxy.fetch({.queues = {"own"}, .tenant = "t"}).value().empty());
  EXPECT_FALSE(s.queue().paused) << "that is another matter";

  ASSERT_TRUE(s.admin.set_queue("fair", {.paused = true}).ok());
  ASSERT_TRUE(s.admin.set_maintenance(false).ok());
  EXPECT_NE(s.take(), "");
  EXPECT_EQ(proxy.fetch({.queues = {"own"}, .tenant = "t"}).value().size(), 1U);
  EXPECT_EQ(proxy.fetch({.queues = {"made.since"}}).value().size(), 1U);
  EXPECT_TRUE(proxy.fetch({.queues = {"fair"}}).value().empty()) << "its own pause stays";
  ASSERT_TRUE(s.admin.set_queue("fair", {.paused = false}).ok());
  EXPECT_EQ(proxy.fetch({.queues = {"fair"}}).value().size(), 1U);
}

TEST(MaintenanceMode, what_becomes_due_waits_for_its_end) {
  QuietSegment s;
  s.stop_clock();
  JobSpec later = spec_of();
  later.scheduled_at_ms = s.now_ms() + 5'000;
  const std::string scheduled = s.put(later), failed = s.put();
  ASSERT_EQ(s.take(), failed);
  ASSERT_TRUE(s.worker.nack(s.job, {}).ok());
  ASSERT_TRUE(s.admin.set_maintenance(true).ok());
  s.pass(60'000);
  EXPECT_EQ(s.state_of(scheduled), State::kScheduled);
  EXPECT_EQ(s.state_of(failed), State::kRetryable);
  ASSERT_TRUE(s.admin.set_maintenance(false).ok());
  s.pass(1'000);
  EXPECT_EQ(s.state_of(scheduled), State::kAvailable);
  EXPECT_EQ(s.state_of(failed), State::kAvailable);
}

TEST(MaintenanceMode, a_scheduled_job_expires_all_the_same) {
  QuietSegment s;
  s.stop_clock();
  JobSpec later = spec_of();
  later.scheduled_at_ms = s.now_ms() + 5'000;
  later.expires_at_ms = s.now_ms() + 9'000;
  const std::string id = s.put(later);
  ASSERT_TRUE(s.admin.set_maintenance(true).ok());
  s.pass(10'000);
  EXPECT_EQ(s.get(id).discard_reason, "expired");
}

TEST(MaintenanceMode, is_told_to_every_process_with_its_reason) {
  QuietSegment s;
  EXPECT_FALSE(s.observer.maintenance().enabled);
  EXPECT_EQ(s.observer.maintenance().since_ms, 0U);
  s.stop_clock();
  ASSERT_TRUE(s.admin.set_maintenance(true, "moving house").ok());
  const Observer other = Observer::attach(s.where()).value();
  EXPECT_TRUE(other.maintenance().enabled);
  EXPECT_EQ(other.maintenance().reason, "moving house");
  EXPECT_EQ(other.maintenance().since_ms, s.now_ms());
  EXPECT_EQ(other.segment_info().maintenance.reason, "moving house");
  const std::string longest(256, 'r');
  ASSERT_TRUE(s.admin.set_maintenance(true, longest).ok());
  EXPECT_EQ(other.maintenance().reason, longest);
  EXPECT_EQ(s.admin.set_maintenance(true, longest + "r").error().subject, "reason");
  ASSERT_TRUE(s.admin.set_maintenance(false).ok());
  EXPECT_FALSE(other.maintenance().enabled);
  EXPECT_EQ(other.maintenance().reason, "");
}

TEST(MaintenanceMode, tells_when_it_is_meant_to_end_and_goes_on) {
  QuietSegment s;
  s.stop_clock();
  const std::uint64_t end = s.now_ms() + kHour;
  ASSERT_TRUE(s.admin.set_maintenance(true, "moving house", end).ok());
  EXPECT_EQ(s.observer.maintenance().estimated_end_ms, end);
  s.pass(2 * kHour);
  EXPECT_TRUE(s.observer.maintenance().enabled);
  ASSERT_TRUE(s.admin.set_maintenance(true, "moving house").ok());
  EXPECT_EQ(s.observer.maintenance().estimated_end_ms, 0U);
  ASSERT_TRUE(s.admin.set_maintenance(false, "", end).ok());
  EXPECT_EQ(s.observer.maintenance().estimated_end_ms, 0U);
}

TEST(MaintenanceMode, wakes_those_who_sleep_when_it_ends) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_maintenance(true).ok());
  const std::string id = s.put();
  std::string got;
  std::thread sleeper([&] {
    Worker worker = Worker::attach(s.segment, {}).value();
    Job job;
    if (worker.fetch(job, std::chrono::seconds(30))) got = job.id();
  });
  ASSERT_TRUE(s.admin.set_maintenance(false).ok());
  sleeper.join();
  EXPECT_EQ(got, id);
}

}  // namespace
}  // namespace ojs_shm::test
