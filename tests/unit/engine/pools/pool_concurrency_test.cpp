// SPDX-License-Identifier: Apache-2.0
// How many jobs a pool, or one of its workers, has at work.

#include "tests/unit/engine/pools/pool_members.hpp"

namespace ojs_shm::test {
namespace {

TEST(Pools, FS_T12_a_worker_gets_no_more_than_its_concurrency) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"}, PoolStrategy::kLeastLoaded)).ok());
  fill(s, {"a"}, 5);
  Worker worker = Worker::attach(s.segment, member_of("p", 2)).value();
  Job first, second, third;
  ASSERT_TRUE(worker.try_fetch(first).ok());
  ASSERT_TRUE(worker.try_fetch(second).ok());
  EXPECT_EQ(worker.try_fetch(third).code(), Code::kEmpty);
  EXPECT_EQ(worker.fetch(third, std::chrono::milliseconds(1)).code(), Code::kTimeout);
  Worker idle = Worker::attach(s.segment, member_of("p", 2)).value();
  EXPECT_TRUE(idle.try_fetch(third).ok());
  ASSERT_TRUE(idle.ack(third).ok());
  ASSERT_TRUE(worker.ack(first).ok());
  EXPECT_TRUE(worker.try_fetch(first).ok());
  EXPECT_EQ(worker.try_fetch(third).code(), Code::kEmpty);
}

TEST(Pools, FS_R001_FS_T20_a_pool_has_no_more_active_jobs_than_its_concurrency) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a", "b"});
  settings.concurrency = 2;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, {"a", "b"}, 4);
  Worker first = Worker::attach(s.segment, member_of()).value(),
         second = Worker::attach(s.segment, member_of()).value();
  Job one, two, three;
  ASSERT_TRUE(first.try_fetch(one).ok());
  ASSERT_TRUE(second.try_fetch(two).ok());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(first.try_fetch(three).code(), Code::kEmpty);
  EXPECT_EQ(s.observer.pool("p")->active_jobs, 2U);
  EXPECT_EQ(s.observer.pool("p")->utilization(), 1.0);
  ASSERT_TRUE(first.ack(one).ok());
  ASSERT_TRUE(second.try_fetch(one).ok());
  EXPECT_EQ(one.queue(), "a");  // no turn was spent in vain
  ASSERT_TRUE(second.nack(two, failure()).ok());
  ASSERT_TRUE(first.try_fetch(two).ok());
  EXPECT_EQ(two.queue(), "b");
  settings.concurrency = 3;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  ASSERT_TRUE(first.try_fetch(three).ok());
  EXPECT_EQ(first.try_fetch(s.job).code(), Code::kEmpty);
  settings.concurrency = 0;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_TRUE(first.try_fetch(s.job).ok());
}

TEST(Pools, FS_R001_a_concurrency_that_is_set_counts_what_is_at_work) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a"});
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, {"a"}, 4);
  Worker first = Worker::attach(s.segment, member_of()).value(),
         second = Worker::attach(s.segment, member_of()).value();
  Job one, two, three;
  ASSERT_TRUE(first.try_fetch(one).ok() && first.try_fetch(two).ok());
  settings.concurrency = 2;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(second.try_fetch(three).code(), Code::kEmpty);
  ASSERT_TRUE(first.ack(one).ok());
  ASSERT_TRUE(second.try_fetch(three).ok());
  EXPECT_EQ(first.try_fetch(one).code(), Code::kEmpty);
}

TEST(Pools, FS_R001_a_pool_that_is_removed_leaves_no_limit_behind) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a"});
  settings.concurrency = 1;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(s.observer.limit("pool:p")->limit.concurrency, 1U);
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  EXPECT_FALSE(s.observer.limit("pool:p")->limit.concurrency.has_value());
}

}  // namespace
}  // namespace ojs_shm::test
