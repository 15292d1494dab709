// SPDX-License-Identifier: Apache-2.0
// The order within a queue as a lane sets it, without an actor.
#include "engine/fetch/queue_order.hpp"

#include "engine/tables/new_job.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::Outcome;

class QueueOrders : public testing::Test {
 protected:
  std::uint64_t flags() { return queue().flags.load(); }
  engine::QueueRecord& queue() { return s.store().queue(q); }
  Outcome choose(engine::QueueOrder& by, std::optional<std::uint8_t> rate, unsigned& part) {
    engine::NewJob job;
    job.queue = q;
    job.age_rate = rate;
    return by.choose_part(job, queue(), part);
  }
  QuietSegment s;
  const std::uint32_t q = s.actor().ensure_queue("ordered");
  engine::QueueOrder order{s.store(), 5};
};

TEST_F(QueueOrders, a_queue_follows_the_default_until_it_has_ageing_of_its_own) {
  const engine::Aging on(true, false, kHour, 1, engine::Aging::kNoBest);
  const engine::Aging off(false, false, kHour, 1, engine::Aging::kNoBest);
  order.set_default_aging(on);
  EXPECT_NE(flags() & engine::kAges, 0U);
  order.set_aging(q, off);
  EXPECT_EQ(flags() & engine::kAges, 0U);
  order.set_aging(q, engine::Aging(0));
  EXPECT_NE(flags() & engine::kAges, 0U);
}

TEST_F(QueueOrders, a_lane_has_one_shard) {
  ASSERT_EQ(order.set_shards(q, 4), Outcome::kOk);
  engine::QueueOrder other(s.store(), 4);
  unsigned part = 99;
  EXPECT_EQ(choose(order, {}, part), Outcome::kOk);
  EXPECT_EQ(part, 1U);
  EXPECT_EQ(choose(other, {}, part), Outcome::kOk);
  EXPECT_EQ(part, 0U);
  EXPECT_EQ(choose(order, 3, part), Outcome::kRateOfShard);
}

TEST_F(QueueOrders, jobs_of_one_rate_share_a_part_that_two_lanes_find) {
  engine::QueueOrder other(s.store(), 4);
  unsigned first = 99, second = 99, third = 99;
  ASSERT_EQ(choose(order, 3, first), Outcome::kOk);
  ASSERT_EQ(choose(other, 3, second), Outcome::kOk);
  ASSERT_EQ(choose(other, 4, third), Outcome::kOk);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, third);
  EXPECT_NE(flags() & engine::kParted, 0U);
  EXPECT_EQ(order.set_shards(q, 2), Outcome::kRateOfShard);
}

TEST_F(QueueOrders, weights_are_in_force_while_there_are_any) {
  const engine::QueueOrder::LevelWeight weights[] = {{0, 3}, {2, 1}};
  ASSERT_EQ(order.set_level_weights(q, weights), Outcome::kOk);
  EXPECT_NE(flags() & engine::kWeighted, 0U);
  EXPECT_EQ(engine::Turn::Length::get(queue().turn.load()), 4U);
  ASSERT_EQ(order.set_level_weights(q, {}), Outcome::kOk);
  EXPECT_EQ(flags() & engine::kWeighted, 0U);
}

}  // namespace
}  // namespace ojs_shm::test
