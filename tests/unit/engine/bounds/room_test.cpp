// SPDX-License-Identifier: Apache-2.0
// Enqueues that wait for room: first come, first let in; who gives up or dies holds no lane up.

#include <thread>
#include <vector>

#include "engine/supervision/repairer.hpp"
#include "shm/parking.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using namespace std::chrono_literals;
constexpr EnqueueOptions kLong{.block_timeout = 30s};

class Room : public testing::Test {
 protected:
  void bound(std::uint64_t jobs, BackpressureStrategy strategy = BackpressureStrategy::kBlock) {
    QueueSettings settings;
    settings.max_depth = jobs;
    settings.strategy = strategy;
    ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  }
  WaitingEnqueue begin(std::size_t jobs = 1, EnqueueOptions options = kLong) {
    const std::vector<JobSpec> specs(jobs, spec_of());
    return s.producer.begin(specs, options).value();
  }
  static bool decided(WaitingEnqueue& waiting) { return waiting.poll().has_value(); }
  static std::string id_of(WaitingEnqueue& waiting) {
    const auto outcome = waiting.poll();
    return outcome && outcome->ok() ? outcome->value().front().str() : std::string();
  }

  QuietSegment s;
};

TEST_F(Room, BP_T04_BP_T05_BP_R002_a_producer_waits_until_a_job_leaves) {
  bound(1);
  s.put();
  std::string admitted;
  std::thread producer([&] {
    Producer own = Producer::attach(s.segment).value();
    const auto id = own.enqueue(spec_of(), kLong);
    admitted = id.ok() ? id->str() : id.error().message;
  });
  EXPECT_TRUE(eventually([&] { return s.queue().waiting == 1; }));
  EXPECT_EQ(s.queue().depth, 1U);
  ASSERT_NE(s.take(), "");
  producer.join();
  EXPECT_EQ(s.take(), admitted);
  EXPECT_EQ(s.queue().waiting, 0U);
  EXPECT_EQ(s.queue().rejected_total, 0U);
}

TEST_F(Room, BP_T06_a_producer_whose_time_is_over_is_refused) {
  bound(1);
  s.put();
  const auto start = std::chrono::steady_clock::now();
  const auto refused = s.producer.enqueue(spec_of(), {.block_timeout = 50ms});
  EXPECT_GE(std::chrono::steady_clock::now() - start, 49ms);
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().strategy, "block");
  EXPECT_EQ(refused.error().depth, 1U);
  EXPECT_EQ(s.queue().rejected_total, 1U);
  EXPECT_EQ(s.queue().waiting, 0U);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(Room, BP_T07_without_a_time_to_wait_it_is_refused_at_once) {
  bound(1);
  s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(s.producer.enqueue(spec_of(), {}).code(), Code::kQueueFull);
  WaitingEnqueue no_time = begin(1, {});
  EXPECT_TRUE(decided(no_time));
}

TEST_F(Room, BP_T08_other_strategies_do_not_wait_and_wrong_times_are_refused) {
  bound(1, BackpressureStrategy::kReject);
  s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of(), kLong).code(), Code::kQueueFull);
  WaitingEnqueue waiting = begin();
  EXPECT_TRUE(decided(waiting));
  for (const auto wrong : {-1ms, std::chrono::milliseconds(1h) + 1ms}) {
    const auto refused = s.producer.enqueue(spec_of(), {.block_timeout = wrong});
    ASSERT_EQ(refused.code(), Code::kInvalid);
    EXPECT_EQ(refused.error().subject, "block_timeout");
  }
}

TEST_F(Room, BP_T05_who_came_first_is_let_in_first_and_nobody_passes) {
  bound(2);
  s.put();
  s.put();
  std::vector<WaitingEnqueue> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(begin());
  EXPECT_EQ(s.queue().waiting, 5U);
  Producer other = Producer::attach(s.segment).value();
  for (std::size_t turn = 0; turn < 5; ++turn) {
    ASSERT_NE(s.take(), "");
    EXPECT_EQ(other.enqueue(spec_of()).code(), Code::kQueueFull) << "passed those who wait";
    for (std::size_t i = waiting.size(); i-- > turn;)
      EXPECT_EQ(decided(waiting[i]), i == turn) << turn << ", " << i;
    EXPECT_EQ(s.queue().depth, 2U);
  }
  EXPECT_EQ(s.queue().waiting, 0U);
  ASSERT_NE(s.take(), "");
  EXPECT_TRUE(other.enqueue(spec_of()).ok());
}

TEST_F(Room, BP_T09_who_gives_up_leaves_nothing_and_holds_nobody_up) {
  bound(1);
  s.put();
  std::optional<WaitingEnqueue> first(begin());
  WaitingEnqueue second = begin();
  std::optional<WaitingEnqueue> third(begin());
  WaitingEnqueue fourth = begin();
  third.reset();
  ASSERT_NE(s.take(), "");
  EXPECT_FALSE(decided(second));
  first.reset();
  EXPECT_NE(id_of(second), "");
  EXPECT_FALSE(decided(fourth));
  EXPECT_EQ(s.take(), id_of(second));
  EXPECT_NE(id_of(fourth), "");
  EXPECT_EQ(s.queue().enqueued_total, 3U);
}

TEST_F(Room, BP_T09_one_that_was_killed_while_it_waited_holds_nobody_up) {
  bound(1);
  s.put();
  auto* doomed = doomed_handle(s.segment);
  engine::RoomPlace place;
  ASSERT_EQ(doomed->actor().await_room(0, ~0ULL >> 1, place), engine::Outcome::kOk);
  WaitingEnqueue waiting = begin();
  ASSERT_NE(s.take(), "");
  EXPECT_FALSE(decided(waiting));
  const std::uint32_t lane = doomed->lane();
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  s.segment.attachment()->give_lane(lane);
  EXPECT_TRUE(decided(waiting));
}

class Resting : public Room {
 protected:
  static constexpr std::uint64_t kForEver = engine::RoomRest::Until::kMax;
  /// The queue is full, and that handle waits, ready to rest.
  engine::RoomPlace lie_down(internal::Handle& handle, std::uint64_t depth) {
    bound(depth);
    while (s.producer.enqueue(spec_of()).ok()) {}
    engine::NewJob job;
    job.type = "t";
    job.queue = s.store().find_queue("default");
    handle.actor().be_patient(true);
    engine::JobId id;
    EXPECT_EQ(handle.actor().enqueue(job, id), engine::Outcome::kMustWait);
    engine::RoomPlace place;
    EXPECT_EQ(handle.actor().await_room(job.queue, kForEver, place), engine::Outcome::kOk);
    return place;
  }
  void leave(internal::Handle& handle, engine::RoomPlace place) {
    handle.actor().leave_room(s.store().find_queue("default"), place);
  }
  std::uint32_t calls(const internal::Handle& handle) {
    return s.store().segment().lane(handle.lane()).park.load();
  }
};

TEST_F(Resting, BP_T04_is_called_when_a_sixteenth_of_what_it_waits_for_has_left_and_not_before) {
  const auto handle = internal::Handle::make(s.segment).value();
  const engine::RoomPlace place = lie_down(*handle, 64);
  handle->actor().rest_in_line(place.ticket, kForEver);
  const std::uint32_t before = calls(*handle);
  for (int i = 0; i < 4; ++i) ASSERT_NE(s.take(), "");
  EXPECT_EQ(calls(*handle), before);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(calls(*handle), before + 1);
  leave(*handle, place);
}

TEST_F(Resting, BP_T04_is_called_at_once_when_its_rest_is_over_or_the_queue_is_short) {
  const auto handle = internal::Handle::make(s.segment).value();
  engine::RoomPlace place = lie_down(*handle, 64);
  handle->actor().rest_in_line(place.ticket, shm::steady_ms());
  std::uint32_t before = calls(*handle);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(calls(*handle), before + 1);
  leave(*handle, place);
  const auto other = internal::Handle::make(s.segment).value();
  while (s.queue().depth > 15) ASSERT_NE(s.take(), "");
  place = lie_down(*other, 15);
  other->actor().rest_in_line(place.ticket, kForEver);
  before = calls(*other);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(calls(*other), before + 1);
  leave(*other, place);
}

TEST_F(Resting, BP_T05_is_called_by_whoever_leaves_its_place_before) {
  const auto first = internal::Handle::make(s.segment).value(),
             second = internal::Handle::make(s.segment).value();
  const engine::RoomPlace place = lie_down(*first, 64), next = lie_down(*second, 64);
  second->actor().rest_in_line(next.ticket, kForEver);
  const std::uint32_t before = calls(*second);
  leave(*first, place);
  EXPECT_EQ(calls(*second), before + 1);
  leave(*second, next);
}

TEST_F(Room, BP_T04_who_waits_is_let_in_though_the_worker_fetches_once_and_never_again) {
  bound(64);
  for (int i = 0; i < 64; ++i) s.put();
  std::thread producer([&] {
    Producer own = Producer::attach(s.segment).value();
    EXPECT_TRUE(own.enqueue(spec_of(), kLong).ok());
  });
  EXPECT_TRUE(eventually([&] { return s.queue().waiting == 1; }));
  ASSERT_NE(s.take(), "");
  producer.join();
  EXPECT_EQ(s.queue().depth, 64U);
}

TEST_F(Room, BP_T09_one_that_is_stopped_beyond_its_time_holds_nobody_up) {
  bound(1);
  s.put();
  WaitingEnqueue stopped = begin(1, {.block_timeout = 1ms});  // no lane polls it
  WaitingEnqueue waiting = begin();
  ASSERT_NE(s.take(), "");
  EXPECT_TRUE(eventually([&] { return decided(waiting); }));
  EXPECT_NE(id_of(waiting), "");
  ASSERT_TRUE(decided(stopped));
  EXPECT_EQ(stopped.poll()->code(), Code::kQueueFull);
}

TEST_F(Room, BP_T21_a_batch_waits_for_room_for_all_of_it_and_keeps_its_place) {
  bound(4);
  for (int i = 0; i < 4; ++i) s.put();
  WaitingEnqueue batch = begin(3), single = begin();
  ASSERT_NE(s.take(), "");
  ASSERT_NE(s.take(), "");
  EXPECT_FALSE(decided(single));
  EXPECT_FALSE(decided(batch));
  EXPECT_EQ(s.queue().depth, 2U);
  ASSERT_NE(s.take(), "");
  ASSERT_TRUE(decided(batch));
  EXPECT_EQ(batch.poll()->value().size(), 3U);
  EXPECT_FALSE(decided(single));
  ASSERT_NE(s.take(), "");
  EXPECT_TRUE(decided(single));
}

TEST_F(Room, BP_T21_a_batch_larger_than_the_bound_is_refused_at_once) {
  bound(2);
  WaitingEnqueue batch = begin(3);
  ASSERT_TRUE(decided(batch));
  EXPECT_EQ(batch.poll()->code(), Code::kQueueFull);
  const std::vector<JobSpec> specs(3, spec_of());
  EXPECT_EQ(s.producer.enqueue_batch(specs, kLong).code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST_F(Room, a_change_of_the_bound_or_the_strategy_is_seen_by_those_who_wait) {
  bound(1);
  s.put();
  WaitingEnqueue first = begin(), second = begin(), third = begin();
  bound(2);
  EXPECT_TRUE(decided(first));
  EXPECT_FALSE(decided(second));
  bound(0);
  EXPECT_NE(id_of(second), "");
  EXPECT_NE(id_of(third), "");
  bound(1);
  WaitingEnqueue fourth = begin();
  EXPECT_FALSE(decided(fourth));
  bound(1, BackpressureStrategy::kReject);
  ASSERT_TRUE(decided(fourth));
  EXPECT_EQ(fourth.poll()->code(), Code::kQueueFull);
}

TEST_F(Room, BP_T09_who_comes_late_does_not_end_the_place_that_another_has_by_now) {
  QuietSegment small([] {
    SegmentOptions options = few_slots();
    options.max_waiting = 2;
    return options;
  }());
  ASSERT_TRUE(
      small.admin.set_queue("default", {.max_depth = 1, .strategy = BackpressureStrategy::kBlock})
          .ok());
  small.put();
  const JobSpec spec = spec_of();
  const auto begin_there = [&](EnqueueOptions options) {
    return small.producer.begin(std::span(&spec, 1), options).value();
  };
  WaitingEnqueue late = begin_there({.block_timeout = 1ms}), waiting = begin_there(kLong);
  ASSERT_NE(small.take(), "");
  EXPECT_TRUE(eventually([&] { return decided(waiting); }));
  const WaitingEnqueue third = begin_there(kLong), fourth = begin_there(kLong);
  EXPECT_EQ(small.queue().waiting, 2U);
  EXPECT_TRUE(decided(late));
  EXPECT_EQ(small.queue().waiting, 2U);
}

TEST_F(Room, a_thousand_wait_at_once_and_all_are_let_in_in_their_order) {
  QuietSegment large([] {
    SegmentOptions options = few_slots(4096);
    options.max_waiting = 1000;
    return options;
  }());
  ASSERT_TRUE(
      large.admin.set_queue("default", {.max_depth = 1, .strategy = BackpressureStrategy::kBlock})
          .ok());
  large.put();
  const JobSpec spec = spec_of();
  std::vector<WaitingEnqueue> waiting;
  for (int i = 0; i < 1000; ++i)
    waiting.push_back(large.producer.begin(std::span(&spec, 1), kLong).value());
  EXPECT_EQ(large.queue().waiting, 1000U);
  ASSERT_NE(large.take(), "");
  for (WaitingEnqueue& each : waiting) {
    ASSERT_TRUE(decided(each));
    EXPECT_EQ(large.take(), id_of(each));
  }
}

TEST_F(Room, places_are_given_back_and_when_all_are_taken_that_is_an_error_of_its_own) {
  bound(1);
  s.put();
  const std::uint32_t places = s.store().tickets.size();
  for (int round = 0; round < 3; ++round) {
    std::vector<WaitingEnqueue> waiting;
    for (std::uint32_t i = 0; i < places; ++i) waiting.push_back(begin());
    const JobSpec spec = spec_of();
    WaitingEnqueue one_more = s.producer.begin(std::span(&spec, 1), kLong).value();
    ASSERT_TRUE(decided(one_more));
    EXPECT_EQ(one_more.poll()->code(), Code::kSegmentFull);
    EXPECT_EQ(one_more.poll()->error().subject, "tickets");
  }
}

TEST_F(Room, those_who_gave_up_behind_a_patient_one_cost_no_memory) {
  bound(1);
  s.put();
  WaitingEnqueue patient = begin();
  const std::uint64_t before = s.pool_use("chunks");
  for (int i = 0; i < 20'000; ++i) (void)begin();
  s.put({}, "other");
  EXPECT_LE(s.pool_use("chunks"), before + 2000);
  ASSERT_NE(s.take(), "");
  EXPECT_TRUE(decided(patient));
}

TEST_F(Room, four_producers_and_two_workers_lose_nothing_at_a_narrow_bound) {
  bound(3);
  constexpr std::uint64_t kEach = 500;
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> put(4, 0), done(2, 0);
  for (std::size_t t = 0; t < put.size(); ++t)
    threads.emplace_back([&, t] {
      Producer producer = Producer::attach(s.segment).value();
      for (std::uint64_t i = 0; i < kEach; ++i)
        put[t] += producer.enqueue(spec_of(), kLong).ok() ? 1 : 0;
    });
  for (std::size_t t = 0; t < done.size(); ++t)
    threads.emplace_back([&, t] {
      Worker worker = Worker::attach(s.segment, {}).value();
      for (Job job; done[t] < put.size() * kEach / done.size();) {
        if (!worker.fetch(job, 30s).ok()) break;
        done[t] += worker.ack(job).ok() ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(put, std::vector<std::uint64_t>(4, kEach));
  EXPECT_EQ(done[0] + done[1], 4 * kEach);
  EXPECT_EQ(s.queue().rejected_total, 0U);
  EXPECT_EQ(s.queue().waiting, 0U);
}

}  // namespace
}  // namespace ojs_shm::test
