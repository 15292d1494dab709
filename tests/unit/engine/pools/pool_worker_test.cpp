// SPDX-License-Identifier: Apache-2.0
// A lane as a worker of a pool, without an actor: at which queue it looks, and what it counts.
#include "engine/pools/pool_worker.hpp"
#include "engine/pools/pool_look.hpp"

#include "engine/limits/limits.hpp"
#include "engine/pools/pools.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::Outcome;

class PoolWorkers : public testing::Test {
 protected:
  PoolWorkers() {
    for (const char* queue : {"a", "b", "c"}) queues_.push_back(s.actor().ensure_queue(queue));
    set({.queues = queues_});
    for (const std::uint32_t queue : queues_) s.actor().bell().wake_one(s.store().queue(queue));
    worker.serve(engine::find_pool(s.store(), "p"));
  }
  void set(const engine::PoolSpec& spec) {
    bool made = false;
    ASSERT_EQ(engine::Pools(s.actor()).define("p", spec, made), Outcome::kOk);
  }
  std::uint32_t choose(engine::PoolTour& tour) {
    std::uint32_t queue = engine::kNoIndex;
    return worker.choose(tour, queue) == Outcome::kOk ? queue : engine::kNoIndex;
  }
  std::uint32_t choose() {
    engine::PoolTour tour;
    return choose(tour);
  }
  std::uint64_t dispatched() {
    std::uint64_t jobs = 0;
    for (const engine::Word& each : s.store().pools[0].dispatched)
      jobs += each.load() & ((1ULL << 52) - 1);
    return jobs;
  }

  QuietSegment s;
  std::vector<std::uint32_t> queues_;
  shm::Lane& lane = s.store().segment().lane(s.store().lanes() - 1);
  engine::PoolWorker worker{s.store(), lane};
};

TEST_F(PoolWorkers, a_turn_is_spent_with_each_choice) {
  EXPECT_EQ(choose(), queues_[0]);
  EXPECT_EQ(choose(), queues_[1]);
  EXPECT_EQ(choose(), queues_[2]);
  EXPECT_EQ(choose(), queues_[0]);
}

TEST_F(PoolWorkers, a_fetch_passes_what_it_found_empty_and_no_other_queue) {
  engine::PoolTour tour;
  for (const std::uint32_t queue : queues_) {
    EXPECT_EQ(choose(tour), queue);
    worker.passed(tour);
  }
  EXPECT_EQ(choose(tour), engine::kNoIndex);
  EXPECT_EQ(choose(), queues_[0]);  // the next fetch
}

TEST_F(PoolWorkers, a_change_of_the_pool_lets_a_fetch_begin_anew) {
  engine::PoolTour tour;
  EXPECT_EQ(choose(tour), queues_[0]);
  worker.passed(tour);
  set({.strategy = engine::PoolStrategy::kStrict, .queues = {queues_[0]}});
  EXPECT_EQ(choose(tour), queues_[0]);
}

TEST_F(PoolWorkers, whether_a_queue_is_quiet_is_asked_at_once_and_then_after_eight_fetches) {
  set({.queues = {queues_[0]}});
  for (int fetch = 0; fetch < 17; ++fetch) {
    engine::PoolTour tour;
    ASSERT_EQ(choose(tour), queues_[0]);
    EXPECT_EQ(worker.passed(tour), fetch % 8 == 0) << fetch;
  }
}

TEST_F(PoolWorkers, a_removed_pool_is_gone_and_one_in_its_place_is_another) {
  ASSERT_EQ(engine::Pools(s.actor()).remove("p"), Outcome::kOk);
  engine::PoolTour tour;
  std::uint32_t queue = 0;
  EXPECT_EQ(worker.choose(tour, queue), Outcome::kNotFound);
  bool made = false;
  ASSERT_EQ(engine::Pools(s.actor()).define("q", {.queues = queues_}, made), Outcome::kOk);
  ASSERT_EQ(engine::find_pool(s.store(), "q"), 0U);
  EXPECT_EQ(worker.choose(tour, queue), Outcome::kNotFound);
}

TEST_F(PoolWorkers, what_was_served_is_counted_and_is_no_longer_overdue) {
  set({.queues = queues_, .prevents = true});
  s.move_clock(kHour);
  engine::PoolTour tour;
  const std::uint32_t queue = choose(tour);
  const std::uint64_t before = dispatched();
  worker.count_served(tour);
  EXPECT_EQ(dispatched(), before + 1);
  EXPECT_GE(s.store().queue(queue).served_at.load() + kMinute, s.now_ms());
}

TEST_F(PoolWorkers, a_limit_is_known_at_once_and_taken_over_with_the_next_choice) {
  EXPECT_EQ(worker.limit_now(), engine::kNoIndex);
  set({.queues = queues_, .concurrency = 2});
  const std::uint32_t key = engine::find_limit(s.store(), "pool:p");
  ASSERT_NE(key, engine::kNoIndex);
  EXPECT_EQ(worker.limit(), engine::kNoIndex);
  EXPECT_EQ(worker.limit_now(), key);
  choose();
  EXPECT_EQ(worker.limit(), key);
}

TEST_F(PoolWorkers, a_job_s_word_names_worker_client_and_pool) {
  const engine::WorkerKey key(3, 7);
  worker.work_as(key, true);
  EXPECT_EQ(worker.pool_word(), key.word | engine::kForClient | 1U);
  worker.serve(4);
  EXPECT_EQ(worker.pool_word(), key.word | engine::kForClient | 5U);
  worker.work_as({});
  EXPECT_EQ(worker.pool_word(), 5U);
}

TEST_F(PoolWorkers, its_seat_says_how_much_it_may_have_and_whether_it_has_that) {
  const auto seat = [&] {
    return engine::PoolSeat(lane.counters[engine::kPoolSeat].get_ordered());
  };
  EXPECT_FALSE(seat().at(0));
  worker.join(0, 9);
  EXPECT_TRUE(seat().at(0));
  EXPECT_EQ(engine::PoolSeat::Concurrency::get(seat().word), 9U);
  worker.report_full(true);
  EXPECT_EQ(engine::PoolSeat::Full::get(seat().word), 1U);
  worker.report_full(false);
  EXPECT_EQ(engine::PoolSeat::Full::get(seat().word), 0U);
  engine::PoolWorker(s.store(), lane);  // the next one on this lane has none
  EXPECT_FALSE(seat().at(0));
}

TEST_F(PoolWorkers, an_isolated_queue_is_its_pool_s) {
  set({.queues = {queues_[0]}, .isolated = true});
  EXPECT_TRUE(worker.owns(s.store().queue(queues_[0])));
  EXPECT_FALSE(worker.owns(s.store().queue(queues_[1])));
}

}  // namespace
}  // namespace ojs_shm::test
