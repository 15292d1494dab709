// SPDX-License-Identifier: Apache-2.0
// What the supervisor notes about queues and pools once a second: the last minute, who starves, who
// has too much.

#include <gmock/gmock.h>

#include "engine/pools/samples.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope_event.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Scheduling : public testing::Test {
 protected:
  Scheduling() {
    EXPECT_TRUE(s.admin.set_events(true).ok());
    s.tick();
  }
  void fill(std::string_view queue, int jobs) {
    for (int i = 0; i < jobs; ++i) s.put(2, queue);
  }
  /// By a worker of the pool, or of none.
  void work_off(const std::string& queue, int jobs, const std::string& pool = {}) {
    Worker worker = Worker::attach(s.segment, {.queues = {queue}, .pool = pool}).value();
    for (int i = 0; i < jobs; ++i) {
      ASSERT_TRUE(worker.try_fetch(s.job).ok());
      ASSERT_TRUE(worker.ack(s.job).ok());
    }
  }
  void set_pool(const std::string& json) {
    ASSERT_TRUE(s.admin.set_pool("p", parse_pool_settings(json).value()).ok());
  }
  /// A supervisor's seconds, one by one.
  void live(std::uint64_t seconds) {
    for (std::uint64_t i = 0; i < seconds; ++i) s.pass(kSecond);
  }
  QueueScheduling of(std::string_view queue) {
    for (const QueueScheduling& each : s.observer.scheduling_stats().queues)
      if (each.queue == queue) return each;
    ADD_FAILURE() << "no queue " << queue;
    return {};
  }
  /// The events of scheduling since the last call.
  std::vector<Event> told() {
    std::vector<Event> events;
    for (Event event; reader.next(event);)
      if (event.type.starts_with("scheduling.")) events.push_back(event);
    return events;
  }
  std::vector<std::string> told_types() {
    std::vector<std::string> types;
    for (const Event& event : told()) types.push_back(event.type);
    return types;
  }

  QuietSegment s;
  EventReader reader = s.observer.events({.settle_ms = 0});
};

TEST_F(Scheduling, FS_R004_FS_H3_FS_X2_the_last_minute_and_nothing_else) {
  fill("a", 20);
  fill("b", 20);
  live(70);
  work_off("a", 6);
  live(20);
  work_off("a", 2);
  work_off("b", 2);
  live(1);
  EXPECT_EQ(of("a").dispatch_count_1m, 8U);
  EXPECT_EQ(of("b").dispatch_count_1m, 2U);
  EXPECT_DOUBLE_EQ(of("a").dispatch_ratio_1m, 0.8);
  EXPECT_DOUBLE_EQ(of("b").dispatch_ratio_1m, 0.2);
  EXPECT_NEAR(of("b").avg_wait_ms, 90'000, 2'000);
  live(37);
  EXPECT_EQ(of("a").dispatch_count_1m, 8U);  // after 58 s
  live(4);
  EXPECT_EQ(of("a").dispatch_count_1m, 2U);
  EXPECT_DOUBLE_EQ(of("a").dispatch_ratio_1m, 0.5);
  live(30);
  EXPECT_EQ(of("a").dispatch_count_1m, 0U);
  EXPECT_EQ(of("a").dispatch_ratio_1m, 0);
}

TEST_F(Scheduling, FS_H3_what_is_printed) {
  fill("a", 3);
  s.move_clock(500);
  Worker worker = Worker::attach(s.segment, {.queues = {"a"}}).value();
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  SchedulingStats stats = s.observer.scheduling_stats();
  for (QueueScheduling& queue : stats.queues)
    if (queue.queue == "a") queue.avg_wait_ms = 500;  // a busy machine adds some
  EXPECT_THAT(print_scheduling(stats),
              HasSubstr(R"({"name":"a","dispatch_count_1m":1,"dispatch_ratio_1m":1,)"
                        R"("avg_wait_ms":500,"active_jobs":1,"starved":0})"));
  EXPECT_THAT(print_scheduling(stats), HasSubstr(R"(],"window":"PT1M"})"));
}

/// A supervisor that was away leaves no sample; the next one goes on in the same table.
TEST_F(Scheduling, FS_H3_another_supervisor_goes_on) {
  fill("a", 9);
  live(70);
  work_off("a", 4);
  live(3);
  engine::Supervisor next(s.actor());
  for (int i = 0; i < 60; ++i) {
    s.move_clock(kSecond);
    engine::Supervisor::Report report;
    next.tick(s.now_ms(), report);
    if (i == 20) {
      EXPECT_EQ(of("a").dispatch_count_1m, 4U);
    }
  }
  EXPECT_EQ(of("a").dispatch_count_1m, 0U);
}

TEST_F(Scheduling, FS_E1_FS_X5_a_queue_starves_once_in_an_episode) {
  fill("a", 3);
  live(29);
  EXPECT_THAT(told(), IsEmpty());
  live(3);
  std::vector<Event> events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].type, "scheduling.queue_starved");
  EXPECT_EQ(events[0].queue, "a");
  EXPECT_EQ(events[0].waiting_jobs, 3U);
  EXPECT_GT(events[0].duration_ms, 30'000U);
  EXPECT_THAT(print_event(events[0]),
              HasSubstr(R"("subject":"a","data":{"queue":"a","duration":"PT3)"));
  EXPECT_THAT(print_event(events[0]), HasSubstr(R"(,"available_count":3}})"));
  live(100);
  EXPECT_THAT(told(), IsEmpty());
  EXPECT_EQ(of("a").starvation_events_total, 1U);
  work_off("a", 1);
  live(40);
  EXPECT_THAT(told_types(), ElementsAre("scheduling.queue_starved"));
  EXPECT_EQ(of("a").starvation_events_total, 2U);
}

TEST_F(Scheduling, FS_E1_nobody_starves_who_waits_for_nothing_or_not_for_long) {
  JobSpec later = spec_of(2, "a");
  later.scheduled_at_ms = s.now_ms() + 80'000;
  s.put(later);
  fill("b", 1);
  ASSERT_TRUE(s.admin.set_queue("b", {{}, {}, true}).ok());
  live(79);
  fill("c", 1);  // c has seen no dispatch for longer than that
  live(25);
  EXPECT_THAT(told(), IsEmpty());
  live(10);
  // a and c
  EXPECT_THAT(told_types(), ElementsAre("scheduling.queue_starved", "scheduling.queue_starved"));
  ASSERT_TRUE(s.admin.set_queue("b", {{}, {}, false}).ok());
  live(32);
  EXPECT_THAT(told_types(), ElementsAre("scheduling.queue_starved"));
}

TEST_F(Scheduling, FS_E1_the_pool_s_interval_counts_also_where_only_its_workers_look) {
  set_pool(
      R"({"queues":["a"],"isolated":true,"starvation_prevention":{"enabled":false,"rotation_interval":"PT5S"}})");
  fill("a", 1);
  live(7);
  EXPECT_THAT(told_types(), ElementsAre("scheduling.queue_starved"));
  work_off("a", 1, "p");
  live(60);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(Scheduling, FS_E2_a_pool_is_overloaded_when_all_its_workers_have_what_they_may_have) {
  set_pool(R"({"queues":["a"]})");
  fill("a", 4);
  Worker one = Worker::attach(s.segment, {.pool = "p", .concurrency = 2}).value();
  Worker other = Worker::attach(s.segment, {.pool = "p", .concurrency = 1}).value();
  Job jobs[4];
  ASSERT_TRUE(one.try_fetch(jobs[0]).ok());
  ASSERT_TRUE(one.try_fetch(jobs[1]).ok());
  live(3);
  EXPECT_THAT(told(), IsEmpty());  // the other one has time
  ASSERT_TRUE(other.try_fetch(jobs[2]).ok());
  live(3);
  const std::vector<Event> events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(print_event(events[0]), HasSubstr(R"("type":"scheduling.pool_overloaded")"));
  EXPECT_THAT(print_event(events[0]),
              HasSubstr(R"("data":{"pool":"p","active_jobs":3,"waiting_jobs":1}})"));
  live(20);
  EXPECT_THAT(told_types(), IsEmpty()) << "once, until it is over";
  ASSERT_TRUE(one.ack(jobs[0]).ok());
  live(3);
  EXPECT_THAT(told(), IsEmpty());
  Worker boundless = Worker::attach(s.segment, {.pool = "p"}).value();
  live(3);
  ASSERT_TRUE(one.try_fetch(jobs[0]).ok());
  live(3);
  EXPECT_THAT(told(), IsEmpty()) << "one may take any number";
  { const Worker gone = std::move(boundless); }
  live(3);
  EXPECT_THAT(told_types(), ElementsAre("scheduling.pool_overloaded"));  // once more
}

TEST_F(Scheduling, FS_E2_all_at_their_maximum_is_overloaded_though_no_job_waits) {
  set_pool(R"({"queues":["a"]})");
  fill("a", 2);
  Worker worker = Worker::attach(s.segment, {.pool = "p", .concurrency = 2}).value();
  Job jobs[2];
  ASSERT_TRUE(worker.try_fetch(jobs[0]).ok());
  live(3);
  EXPECT_THAT(told(), IsEmpty());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(worker.try_fetch(jobs[1]).ok());
    live(3);
    const std::vector<Event> events = told();
    ASSERT_EQ(events.size(), 1U) << round;
    EXPECT_THAT(print_event(events[0]),
                HasSubstr(R"("data":{"pool":"p","active_jobs":2,"waiting_jobs":0}})"));
    switch (round) {  // whichever way it ends
      case 0: ASSERT_TRUE(worker.ack(jobs[1]).ok()); break;
      case 1: ASSERT_TRUE(worker.nack(jobs[1], failure(false)).ok()); break;
      default: ASSERT_TRUE(worker.requeue(jobs[1]).ok());
    }
    live(3);
    EXPECT_THAT(told(), IsEmpty());
    fill("a", 1);
  }
}

/// The pool's limit may be above what its workers can take, or below.
TEST_F(Scheduling, FS_E2_the_limit_of_the_pool_and_its_workers_each_count) {
  set_pool(R"({"queues":["a"],"concurrency":1})");
  fill("a", 2);
  Worker worker = Worker::attach(s.segment, {.pool = "p", .concurrency = 2}).value();
  Job jobs[2];
  ASSERT_TRUE(worker.try_fetch(jobs[0]).ok());
  live(3);
  EXPECT_THAT(told_types(), ElementsAre("scheduling.pool_overloaded"));
  set_pool(R"({"queues":["a"],"concurrency":50})");
  live(3);
  EXPECT_THAT(told(), IsEmpty());
  ASSERT_TRUE(worker.try_fetch(jobs[1]).ok());
  live(3);
  EXPECT_THAT(told_types(), ElementsAre("scheduling.pool_overloaded"));
}

TEST_F(Scheduling, FS_E3_a_change_of_strategy_or_weights_is_told) {
  set_pool(R"({"queues":["a","b"]})");
  EXPECT_THAT(told(), IsEmpty());  // it is new
  set_pool(R"({"queues":["a","b"],"concurrency":4})");
  EXPECT_THAT(told(), IsEmpty());
  set_pool(R"({"queues":["a","b"],"strategy":"weighted","weights":{"a":2}})");
  std::vector<Event> events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(
      print_event(events[0]),
      HasSubstr(
          R"("data":{"pool":"p","previous_strategy":"round-robin","new_strategy":"weighted"}})"));
  set_pool(R"({"queues":["a","b"],"strategy":"weighted","weights":{"a":4,"b":2}})");  // the same
  EXPECT_THAT(told(), IsEmpty());
  set_pool(R"({"queues":["a","b"],"strategy":"weighted","weights":{"a":3}})");
  events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].previous_strategy, "weighted");
  EXPECT_EQ(events[0].new_strategy, "weighted");
}

TEST_F(Scheduling, FS_X1_dispatches_outside_of_pools_have_a_count_of_their_own) {
  set_pool(R"({"queues":["a"]})");
  fill("a", 5);
  work_off("a", 2, "p");
  work_off("a", 3);
  EXPECT_EQ(of("a").poolless_dispatched_total, 3U);
  EXPECT_EQ(s.observer.pool("p")->dispatched_total[0].second, 2U);
}

TEST_F(Scheduling, FS_X4_utilization_is_active_jobs_of_those_that_may_be) {
  set_pool(R"({"queues":["a"]})");
  fill("a", 2);
  EXPECT_LT(s.observer.pool("p")->utilization(), 0);  // no lane has set a limit
  Worker worker = Worker::attach(s.segment, {.pool = "p", .concurrency = 4}).value();
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  EXPECT_DOUBLE_EQ(s.observer.pool("p")->utilization(), 0.25);
  set_pool(R"({"queues":["a"],"concurrency":2})");
  EXPECT_DOUBLE_EQ(s.observer.pool("p")->utilization(), 0.5);
}

}  // namespace
}  // namespace ojs_shm::test
