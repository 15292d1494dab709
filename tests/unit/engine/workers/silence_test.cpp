// SPDX-License-Identifier: Apache-2.0
// Registered workers that give no sign of life, and their jobs.

#include "tests/unit/engine/workers/registered.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Registry, silence_returns_its_jobs_at_once_and_counts_the_attempt) {
  const std::string id = s.put(), other = s.put();
  report({.id = "w"}), report({.id = "v"});
  ASSERT_EQ(fetch_as("w"), id);
  ASSERT_EQ(fetch_as("v"), other);
  EXPECT_EQ(s.get(id).worker_id, "w");
  s.pass(20 * kSecond);
  report({.id = "v"});
  s.pass(10 * kSecond - 1);
  EXPECT_EQ(s.state_of(id), State::kActive) << "not before 30 s";
  s.move_clock(1);
  const auto lost = s.tick().lost_workers;
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost.front().id, "w");
  EXPECT_EQ(lost.front().jobs, 1U);
  EXPECT_EQ(counted("lost_workers"), 1U);
  const JobInfo job = s.get(id);
  EXPECT_EQ(job.state, State::kAvailable);
  EXPECT_EQ(job.attempt, 1U) << "counted";
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors.front().code, "worker_death");
  EXPECT_EQ(s.state_of(other), State::kActive) << "the other one gave a sign";
  EXPECT_EQ(look("w").state(), "stale");
  EXPECT_EQ(look("w").end(), "silent");
  EXPECT_EQ(look("w").returned_jobs, 1U);
  EXPECT_EQ(proxy.ack(id, 0, {}).code(), Code::kWrongState) << "the silent one has lost it";
  ASSERT_EQ(fetch_as("v"), id);
  EXPECT_EQ(s.get(id).attempt, 2U);
}

TEST_F(Registry, a_longer_silence_may_be_announced) {
  report({.id = "w", .silence_ms = 90'000});
  s.pass(kMinute);
  EXPECT_EQ(look("w").state(), "running");
  report({.id = "w", .silence_ms = 0});
  s.pass(kMinute);
  EXPECT_EQ(look("w").state(), "stale");
}

TEST_F(Registry, an_exhausted_job_of_a_silent_worker_ends) {
  JobSpec once = spec_of();
  once.retry.max_attempts = 1;
  const std::string id = s.put(once);
  report({.id = "w"});
  ASSERT_EQ(fetch_as("w"), id);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
}

TEST_F(Registry, a_worker_that_only_fetches_keeps_its_jobs_for_their_lease) {
  const std::string id = s.put();
  ASSERT_EQ(fetch_as("w"), id);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kActive) << "it never promised signs of life";
  EXPECT_EQ(look("w").state(), "stale");
  EXPECT_EQ(s.get(id).worker_id, "w");
}

TEST_F(Registry, a_worker_that_comes_back_is_another_one) {
  const std::string first = s.put();
  report({.id = "w"});
  ASSERT_EQ(fetch_as("w"), first);
  const WorkerKey before = engine::find_worker(s.store(), "w");
  s.pass(kMinute);
  EXPECT_FALSE(engine::Registry(s.actor()).beat(before)) << "a late sign of the one that was ended";
  report({.id = "w"});
  EXPECT_NE(engine::find_worker(s.store(), "w"), before);
  EXPECT_EQ(ids(), std::vector<std::string>{"w"});
  EXPECT_EQ(s.observer.registered_workers().size(), 1U) << "its place is used again";
}

TEST_F(Registry, one_that_promised_no_sign_and_gives_none_stops_silently) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  report({.id = "w", .pledges = false});
  s.pass(kMinute);
  std::vector<std::string> told;
  for (Event event; reader.next(event);)
    told.push_back(event.type + " " + std::string(event.reason));
  EXPECT_EQ(told, (std::vector<std::string>{"worker.started ", "worker.stopped silent"}));
}

TEST_F(Registry, silence_is_seen_behind_a_clock_that_was_set_back) {
  report({.id = "w"});
  s.tick();
  s.move_clock(0 - 10 * kHour);
  s.tick();
  EXPECT_EQ(look("w").state(), "running");
  s.pass(20 * kSecond);
  EXPECT_EQ(look("w").state(), "running");
  s.pass(11 * kSecond);
  EXPECT_EQ(look("w").state(), "stale");
}

}  // namespace
}  // namespace ojs_shm::test
