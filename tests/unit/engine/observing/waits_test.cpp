// SPDX-License-Identifier: Apache-2.0
// How long jobs waited, and how many of each priority wait now. The clock is moved by hand.

#include <gmock/gmock.h>

#include "engine/observing/waits.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Waits, buckets_are_powers_of_four_milliseconds) {
  for (unsigned bucket = 0; bucket + 1 < engine::kWaitBuckets; ++bucket) {
    EXPECT_EQ(engine::wait_bucket(engine::wait_bound_ms(bucket)), bucket);
    EXPECT_EQ(engine::wait_bucket(engine::wait_bound_ms(bucket) + 1), bucket + 1);
  }
  EXPECT_EQ(engine::wait_bucket(0), 0U);
  EXPECT_EQ(engine::wait_bucket(~0ULL), engine::kWaitBuckets - 1);
}

LevelWaits level(const QuietSegment& s, std::int64_t priority, std::string_view queue = "default") {
  for (const LevelWaits& waits : s.observer.waits())
    if (waits.queue == queue && waits.priority == priority) return waits;
  return {};
}

TEST(Waits, PRI_X2_FS_X3_each_dispatch_is_counted_once_under_its_queue_and_priority_with_its_time) {
  QuietSegment s;
  s.stop_clock();
  EXPECT_THAT(s.observer.waits(), IsEmpty());
  for (const std::int64_t priority : {0, 2, 2, 200}) s.put(priority);
  s.put(2, "other");
  s.move_clock(10 * kMinute);
  EXPECT_EQ(s.drain().size(), 4U);
  EXPECT_EQ(level(s, 2, "other").from_enqueue.count, 0U) << "accepted, not dispatched";
  for (const auto of : {&LevelWaits::from_enqueue, &LevelWaits::from_available}) {
    EXPECT_EQ((level(s, 0).*of).count, 1U);
    EXPECT_EQ((level(s, 200).*of).count, 1U);
    const WaitHistogram two = level(s, 2).*of;
    EXPECT_EQ(two.count, 2U);
    EXPECT_EQ(two.sum_ms, 2 * 10 * kMinute);
    for (const auto& [ms, jobs] : two.up_to_ms) EXPECT_EQ(jobs, ms >= 1'048'576 ? 2U : 0U) << ms;
  }
}

/// Ten hours scheduled, two minutes available; then an hour until it is tried again, and a minute.
TEST(Waits, PRI_X2_runs_from_enqueue_and_FS_X3_from_availability) {
  QuietSegment s;
  s.stop_clock();
  JobSpec later = spec_of(3);
  later.scheduled_at_ms = s.now_ms() + 10 * kHour;
  s.put(later);
  s.pass(10 * kHour);
  s.move_clock(2 * kMinute);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(level(s, 3).from_enqueue.count, 1U);
  EXPECT_EQ(level(s, 3).from_enqueue.sum_ms, 10 * kHour + 2 * kMinute);
  EXPECT_EQ(level(s, 3).from_available.count, 1U);
  EXPECT_EQ(level(s, 3).from_available.sum_ms, 2 * kMinute);

  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(kHour);
  s.move_clock(kMinute);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(level(s, 3).from_enqueue.count, 2U) << "every attempt is a dispatch";
  EXPECT_EQ(level(s, 3).from_enqueue.sum_ms, 21 * kHour + 5 * kMinute);
  EXPECT_EQ(level(s, 3).from_available.count, 2U);
  EXPECT_EQ(level(s, 3).from_available.sum_ms, 3 * kMinute);
}

/// Three attempts of one job end otherwise, each after longer: a failure, a time limit, an ack.
TEST(Waits, a_run_is_counted_when_its_attempt_ends_but_not_when_it_is_given_back) {
  QuietSegment s;
  s.stop_clock();
  JobSpec job = spec_of(3);
  job.timeout_ms = 2 * kMinute;
  job.retry.initial_ms = 1;
  s.put(job);
  ASSERT_NE(s.take(), "");
  s.move_clock(kMinute);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  EXPECT_EQ(level(s, 3).runs.count, 0U) << "it was given back";

  ASSERT_NE(s.take(), "");
  s.move_clock(kMinute);
  EXPECT_EQ(level(s, 3).runs.count, 0U) << "it runs";
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  EXPECT_EQ(level(s, 3).runs.count, 1U);
  EXPECT_EQ(level(s, 3).runs.sum_ms, kMinute);

  s.pass(kMinute);
  ASSERT_NE(s.take(), "");
  s.pass(3 * kMinute);
  EXPECT_EQ(level(s, 3).runs.count, 2U) << "its time was over";
  EXPECT_EQ(level(s, 3).runs.sum_ms, kMinute + 3 * kMinute);

  s.pass(kMinute);
  ASSERT_NE(s.take(), "");
  s.move_clock(5);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(level(s, 3).runs.count, 3U);
  EXPECT_EQ(level(s, 3).runs.sum_ms, 4 * kMinute + 5);
  EXPECT_EQ(level(s, 3).runs.up_to_ms.front().second, 0U);
  EXPECT_EQ(level(s, 3).runs.up_to_ms[2].second, 1U) << "up to 16 ms";
}

TEST(Waits, PRI_X2_levels_and_handles_beyond_the_pages_are_counted_too) {
  QuietSegment s(few_slots(2048));
  std::uint64_t dispatched = 0;
  for (int handle = 0; handle < 24; ++handle) {
    Worker worker = Worker::attach(s.segment, {.queues = {"default", "other"}}).value();
    for (std::int64_t priority = 0; priority < 256; ++priority)
      s.put(priority, priority % 2 == 0 ? "default" : "other");
    while (worker.try_fetch(s.job)) {
      ASSERT_TRUE(worker.ack(s.job).ok());
      ++dispatched;
    }
    if (handle % 2 == 0) continue;
    std::uint64_t counted = s.observer.segment_info().unmeasured_waits_total;
    for (const LevelWaits& waits : s.observer.waits()) counted += waits.from_enqueue.count;
    ASSERT_EQ(counted, dispatched);
  }
  EXPECT_EQ(s.observer.segment_info().unmeasured_waits_total, 0U)
      << "pages of handles that are gone are used again";

  std::vector<Worker> living;
  for (int handle = 0; handle < 16; ++handle)
    living.push_back(Worker::attach(s.segment, {.queues = {"default"}}).value());
  for (Worker& worker : living)
    for (std::int64_t priority = 0; priority < 256; ++priority) {
      s.put(priority);
      ASSERT_TRUE(worker.try_fetch(s.job).ok());
      ASSERT_TRUE(worker.ack(s.job).ok());
      ++dispatched;
    }
  std::uint64_t counted = s.observer.segment_info().unmeasured_waits_total, runs = 0;
  for (const LevelWaits& waits : s.observer.waits()) {
    counted += waits.from_enqueue.count;
    EXPECT_EQ(waits.from_available.count, waits.from_enqueue.count);
    runs += waits.runs.count;
  }
  EXPECT_EQ(counted, dispatched);
  EXPECT_EQ(runs, dispatched - s.observer.segment_info().unmeasured_waits_total);
}

TEST(Waits, of_a_page_whose_lane_is_gone_are_kept_and_gone_on_with) {
  QuietSegment s;
  for (int i = 0; i < 50; ++i) {
    s.put(2);
    Worker worker = Worker::attach(s.segment, {}).value();
    ASSERT_TRUE(worker.try_fetch(s.job).ok());
    ASSERT_TRUE(worker.ack(s.job).ok());
  }
  std::uint32_t pages = 0;
  for (std::uint32_t i = 0; i < s.store().wait_pages.size(); ++i)
    pages += s.store().wait_pages[i].owner.load() != 0 ? 1 : 0;
  EXPECT_EQ(pages, 1U);
  EXPECT_EQ(level(s, 2).from_enqueue.count, 50U);
}

TEST(Waits, a_page_that_was_taken_and_nothing_counted_in_is_no_level) {
  QuietSegment s;
  s.put(1);
  ASSERT_NE(s.take(), "");
  const std::uint32_t queue = s.store().find_queue("default");
  // As a worker leaves it that is killed before its first count.
  s.store().wait_pages[s.store().wait_pages.size() - 1].owner.store(
      engine::WaitOwner(1, 0, engine::WaitOwner::key_of(queue, 7)).word, shm::Point::kNone);
  ASSERT_EQ(s.observer.waits().size(), 1U);
  EXPECT_EQ(s.observer.waits().front().priority, 1);
}

TEST(Waits, PRI_H3_PRI_R003_PRI_X1_only_available_jobs_are_counted_by_priority) {
  QuietSegment s;
  for (const std::int64_t priority : {0, 0, 0, 2, 7}) s.put(priority);
  JobSpec later = spec_of(2);
  later.scheduled_at_ms = s.now_ms() + kHour;
  s.put(later);
  JobSpec pending = spec_of(2);
  pending.pending = true;
  s.put(pending);
  s.take();  // one of priority 0 is active
  const QueueInfo queue = s.queue();
  EXPECT_THAT(queue.available_by_priority, ElementsAre(Pair(0, 2), Pair(2, 1), Pair(7, 1)));
  EXPECT_EQ(queue.by_state[static_cast<std::size_t>(State::kAvailable)], 4U) << "their sum";
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  s.drain();
  EXPECT_THAT(s.queue().available_by_priority, IsEmpty());
}

TEST(Waits, PRI_X3_a_change_of_priority_is_counted_once_and_a_refused_one_is_not) {
  QuietSegment s;
  const std::string id = s.put(2);
  s.put(2, "other");
  ASSERT_TRUE(s.producer.reprioritize(id, 0).ok());
  ASSERT_TRUE(s.admin.producer().reprioritize(id, 4).ok());
  ASSERT_TRUE(s.producer.reprioritize(id, 4).ok()) << "the same value";
  EXPECT_FALSE(s.producer.reprioritize(id, 256).ok());
  s.take();
  EXPECT_FALSE(s.producer.reprioritize(id, 1).ok());
  EXPECT_EQ(s.queue().reprioritized_total, 2U);
  EXPECT_EQ(s.queue("other").reprioritized_total, 0U);
}

TEST(Waits, PRI_X1_the_default_segment_holds_its_hundred_thousand_jobs_beside_the_pages) {
  QuietSegment s{SegmentOptions{}};
  EXPECT_LE(s.segment.size_bytes(), 64ULL << 20);
  EXPECT_GE(s.store().wait_pages.size(), s.store().lanes() * 8);
  EXPECT_GE(s.store().event_pages.size(), s.store().lanes() * 2);
  ASSERT_TRUE(s.admin.set_events(true).ok());
  const std::string args = "[\"" + std::string(60, 'x') + "\"]";
  JobSpec spec = spec_of();
  spec.args = args;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    spec.priority = i % 5;
    const auto put = s.producer.enqueue(spec);
    ASSERT_TRUE(put.ok()) << "job " << i << ": " << put.error().message;
  }
  EXPECT_LE(
      sizeof(engine::QueueRecord) + std::size_t{s.store().lanes()} * sizeof(engine::QueueTally),
      16U * 1024)
      << "an idle queue";
}

}  // namespace
}  // namespace ojs_shm::test
