// SPDX-License-Identifier: Apache-2.0
// What a full queue says to a job that it refuses. No threads.

#include <gmock/gmock.h>

#include <vector>

#include "engine/rules/backpressure.hpp"
#include "tests/unit/engine/bounds/pressed.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;

TEST_F(Pressed, BP_H2_BP_H3_BP_005_a_refusal_says_all_that_a_client_needs) {
  set(bounds(2));
  put_all(2);
  const Error error = refused();
  EXPECT_EQ(error.message, "Queue 'default' has reached its depth bound (2)");
  EXPECT_EQ(error.subject, "default");
  EXPECT_EQ(error.depth, 2U);
  EXPECT_EQ(error.bound, 2U);
  EXPECT_EQ(error.unit, "jobs");
  EXPECT_EQ(error.strategy, "reject");
  EXPECT_EQ(error.retry_after_ms, 1000U);
  const std::uint64_t bytes = s.queue().size_bytes;
  set({.max_depth = 0, .max_size_bytes = bytes + 1});
  const Error by_bytes = refused();
  EXPECT_EQ(by_bytes.message,
            "Queue 'default' has reached its size bound (" + std::to_string(bytes + 1) + " bytes)");
  EXPECT_EQ(by_bytes.depth, bytes);
  EXPECT_EQ(by_bytes.unit, "bytes");
}

TEST_F(Pressed, BP_T14_a_batch_that_only_just_does_not_fit_by_bytes_is_refused_by_bytes) {
  s.put();
  const std::uint64_t each = s.queue().size_bytes;
  set({.max_depth = 100, .max_size_bytes = 3 * each});
  const std::vector<JobSpec> batch(3, spec_of());
  const auto put = s.producer.enqueue_batch(batch);
  ASSERT_EQ(put.code(), Code::kQueueFull);
  EXPECT_EQ(put.error().unit, "bytes");
  EXPECT_EQ(put.error().depth, each);
}

TEST_F(Pressed, BP_002_the_recommended_delay_follows_the_rate_at_which_jobs_leave) {
  s.stop_clock();
  set(bounds(10));
  put_all(10);
  EXPECT_EQ(refused().retry_after_ms, 1000U);  // nothing is known yet
  const auto after = [this](int leave, std::uint64_t in_ms) {
    for (int i = 0; i < leave; ++i) ASSERT_NE(s.take(), "");
    put_all(leave);
    s.move_clock(in_ms);
  };
  after(5, 10 * kSecond);  // one in two seconds: three jobs, from 11 to the threshold of 8
  EXPECT_EQ(refused().retry_after_ms, 6000U);
  EXPECT_EQ(refused().retry_after_ms, 6000U);  // the clock stands, the rate as well
  after(4, 10 * kSecond);
  EXPECT_EQ(refused().retry_after_ms, 7500U);
  after(8, 1000);
  EXPECT_EQ(refused().retry_after_ms, 1000U);  // 375 ms would do
  after(0, 10 * kSecond);                      // and now none at all
  EXPECT_EQ(refused().retry_after_ms, 30'000U);
  after(1, 20 * kSecond);  // 60 s
  EXPECT_EQ(refused().retry_after_ms, 30'000U);
  set({.warning_threshold = 0.5});
  after(5, 5 * kSecond);  // six jobs, one in a second
  EXPECT_EQ(refused().retry_after_ms, 6000U);
}

TEST_F(Pressed, BP_X1_refusals_are_counted_by_job) {
  set(bounds(2));
  put_all(2);
  refused();
  const std::vector<JobSpec> batch(3, spec_of());
  EXPECT_EQ(s.producer.enqueue_batch(batch).code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().rejected_total, 4U);
}

TEST_F(Pressed, BP_E2_BP_004_each_refusal_is_an_event) {
  set(bounds(2));
  put_all(2);
  begin_telling();
  JobSpec spec = spec_of();
  spec.type = "a.type.that.is.longer.than.what.one.record.of.an.event.can.hold";
  refused();
  refused(spec);
  const std::vector<Event> events = told("backpressure.rejected");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].queue, "default");
  EXPECT_EQ(events[0].depth, 2U);
  EXPECT_EQ(events[0].bound, 2U);
  EXPECT_EQ(events[0].unit, "jobs");
  EXPECT_EQ(events[0].count, 1U);
  EXPECT_EQ(events[0].job_type, "unit.test");
  EXPECT_EQ(events[1].job_type, spec.type);
}

TEST_F(Pressed, BP_E2_a_flood_of_refusals_is_told_in_few_events_that_speak_for_all) {
  set(bounds(1));
  s.put();
  begin_telling();
  constexpr std::uint64_t kAll = 20'000;
  std::uint64_t count = 0, told_in = 0;
  const auto read = [&] {
    for (const Event& event : told("backpressure.rejected")) {
      ++told_in;
      count += event.count;
    }
  };
  for (std::uint64_t i = 0; i < kAll; ++i) {
    refused();
    if (i % 200 == 0) read();
  }
  s.move_clock(5 * kSecond);
  s.tick();  // what no lane told
  read();
  EXPECT_EQ(count, kAll);
  EXPECT_EQ(reader->lost(), 0U);
  EXPECT_EQ(s.queue().rejected_total, kAll);
}

TEST(Refusals, tell_each_of_a_thousand_in_a_second_and_then_one_in_ten_milliseconds) {
  engine::Refusals word(0);
  std::uint64_t events = 0, spoken_for = 0, tell = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {  // in one second
    word = word.after(1, 1'000'000 + i / 100, tell);
    events += tell != 0 ? 1 : 0;
    spoken_for += tell;
  }
  EXPECT_GE(events, 1000U);
  EXPECT_LE(events, 1100U);
  EXPECT_EQ(spoken_for + word.untold(), 100'000U);
  word = word.after(1, 1'001'500, tell);
  EXPECT_EQ(spoken_for + tell, 100'001U);
}

}  // namespace
}  // namespace ojs_shm::test
