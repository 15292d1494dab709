// SPDX-License-Identifier: Apache-2.0
// How full a bounded queue is, and when it warns. No threads.

#include <gmock/gmock.h>

#include <vector>

#include "engine/rules/backpressure.hpp"
#include "tests/unit/engine/bounds/pressed.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Pressed, BP_H4_BP_R004_an_enqueue_above_the_threshold_reports_it) {
  set({.max_depth = 10, .warning_threshold = 0.5});
  for (int i = 1; i <= 5; ++i) {
    s.put();
    EXPECT_FALSE(s.producer.pressure()) << i;
  }
  s.put();
  const auto pressure = s.producer.pressure();
  ASSERT_TRUE(pressure);
  EXPECT_EQ(pressure->depth, 6U);
  EXPECT_EQ(pressure->bound, 10U);
  EXPECT_EQ(pressure->pressure, 0.6);
  EXPECT_EQ(pressure->unit, "jobs");
  s.put({}, "unbounded");
  EXPECT_FALSE(s.producer.pressure());
  ASSERT_NE(s.take(), "");
  ASSERT_NE(s.take(), "");
  s.put();
  EXPECT_FALSE(s.producer.pressure());  // 5 again
}

TEST_F(Pressed, BP_X3_BP_R005_pressure_is_that_of_the_fuller_bound_and_at_most_1) {
  EXPECT_EQ(engine::Fullness::of(engine::charge(5, 90), 10, 100).pressure(), 0.9);
  EXPECT_EQ(engine::Fullness::of(engine::charge(5, 40), 10, 100).pressure(), 0.5);
  EXPECT_EQ(engine::Fullness::of(engine::charge(15, 40), 10, 0).pressure(), 1.0);
  EXPECT_EQ(engine::Fullness::of(engine::charge(15, 40), 0, 0).pressure(), 0.0);
  put_all(3);
  EXPECT_EQ(s.queue().pressure, 0.0);
  set({.max_depth = 4});
  EXPECT_EQ(s.queue().pressure, 0.75);
  set({.max_depth = 2});
  EXPECT_EQ(s.queue().pressure, 1.0);
}

TEST_F(Pressed, BP_E1_BP_E4_BP_T24_a_queue_warns_once_for_each_crossing) {
  set({.max_depth = 10, .warning_threshold = 0.5});
  begin_telling();
  put_all(5);
  EXPECT_TRUE(told("backpressure.warning").empty());
  put_all(3);
  auto events = told("backpressure.warning");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].queue, "default");
  EXPECT_EQ(events[0].depth, 6U);
  EXPECT_EQ(events[0].bound, 10U);
  for (int i = 0; i < 3; ++i) ASSERT_NE(s.take(), "");
  EXPECT_TRUE(told("backpressure.cleared").empty());  // 5: not below the threshold
  s.put();
  EXPECT_TRUE(told("backpressure.warning").empty());
  ASSERT_NE(s.take(), "");
  ASSERT_NE(s.take(), "");
  events = told("backpressure.cleared");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].depth, 4U);
  EXPECT_EQ(events[0].bound, 10U);
  ASSERT_NE(s.take(), "");
  put_all(2);
  EXPECT_TRUE(told("backpressure.warning").empty());
  put_all(2);
  EXPECT_EQ(told("backpressure.warning").size(), 1U);
}

/// 79 of 100 lie between the threshold and nine tenths of it.
TEST_F(Pressed, BP_E4_a_warning_is_over_once_the_depth_is_below_the_threshold) {
  set({.max_depth = 100});
  EXPECT_EQ(s.queue().clear_threshold, 0.8);
  begin_telling();
  put_all(81);
  EXPECT_EQ(told("backpressure.warning").size(), 1U);
  ASSERT_NE(s.take(), "");
  EXPECT_TRUE(told("backpressure.cleared").empty()) << "80 is the threshold, not below it";
  ASSERT_NE(s.take(), "");
  const auto cleared = told("backpressure.cleared");
  ASSERT_EQ(cleared.size(), 1U);
  EXPECT_EQ(cleared[0].depth, 79U);
  EXPECT_EQ(cleared[0].bound, 100U);
  for (int i = 0; i < 20; ++i) ASSERT_NE(s.take(), "");
  EXPECT_TRUE(told("backpressure.cleared").empty()) << "once";
}

TEST_F(Pressed, BP_E4_hysteresis_is_a_setting) {
  set({.max_depth = 100, .clear_threshold = 0.7});
  EXPECT_EQ(s.queue().clear_threshold, 0.7);
  begin_telling();
  put_all(81);
  for (int sways = 0; sways < 5; ++sways) {
    for (int i = 0; i < 11; ++i) ASSERT_NE(s.take(), "");  // to 70
    put_all(11);
  }
  EXPECT_TRUE(told("backpressure.cleared").empty());
  for (int i = 0; i < 12; ++i) ASSERT_NE(s.take(), "");
  const auto cleared = told("backpressure.cleared");
  ASSERT_EQ(cleared.size(), 1U);
  EXPECT_EQ(cleared[0].depth, 69U);
  set({.warning_threshold = 0.5});  // the lower one counts
  EXPECT_EQ(s.queue().clear_threshold, 0.5);
  EXPECT_EQ(s.admin.set_queue("default", {.clear_threshold = 1.1}).error().subject,
            "clear_threshold");
}

TEST_F(Pressed, BP_E4_a_threshold_of_nothing_ends_with_the_last_job) {
  set({.max_depth = 10, .warning_threshold = 0.0});
  begin_telling();
  put_all(2);
  EXPECT_EQ(told("backpressure.warning").size(), 1U);
  ASSERT_NE(s.take(), "");
  EXPECT_TRUE(told("backpressure.cleared").empty());
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(told("backpressure.cleared").size(), 1U);
}

TEST_F(Pressed, BP_E4_is_told_when_jobs_leave_otherwise_or_the_bound_goes) {
  set({.max_depth = 10, .warning_threshold = 0.5});
  begin_telling();
  const auto ids = put_all(8);
  EXPECT_EQ(told("backpressure.warning").size(), 1U);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(s.producer.cancel(ids[static_cast<std::size_t>(i)]).ok());
  EXPECT_EQ(told("backpressure.cleared").size(), 1U);
  put_all(4);
  EXPECT_EQ(told("backpressure.warning").size(), 1U);
  set({.max_depth = 0});
  EXPECT_EQ(told("backpressure.cleared").size(), 1U);
}

TEST_F(Pressed, BP_E4_the_supervisor_tells_what_the_last_removal_left) {
  set({.max_depth = 1000});
  begin_telling();
  put_all(1000);
  EXPECT_EQ(told("backpressure.warning").size(), 1U);
  for (int i = 0; i < 500; ++i) ASSERT_NE(s.take(), "");
  s.pass(kSecond);
  EXPECT_EQ(told("backpressure.cleared").size(), 1U);
}

TEST_F(Pressed, BP_E1_a_queue_warns_as_well_of_what_comes_back) {
  set({.max_depth = 10, .warning_threshold = 0.5});
  begin_telling();
  put_all(6);
  ASSERT_EQ(told("backpressure.warning").size(), 1U);
  std::vector<Job> jobs(6);
  for (Job& job : jobs) ASSERT_TRUE(s.worker.try_fetch(job).ok());
  s.tick();
  ASSERT_EQ(told("backpressure.cleared").size(), 1U);
  for (Job& job : jobs) ASSERT_TRUE(s.worker.requeue(job).ok());
  s.tick();
  const auto again = told("backpressure.warning");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].depth, 6U);
}

}  // namespace
}  // namespace ojs_shm::test
