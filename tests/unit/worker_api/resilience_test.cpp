// SPDX-License-Identifier: Apache-2.0
// What a producer does about refusals: retries, circuit breaker, local buffer; on clocks that only
// the tests move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ojs_shm/resilience.hpp>

#include "tests/support/clocks.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;
using testing::ElementsAre;

/// A queue with room for one job, and that one in it.
struct Full : QuietSegment {
  Full() {
    bound(1);
    put();
  }
  void bound(std::uint64_t jobs, std::string_view queue = "default") {
    QueueSettings settings;
    settings.max_depth = jobs;
    EXPECT_TRUE(admin.set_queue(queue, settings).ok());
  }
  Error refusal() { return producer.enqueue(spec_of()).error(); }
  ResilientProducer resilient(ResilienceOptions options) {
    return ResilientProducer(Producer::attach(segment).value(), std::move(options));
  }
  std::shared_ptr<LocalBuffer> buffer(const LocalBufferOptions& options,
                                      std::shared_ptr<Clock> clock,
                                      std::shared_ptr<CircuitBreaker> breaker = nullptr) {
    return LocalBuffer::start(segment, options, std::move(breaker), std::move(clock)).value();
  }
};

/// A job whose args are the number.
struct Numbered {
  explicit Numbered(int number, std::string_view queue = "default")
      : args("[" + std::to_string(number) + "]") {
    spec = spec_of({}, queue);
    spec.args = args;
  }
  std::string args;
  JobSpec spec;
};

TEST(Resilience, BP_P1_the_delay_is_the_recommended_one_and_then_doubles_up_to_a_maximum) {
  EXPECT_EQ(next_delay(0ms, 5s, 60s), 5s);
  EXPECT_EQ(next_delay(5s, 5s, 60s), 10s);
  EXPECT_EQ(next_delay(40s, 5s, 60s), 60s);
  EXPECT_EQ(next_delay(60s, 5s, 60s), 60s);
  EXPECT_EQ(next_delay(0ms, 90s, 60s), 90s) << "the recommendation counts beyond the maximum";
  EXPECT_EQ(next_delay(90s, 90s, 60s), 90s);
  EXPECT_EQ(next_delay(5s, 30s, 60s), 10s) << "it is that of the first refusal";
  EXPECT_EQ(next_delay(milliseconds::max(), 1s, milliseconds::max()), milliseconds::max());
}

TEST(Resilience, BP_P1_an_error_that_recommends_nothing_means_a_second) {
  Error refusal{Code::kQueueFull};
  EXPECT_EQ(recommended_delay(refusal), 1s);
  refusal.retry_after_ms = 5'000;
  EXPECT_EQ(recommended_delay(refusal), 5s);
  refusal.retry_after_ms = 20;
  EXPECT_EQ(recommended_delay(refusal), 1s);
  Full full;
  full.stop_clock();
  EXPECT_EQ(recommended_delay(full.refusal()), 1s);
}

TEST(Resilience,
     BP_P1_a_refused_job_is_tried_again_after_growing_pauses_and_then_the_error_surfaces) {
  Full full;
  full.stop_clock();
  const auto clock = std::make_shared<JumpingClock>();
  auto producer = full.resilient({.retry = {.retries = 5, .max_delay = 6s}, .clock = clock});
  const milliseconds first = recommended_delay(full.refusal());
  const std::uint64_t before = full.queue().rejected_total;
  const auto refused = producer.enqueue(spec_of());
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().bound, 1U);
  EXPECT_THAT(clock->waits, ElementsAre(first, 2 * first, 4 * first, 6s, 6s));
  EXPECT_EQ(full.queue().rejected_total - before, 6U) << "the first try and five more";
  EXPECT_EQ(full.queue().depth, 1U);
}

TEST(Resilience, BP_P1_the_first_pause_is_what_the_refusal_recommends) {
  Full full;
  full.stop_clock();
  (void)full.refusal();
  full.move_clock(2'000);  // no job has left since
  const milliseconds first = recommended_delay(full.refusal());
  ASSERT_GT(first, 1s);
  const auto clock = std::make_shared<JumpingClock>();
  auto producer = full.resilient({.retry = {.retries = 2}, .clock = clock});
  ASSERT_EQ(producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_THAT(clock->waits, ElementsAre(first, std::min<milliseconds>(2 * first, 60s)));
}

TEST(Resilience, BP_P1_room_that_appears_ends_the_retries) {
  Full full;
  const auto clock = std::make_shared<JumpingClock>();
  auto producer = full.resilient({.retry = {.retries = 9}, .clock = clock});
  clock->after_wait = [&] {
    if (clock->waits.size() == 3) full.drain();
  };
  const auto sent = producer.enqueue(spec_of());
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_FALSE(sent->buffered);
  EXPECT_EQ(clock->waits.size(), 3U);
  EXPECT_EQ(full.state_of(sent->id.view()), State::kAvailable);
}

TEST(Resilience, BP_P1_a_batch_waits_as_a_whole_and_one_that_can_never_fit_does_not_wait) {
  Full full;
  full.bound(2);
  const auto clock = std::make_shared<JumpingClock>();
  auto producer = full.resilient({.retry = {.retries = 4}, .clock = clock});
  const std::vector<JobSpec> three(3, spec_of()), two(2, spec_of());
  EXPECT_EQ(producer.enqueue_batch(three).code(), Code::kQueueFull);
  EXPECT_TRUE(clock->waits.empty());
  clock->after_wait = [&] { full.drain(); };
  const auto sent = producer.enqueue_batch(two);
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_EQ(sent->ids.size(), 2U);
  EXPECT_EQ(clock->waits.size(), 1U);
}

TEST(Resilience, BP_P1_other_errors_are_not_retried_and_nothing_is_retried_unless_asked_for) {
  Full full;
  const auto clock = std::make_shared<JumpingClock>();
  auto plain = full.resilient({.clock = clock});
  EXPECT_EQ(plain.enqueue(spec_of()).code(), Code::kQueueFull);
  auto producer = full.resilient({.retry = {.retries = 5}, .clock = clock});
  EXPECT_EQ(producer.enqueue(spec_of(1000)).code(), Code::kInvalid);
  EXPECT_TRUE(clock->waits.empty());
}

TEST(Resilience, BP_P2_the_circuit_opens_after_five_refusals_in_a_row_and_nobody_is_asked) {
  Full full;
  const auto clock = std::make_shared<JumpingClock>();
  const auto breaker = std::make_shared<CircuitBreaker>(CircuitBreaker::Options{}, clock);
  auto producer = full.resilient({.breaker = breaker, .clock = clock});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(breaker->state("default"), CircuitBreaker::State::kClosed);
  EXPECT_EQ(producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(breaker->state("default"), CircuitBreaker::State::kOpen);

  full.drain();
  const std::uint64_t asked = full.queue().rejected_total;
  const auto refused = producer.enqueue(spec_of());
  ASSERT_EQ(refused.code(), Code::kQueueFull) << "there is room, but no lane asks";
  EXPECT_EQ(refused.error().bound, 1U);
  EXPECT_NE(refused.error().message.find("5 refusals"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(full.queue().rejected_total, asked);
  EXPECT_TRUE(producer.enqueue(spec_of({}, "other")).ok()) << "each queue has its own circuit";
}

TEST(Resilience, BP_P2_it_half_opens_after_ten_seconds_for_one_caller_and_closes_on_success) {
  Full full;
  const auto clock = std::make_shared<JumpingClock>();
  CircuitBreaker breaker({}, clock);
  const Error refusal = full.refusal();
  for (int i = 0; i < 5; ++i) breaker.settle("default", &refusal);
  clock->pass(9'999ms);
  EXPECT_TRUE(breaker.admit("default").has_value());
  clock->pass(1ms);
  EXPECT_EQ(breaker.state("default"), CircuitBreaker::State::kHalfOpen);
  EXPECT_FALSE(breaker.admit("default").has_value());
  EXPECT_TRUE(breaker.admit("default").has_value()) << "one caller tries";
  breaker.settle("default", nullptr);
  EXPECT_EQ(breaker.state("default"), CircuitBreaker::State::kClosed);
  // From here it takes five again.
  for (int i = 0; i < 4; ++i) breaker.settle("default", &refusal);
  EXPECT_EQ(breaker.state("default"), CircuitBreaker::State::kClosed);
}

TEST(Resilience,
     BP_P2_a_refused_try_opens_it_again_and_a_try_that_came_to_nothing_lets_the_next_one_in) {
  Full full;
  const auto clock = std::make_shared<JumpingClock>();
  CircuitBreaker breaker({}, clock);
  const Error refusal = full.refusal(), other = Error{Code::kInvalid};
  for (int i = 0; i < 5; ++i) breaker.settle("default", &refusal);
  clock->pass(10s);
  EXPECT_FALSE(breaker.admit("default").has_value());
  breaker.settle("default", &refusal);
  EXPECT_EQ(breaker.state("default"), CircuitBreaker::State::kOpen);
  clock->pass(10s);
  EXPECT_FALSE(breaker.admit("default").has_value());
  breaker.settle("default", &other);
  EXPECT_FALSE(breaker.admit("default").has_value());
  clock->pass(10s);
  EXPECT_FALSE(breaker.admit("default").has_value()) << "a lane that tried never came back";
}

TEST(Resilience, BP_P2_a_success_between_refusals_starts_the_count_anew) {
  Full full;
  CircuitBreaker breaker({}, std::make_shared<JumpingClock>());
  const Error refusal = full.refusal();
  for (int i = 0; i < 20; ++i) breaker.settle("default", i % 5 == 4 ? nullptr : &refusal);
  EXPECT_EQ(breaker.state("default"), CircuitBreaker::State::kClosed);
}

TEST(Resilience, BP_P2_an_open_circuit_ends_the_retries) {
  Full full;
  const auto clock = std::make_shared<JumpingClock>();
  const auto breaker =
      std::make_shared<CircuitBreaker>(CircuitBreaker::Options{.refusals = 2}, clock);
  auto producer = full.resilient({.retry = {.retries = 50}, .breaker = breaker, .clock = clock});
  EXPECT_EQ(producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(clock->waits.size(), 2U);
}

TEST(Resilience,
     BP_P3_refused_jobs_wait_in_the_buffer_and_are_brought_in_their_order_when_there_is_room) {
  Full full;
  full.stop_clock();
  const auto clock = std::make_shared<SteppedClock>();
  const auto buffer = full.buffer({}, clock);
  auto producer = full.resilient({.buffer = buffer, .clock = clock});
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    const auto sent = producer.enqueue(Numbered(i).spec);
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    EXPECT_TRUE(sent->buffered);
    ids.push_back(sent->id.str());
  }
  EXPECT_TRUE(buffer->holds("default"));
  ASSERT_TRUE(eventually([&] { return clock->awaited(1s); })) << "the sender was refused and waits";
  full.bound(10);
  clock->pass(999ms);
  ASSERT_TRUE(eventually([&] { return clock->awaited(1ms); }));
  EXPECT_EQ(buffer->jobs(), 3U) << "not before its time";
  clock->pass(1ms);
  ASSERT_TRUE(eventually([&] { return buffer->jobs() == 0; }));
  EXPECT_TRUE(buffer->flush(0ms).ok());
  full.take();
  EXPECT_TRUE(full.worker.ack(full.job).ok());
  EXPECT_EQ(full.drain(), ids) << "under the ids that were promised";
  EXPECT_TRUE(buffer->close().empty());
}

TEST(Resilience, BP_P3_its_backoff_doubles_as_well) {
  Full full;
  const auto clock = std::make_shared<SteppedClock>();
  const auto buffer = full.buffer({.max_delay = 4s}, clock);
  ASSERT_TRUE(buffer->put(std::vector{spec_of()}, nullptr).ok());
  for (const milliseconds delay : {1000ms, 2000ms, 4000ms, 4000ms}) {
    ASSERT_TRUE(eventually([&] { return clock->awaited(delay); })) << delay.count();
    clock->pass(delay);
  }
  EXPECT_EQ(buffer->close().size(), 1U);
}

TEST(Resilience, BP_P3_the_buffer_has_a_bound_of_its_own_in_jobs_and_in_bytes) {
  Full full;
  const auto clock = std::make_shared<SteppedClock>();
  const auto buffer = full.buffer({.max_jobs = 2, .max_bytes = 2000}, clock);
  auto producer = full.resilient({.buffer = buffer, .clock = clock});
  const std::string large = "[\"" + std::string(1500, 'x') + "\"]";
  JobSpec spec = spec_of();
  spec.args = large;
  EXPECT_TRUE(producer.enqueue(spec).ok());
  const auto bytes = producer.enqueue(spec);
  ASSERT_EQ(bytes.code(), Code::kQueueFull);
  EXPECT_EQ(bytes.error().unit, "bytes");
  EXPECT_TRUE(producer.enqueue(spec_of()).ok());
  const auto jobs = producer.enqueue(spec_of());
  ASSERT_EQ(jobs.code(), Code::kQueueFull);
  EXPECT_EQ(jobs.error().depth, 2U);
  EXPECT_EQ(jobs.error().bound, 2U);
  EXPECT_EQ(buffer->close().size(), 2U);
}

TEST(Resilience, BP_P3_a_full_queue_does_not_hold_up_another_ones_jobs) {
  Full full;
  const auto clock = std::make_shared<SteppedClock>();
  const auto buffer = full.buffer({}, clock);
  ASSERT_TRUE(buffer->put(std::vector{spec_of()}, nullptr).ok());
  const auto other = buffer->put(std::vector{spec_of({}, "other")}, nullptr);
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(eventually([&] { return full.observer.get(other->front().view()).ok(); }));
  EXPECT_EQ(buffer->close().size(), 1U);
}

TEST(Resilience, BP_P3_close_gives_back_what_was_not_sent_with_the_reason_and_flush_says_how_many) {
  Full full;
  const auto clock = std::make_shared<SteppedClock>();
  const auto buffer = full.buffer({}, clock);
  const Numbered seven(7), eight(8);
  const std::vector<JobSpec> batch = {seven.spec, eight.spec};
  const auto ids = buffer->put(batch, nullptr);
  ASSERT_TRUE(ids.ok());
  ASSERT_TRUE(eventually([&] { return clock->awaited(1s); }));
  const Status flushed = buffer->flush(0ms);
  ASSERT_EQ(flushed.code(), Code::kTimeout);
  EXPECT_EQ(flushed.error().depth, 2U);
  const std::vector<UnsentJob> unsent = buffer->close();
  ASSERT_EQ(unsent.size(), 2U);
  EXPECT_EQ(unsent[0].job.view().args, "[7]");
  EXPECT_EQ(unsent[1].job.view().args, "[8]");
  EXPECT_EQ(unsent[0].job.id, ids->front().view());
  EXPECT_EQ(unsent[0].error.code, Code::kQueueFull);
  EXPECT_TRUE(buffer->close().empty());
  EXPECT_EQ(buffer->put(batch, nullptr).code(), Code::kClosed);
  EXPECT_EQ(full.queue().depth, 1U);
}

TEST(Resilience, BP_P3_what_no_waiting_mends_is_given_back_and_counts_until_then) {
  Full full;
  full.bound(0);
  const auto buffer = full.buffer({}, std::make_shared<SteppedClock>());
  ASSERT_TRUE(buffer->put(std::vector{spec_of(1000)}, nullptr).ok());
  const auto good = buffer->put(std::vector{spec_of()}, nullptr);
  ASSERT_TRUE(eventually([&] { return buffer->flush(0ms).ok(); }));
  EXPECT_EQ(full.state_of(good->front().view()), State::kAvailable)
      << "those behind it are brought";
  EXPECT_EQ(buffer->jobs(), 1U);
  const auto failed = buffer->take_failed();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].error.code, Code::kInvalid);
  EXPECT_EQ(buffer->jobs(), 0U);
}

TEST(Resilience, BP_P3_producers_in_many_threads_share_a_buffer_and_lose_nothing) {
  constexpr int kThreads = 4, kJobs = 60;
  Full full;
  const auto clock = std::make_shared<SteppedClock>();
  const auto buffer = full.buffer({}, clock);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&] {
      auto producer = full.resilient({.buffer = buffer, .clock = clock});
      for (int i = 0; i < kJobs; ++i) EXPECT_TRUE(producer.enqueue(Numbered(i).spec).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  full.bound(0);
  ASSERT_TRUE(eventually([&] {
    clock->pass(60s);
    return buffer->jobs() == 0;
  })) << buffer->jobs()
      << " left";
  EXPECT_EQ(full.drain().size(), 1U + kThreads * kJobs);
}

TEST(Resilience, BP_P3_an_open_circuit_sends_jobs_into_the_buffer_and_the_sender_closes_it) {
  Full full;
  const auto clock = std::make_shared<SteppedClock>();
  const auto breaker =
      std::make_shared<CircuitBreaker>(CircuitBreaker::Options{.refusals = 1}, clock);
  const auto buffer = full.buffer({}, clock, breaker);
  auto producer = full.resilient({.breaker = breaker, .buffer = buffer, .clock = clock});
  EXPECT_TRUE(producer.enqueue(spec_of())->buffered);
  EXPECT_EQ(breaker->state("default"), CircuitBreaker::State::kOpen);
  const std::uint64_t asked = full.queue().rejected_total;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(eventually([&] { return clock->awaited(1s); }));
    clock->pass(1s);
  }
  EXPECT_EQ(full.queue().rejected_total, asked) << "the sender keeps away too";
  full.drain();
  ASSERT_TRUE(eventually([&] {
    clock->pass(1s);
    return buffer->jobs() == 0;
  }));
  EXPECT_EQ(breaker->state("default"), CircuitBreaker::State::kClosed);
}

}  // namespace
}  // namespace ojs_shm::test
