// SPDX-License-Identifier: Apache-2.0
// Jobs that a limit holds back: what happens to them meanwhile, and which is let go first.

#include "engine/pools/pools.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/limits/limited_jobs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Limits, a_key_holds_jobs_of_several_queues_back_and_lets_the_one_go_that_somebody_wants) {
  put("k", 1, 2, "a");
  hold("a");
  const std::string a = put("k", 1, 0, "a"), b = put("k", 1, 3, "b");
  EXPECT_EQ(hold("a"), "");
  EXPECT_EQ(hold("b"), "");
  ASSERT_TRUE(s.admin.set_queue("a", {{}, {}, true}).ok());  // paused: no lane takes its best
  ack(0);
  EXPECT_EQ(hold("b"), b);
  ASSERT_TRUE(s.admin.set_queue("a", {{}, {}, false}).ok());
  EXPECT_EQ(hold("a"), "");
  ack(1);
  EXPECT_EQ(hold("a"), a);
}

TEST_F(Limits, held_back_jobs_are_cancelled_expire_and_are_reprioritised_like_others) {
  put("k", 1);
  hold();
  const std::string cancelled = put("k", 1), raised = put("k", 1, 3), first = put("k", 1, 2);
  const JobLimit limit{"k", at_once(1)};
  JobSpec expiring = spec_of(0);
  expiring.limit = &limit;
  expiring.expires_at_ms = s.now_ms() + kMinute;
  const std::string expired = s.put(expiring);
  EXPECT_EQ(hold(), "");
  EXPECT_TRUE(s.producer.cancel(cancelled).ok());
  EXPECT_TRUE(s.producer.reprioritize(raised, 1).ok());
  s.pass(2 * kMinute);
  EXPECT_EQ(s.state_of(expired), State::kDiscarded);
  ack(0);
  EXPECT_EQ(hold(), raised);
  ack(1);
  EXPECT_EQ(hold(), first);
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST_F(Limits, whoever_was_let_go_and_is_cancelled_leaves_his_place_to_the_next) {
  put("k", 1);
  hold();
  const std::string second = put("k", 1), third = put("k", 1);
  EXPECT_EQ(hold(), "");
  ack(0);  // lets the second go
  EXPECT_TRUE(s.producer.cancel(second).ok());
  EXPECT_EQ(hold(), third);
}

TEST_F(Limits, a_held_back_job_is_cancelled_without_leaving_the_backlog_of_a_pool) {
  PoolSettings least_loaded;
  least_loaded.queues = {"default"};
  least_loaded.strategy = PoolStrategy::kLeastLoaded;
  ASSERT_TRUE(s.admin.set_pool("p", least_loaded).ok());
  put("a", 1);
  const std::string parked = put("a", 1);
  s.put(2);
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  const std::uint32_t queue = s.store().find_queue("default");
  EXPECT_EQ(s.store().backlogs[queue].load(), 0U);
  engine::recount_backlog(s.store(), queue);
  EXPECT_EQ(s.store().backlogs[queue].load(), 0U);
  ASSERT_TRUE(s.producer.cancel(parked).ok());
  EXPECT_EQ(s.store().backlogs[queue].load(), 0U);
}

TEST_F(Limits, PRI_T03_a_job_of_a_key_that_is_held_back_passes_none_of_its_level) {
  ASSERT_NE(put("k", 1), "");
  ASSERT_NE(hold(), "");
  const std::string parked = put("k", 1);
  EXPECT_EQ(hold(), "");
  const std::string first = s.put(2), second = s.put(2), late = put("k", 1);
  ack(0);
  EXPECT_EQ(s.drain(), (std::vector{parked, first, second, late}));
}

TEST_F(Limits, a_job_that_is_born_into_a_lot_counts_as_held_back) {
  put("k", 1);
  hold();
  put("k", 1);
  for (int look = 0; look < 100; ++look) EXPECT_EQ(s.take(), "");  // its line is closed
  put("k", 1);
  EXPECT_EQ(limit("k").exceeded_total, 2U);
}

TEST_F(Limits, PRI_T21_a_job_of_a_lot_that_becomes_the_best_is_let_go_first) {
  put("k", 1, 5);
  hold();
  put("k", 1, 5);
  const std::string raised = put("k", 1, 5);
  EXPECT_EQ(hold(), "");
  ack(0);
  ASSERT_TRUE(s.producer.reprioritize(raised, 0).ok());
  EXPECT_EQ(hold(), raised);
}

TEST_F(Limits, a_dead_hint_decides_for_no_level_of_an_ageing_lot) {
  AgingSettings aging;
  aging.preset = "ojs";
  aging.interval_ms = kMinute;
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = aging}).ok());
  put("k", 1);
  hold();
  const std::string low = put("k", 1, 4), gone = put("k", 1, 3);
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.producer.cancel(gone).ok());
  s.move_clock(5 * kMinute);
  put("k", 1, 3);
  EXPECT_EQ(hold(), "");
  ack(0);
  EXPECT_EQ(hold(), low);
}

TEST_F(Limits, a_retry_asks_its_limit_again) {
  put("k", 1);
  hold();
  EXPECT_TRUE(workers[0].nack(held[0], failure()).ok());
  const std::string other = put("k", 1);
  EXPECT_EQ(hold(), other);
  s.pass(kHour);
  s.pass(0);
  EXPECT_LE(limit("k").active, 1U);
}

TEST_F(Limits, a_lot_gives_the_job_first_that_has_risen_the_most) {
  AgingSettings aging;
  aging.preset = "ojs";
  aging.interval_ms = kMinute;
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = aging}).ok());
  const std::string first = put("k", 1);
  ASSERT_EQ(hold(), first);
  const std::string old = put("k", 1, 4);
  EXPECT_EQ(hold(), "") << "it waits in the lot";
  s.move_clock(5 * kMinute);
  const std::string fresh = put("k", 1, 0);
  ack(0);
  EXPECT_EQ(hold(), old) << "4 - 5 is better than 0";
  ack(1);
  EXPECT_EQ(hold(), fresh);
}

/// Another process puts the head of the lot's ring back to a dead hint, as often as a lane moves
/// it.
TEST_F(Limits, a_lot_of_an_ageing_queue_whose_ring_goes_in_circles_keeps_no_lane) {
  AgingSettings aging;
  aging.preset = "ojs";
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = aging}).ok());
  const std::string first = put("k", 1);
  ASSERT_EQ(hold(), first);
  const std::string gone = put("k", 1, 4);
  EXPECT_EQ(hold(), "") << "it waits in the lot";
  ASSERT_TRUE(s.producer.cancel(gone).ok());
  const std::uint32_t lot =
      engine::find_lot(s.store(), s.store().limit_keys[engine::find_limit(s.store(), "k")],
                       s.store().find_queue("default"));
  shm::Word& head = s.segment.attachment()
                        ->segment()
                        .ring(shm::Rings::find(s.store().lots[lot].rings, engine::normal_ring(4)))
                        .head;
  const std::uint64_t before = head.load(), longest = s.actor().rings().longest_search();
  std::uint64_t moves = 0;
  {
    const AtAccess again([&](shm::Access access, shm::Point, const void* word) {
      if (access != shm::Access::kWritten || word != head.address() || head.load() == before)
        return;
      if (++moves <= longest) head.store(before, shm::Point::kNone);
    });
    ack(0);
  }
  EXPECT_GT(moves, 1U);
  EXPECT_LE(moves, longest);
  const std::string next = put("k", 1);
  EXPECT_EQ(hold(), next);
}

TEST(LimitLots, of_a_key_are_no_more_than_it_can_name) {
  SegmentOptions options = few_slots(16'384);
  options.max_queues = 16;
  QuietSegment s(options);
  RateLimit none;
  none.concurrency = 0;
  const JobLimit limit{"k", none};
  for (int q = 0; q < 12; ++q) {
    const std::string queue = "q" + std::to_string(q);
    JobSpec spec = spec_of(2, queue);
    spec.limit = &limit;
    s.put(spec);
    Worker worker = Worker::attach(s.segment, {.queues = {queue}}).value();
    EXPECT_FALSE(worker.try_fetch(s.job).ok());
  }
  ASSERT_GT(s.store().lots.size(), 12U);
  unsigned taken = 0;
  for (std::uint32_t lot = 0; lot < s.store().lots.size(); ++lot)
    taken += s.store().lots[lot].owner.load() != 0;
  EXPECT_EQ(taken, engine::kLotsPerKey);
}

}  // namespace
}  // namespace ojs_shm::test
