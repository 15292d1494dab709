// SPDX-License-Identifier: Apache-2.0
// Bounds: exact, in jobs and in bytes, whichever lane enqueues and however many at once.

#include <thread>
#include <utility>

#include "engine/bounds/refill.hpp"
#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

void bound(QuietSegment& s, std::uint64_t jobs, std::uint64_t bytes = 0) {
  ASSERT_TRUE(s.admin.set_queue("default", {jobs, bytes, {}}).ok());
}

TEST(Bounds, BP_001_a_recount_is_not_misled_by_an_enqueue_beside_it) {
  QuietSegment s;
  s.put();
  bound(s, 10);
  s.put();
  s.put();
  Producer other = Producer::attach(s.segment).value();
  engine::QueueRecord& queue = s.store().queue(0);
  // a death between `reserved` and the tally
  queue.reserved.fetch_add(queue.reserved.load() / 2, shm::Point::kNone);
  queue.refill.store(1, shm::Point::kNone);
  {
    const void* before = nullptr;
    bool seen = false, done = false;
    const AtAccess between([&](shm::Access access, shm::Point, const void* word) {
      if (done || access != shm::Access::kLoad) return;
      if (seen) {
        done = true;
        EXPECT_TRUE(other.enqueue(spec_of()).ok());
      }
      seen = before == &queue.written_off && word == &queue.reserved;  // the recount alone
      before = word;
    });
    s.put();
    EXPECT_TRUE(done);
  }
  s.put();  // who comes next, with no lane beside it
  EXPECT_FALSE(engine::Refill(queue.refill.load()).pending());
  for (std::uint64_t depth = s.queue().depth; depth < 10; ++depth) s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

/// Between the look at what was reserved and the sums, more leave than were there: the rest came
/// after that look.
TEST(Bounds, BP_001_nobody_is_refused_by_sums_that_others_outran) {
  QuietSegment s;
  bound(s, 2);
  s.put();
  s.put();
  Producer other = Producer::attach(s.segment).value();
  const engine::QueueRecord& queue = s.store().queue(0);
  const void* before = nullptr;
  bool done = false;
  {
    const AtAccess between([&](shm::Access access, shm::Point, const void* word) {
      if (done || access != shm::Access::kLoad) return;
      // the first look believes in older sums
      if (std::exchange(before, word) == &queue.reserved && word == &queue.written_off) {
        done = true;
        s.drain();
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(other.enqueue(spec_of()).ok());
        s.drain();
      }
    });
    EXPECT_TRUE(s.producer.enqueue(spec_of()).ok());
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST(Bounds, BP_001_a_fetch_that_died_gives_no_room_to_who_counted_it) {
  QuietSegment s;
  s.put();
  bound(s, 2);
  internal::Handle* doomed = doomed_handle(s.segment);
  struct Died {};
  std::string body;
  engine::Fetched out;
  out.body = &body;
  try {
    const AtAccess killed([](shm::Access access, shm::Point point, const void*) {
      if (access == shm::Access::kWritten && point == shm::Point::kTallyOut) throw Died{};
    });
    doomed->actor().fetch(0, 0, false, out);
    ADD_FAILURE() << "the fetch did not die";
  } catch (const Died&) {}
  s.put();  // sums up with that fetch
  const std::uint32_t lane = doomed->lane();
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  s.segment.attachment()->give_lane(lane);
  EXPECT_EQ(s.queue().depth, 2U);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

TEST(Bounds, BP_001_n_are_accepted_and_the_next_is_refused) {
  QuietSegment s;
  bound(s, 10);
  for (int i = 0; i < 10; ++i) s.put();
  const auto refused = s.producer.enqueue(spec_of());
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().depth, 10U);
  ASSERT_NE(s.take(), "");
  s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

TEST(Bounds, BP_001_four_threads_never_exceed_it_and_always_reach_it) {
  QuietSegment s(few_slots(2048));
  constexpr std::uint64_t kBound = 37;
  bound(s, kBound);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    std::vector<std::uint64_t> accepted(4, 0), wrong(4, 0);
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        Producer producer = Producer::attach(s.segment).value();
        for (int i = 0; i < 60; ++i) {
          const auto put = producer.enqueue(spec_of(i % 5));
          if (put.ok())
            ++accepted[t];
          else if (put.code() != Code::kQueueFull)
            ++wrong[t];
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(accepted[0] + accepted[1] + accepted[2] + accepted[3], kBound);
    EXPECT_EQ(wrong[0] + wrong[1] + wrong[2] + wrong[3], 0U);
    EXPECT_EQ(s.queue().depth, kBound);
    ASSERT_EQ(s.drain().size(), kBound);
  }
}

TEST(Bounds, BP_001_no_credit_is_lost_while_workers_make_room) {
  QuietSegment s(few_slots(4096));
  constexpr std::uint64_t kBound = 16, kEach = 2000;
  bound(s, kBound);
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> done(2, 0);
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      Producer producer = Producer::attach(s.segment).value();
      for (std::uint64_t put = 0; put < kEach; put += producer.enqueue(spec_of(1)).ok() ? 1 : 0) {}
    });
    threads.emplace_back([&, t] {
      Worker worker = Worker::attach(s.segment, {}).value();
      for (Job job; done[t] < kEach;) {
        if (!worker.fetch(job, std::chrono::seconds(30)).ok()) break;
        done[t] += worker.ack(job).ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done[0] + done[1], 2 * kEach);
  EXPECT_EQ(s.queue().depth, 0U);
  bound(s, kBound);
  for (std::uint64_t i = 0; i < kBound; ++i) s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

TEST(Bounds, BP_002_BP_T03_a_refused_job_is_not_stored_and_the_error_says_by_what) {
  QuietSegment s;
  bound(s, 3);
  for (int i = 0; i < 3; ++i) s.put();
  const QueueInfo before = s.queue();
  const Error error = s.producer.enqueue(spec_of(0)).error();
  EXPECT_EQ(error.code, Code::kQueueFull);
  EXPECT_EQ(error.message, "Queue 'default' has reached its depth bound (3)");
  EXPECT_EQ(error.subject, "default");
  EXPECT_EQ(error.depth, 3U);
  EXPECT_EQ(error.bound, 3U);
  EXPECT_EQ(error.unit, "jobs");
  const QueueInfo after = s.queue();
  EXPECT_EQ(after.depth, before.depth);
  EXPECT_EQ(after.enqueued_total, before.enqueued_total);
  EXPECT_EQ(after.rejected_total, before.rejected_total + 1);
  EXPECT_EQ(s.observer.list({}).size(), 3U);
  s.put(0, "unbounded");
}

TEST(Bounds, BP_T01_depth_is_what_waits_for_a_worker) {
  QuietSegment s;
  JobSpec later = spec_of();
  later.scheduled_at_ms = s.now_ms() + kHour;
  JobSpec parked = spec_of();
  parked.pending = true;
  s.put(later);
  s.put(parked);
  s.put();
  s.put();
  EXPECT_EQ(s.queue().depth, 4U);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.queue().depth, 3U);  // active is not counted
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.queue().depth, 3U);
  const std::string id = s.take();
  EXPECT_EQ(s.queue().depth, 2U);
  ASSERT_EQ(s.worker.nack(s.job, failure())->state, State::kRetryable);
  EXPECT_EQ(s.queue().depth, 3U);
  ASSERT_TRUE(s.producer.cancel(id).ok());
  EXPECT_EQ(s.queue().depth, 2U);
}

TEST(Bounds, BP_T20_a_batch_that_does_not_fit_is_refused_as_a_whole) {
  QuietSegment s;
  bound(s, 4);
  s.put();
  s.put();
  EXPECT_EQ(s.producer.enqueue_batch(std::vector<JobSpec>(3, spec_of())).code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().depth, 2U);
  EXPECT_EQ(s.observer.list({}).size(), 2U);
  EXPECT_TRUE(s.producer.enqueue_batch(std::vector<JobSpec>(2, spec_of())).ok());
}

TEST(Bounds, BP_R001_the_size_of_a_queue_is_the_stored_bytes_of_its_jobs) {
  QuietSegment s;
  s.put();
  const std::uint64_t one = s.queue().size_bytes;
  JobSpec longer = spec_of();
  const std::string args = "[" + std::string(100, ' ') + "]";
  const std::size_t more = args.size() - longer.args.size();
  longer.args = args;
  ASSERT_TRUE(s.producer.enqueue(longer).ok());
  EXPECT_EQ(s.queue().size_bytes, 2 * one + more);
  ASSERT_TRUE(s.admin.set_queue("default", {.max_size_bytes = 3 * one + more}).ok());
  EXPECT_EQ(s.producer.enqueue(longer).code(), Code::kQueueFull);
  s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

TEST(Bounds, BP_T02_a_bound_without_a_strategy_refuses_at_once) {
  QuietSegment s;
  bound(s, 1);
  const std::string id = s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(s.state_of(id), State::kAvailable);  // neither waited for room nor made it
}

TEST(Bounds, BP_T14_whichever_bound_is_reached_first_refuses) {
  QuietSegment s;
  const std::string args = "[\"" + std::string(96, 'x') + "\"]";
  JobSpec spec = spec_of();
  spec.args = args;
  const std::uint64_t size = spec.type.size() + args.size();
  bound(s, 5, 100 * size);
  for (int i = 0; i < 5; ++i) s.put(spec);
  Error error = s.producer.enqueue(spec).error();
  EXPECT_EQ(error.code, Code::kQueueFull);
  EXPECT_EQ(error.unit, "jobs");
  EXPECT_EQ(s.drain().size(), 5U);
  bound(s, 100, 5 * size);
  for (int i = 0; i < 5; ++i) s.put(spec);
  EXPECT_EQ(s.queue().size_bytes, 5 * size);
  error = s.producer.enqueue(spec).error();
  EXPECT_EQ(error.code, Code::kQueueFull);
  EXPECT_EQ(error.unit, "bytes");
  EXPECT_EQ(error.depth, 5 * size);
  EXPECT_EQ(error.bound, 5 * size);
  EXPECT_EQ(error.message,
            "Queue 'default' has reached its size bound (" + std::to_string(5 * size) + " bytes)");
}

TEST(Bounds, BP_T15_both_bounds_are_0_unless_set_and_each_is_set_alone) {
  QuietSegment s;
  s.put();
  EXPECT_EQ(s.queue().max_depth, 0U);
  EXPECT_EQ(s.queue().max_size_bytes, 0U);
  ASSERT_TRUE(s.admin.set_queue("default", {7, {}, {}}).ok());
  ASSERT_TRUE(s.admin.set_queue("default", {{}, 9000, {}}).ok());
  EXPECT_EQ(s.queue().max_depth, 7U);
  EXPECT_EQ(s.queue().max_size_bytes, 9000U);
  ASSERT_TRUE(s.admin.set_queue("new-queue", {1, {}, {}}).ok());
  EXPECT_EQ(s.queue("new-queue").max_depth, 1U);
  EXPECT_EQ(s.admin.set_queue("default", {1ULL << 24, {}, {}}).error().subject, "max_depth");
  EXPECT_EQ(s.admin.set_queue("default", {{}, 1ULL << 40, {}}).error().subject, "max_size_bytes");
  EXPECT_EQ(s.admin.set_queue("No Queue", {1, {}, {}}).code(), Code::kInvalid);
  EXPECT_EQ(s.queue().max_depth, 7U);
}

TEST(Bounds, BP_T16_an_unbounded_queue_takes_what_the_segment_holds) {
  QuietSegment s(few_slots(100'000));
  for (int i = 0; i < 100'000; ++i) ASSERT_NE(s.put(i % 5), "");
  EXPECT_EQ(s.queue().depth, 100'000U);
  EXPECT_EQ(s.queue().rejected_total, 0U);
  const Error error = s.producer.enqueue(spec_of()).error();
  // another code than a full queue, which names what to make larger
  EXPECT_EQ(error.code, Code::kSegmentFull);
  EXPECT_EQ(error.subject, "slots");
  EXPECT_EQ(error.bound, 100'000U);
  EXPECT_EQ(error.depth, 100'000U);
}

TEST(Bounds, a_bound_below_the_present_depth_refuses_until_it_has_fallen) {
  QuietSegment s;
  for (int i = 0; i < 10; ++i) s.put();
  bound(s, 4);
  for (int left = 10; left > 4; --left) {
    EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull) << left;
    ASSERT_NE(s.take(), "");
  }
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  ASSERT_NE(s.take(), "");
  s.put();
  bound(s, 0);
  for (int i = 0; i < 100; ++i) s.put();
  bound(s, 104);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

TEST(Bounds, what_comes_back_is_never_refused_and_counts) {
  QuietSegment s;
  bound(s, 2);
  const std::string a = s.put(), b = s.put();
  Job first, second;
  ASSERT_TRUE(s.worker.try_fetch(first).ok());
  ASSERT_TRUE(s.worker.try_fetch(second).ok());
  s.put();
  s.put();
  ASSERT_TRUE(s.worker.requeue(first).ok());
  ASSERT_TRUE(s.worker.nack(second, failure()).ok());
  EXPECT_EQ(s.queue().depth, 4U);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(s.drain().size(), 3U);
  s.pass(kHour);
  EXPECT_EQ(s.drain(), std::vector<std::string>{b});
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST(Bounds, a_batch_is_admitted_or_refused_whole) {
  QuietSegment s;
  bound(s, 5);
  s.put();
  s.put();
  std::vector<JobSpec> batch(4, spec_of());
  EXPECT_EQ(s.producer.enqueue_batch(batch).code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().depth, 2U);
  batch.pop_back();
  EXPECT_TRUE(s.producer.enqueue_batch(batch).ok());
  EXPECT_EQ(s.queue().depth, 5U);
}

}  // namespace
}  // namespace ojs_shm::test
