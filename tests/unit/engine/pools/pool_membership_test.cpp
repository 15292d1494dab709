// SPDX-License-Identifier: Apache-2.0
// Whose a queue is, and whose a worker.

#include <poll.h>

#include "engine/pools/pools.hpp"
#include "engine/tables/busy_word.hpp"
#include "tests/unit/engine/pools/pool_members.hpp"

namespace ojs_shm::test {
namespace {

TEST(Pools, FS_T07_FS_R006_an_isolated_queue_is_for_its_pool_alone) {
  QuietSegment s;
  PoolSettings settings = pool_of({"gpu"});
  settings.isolated = true;
  s.put(2, "gpu");
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  ASSERT_TRUE(s.admin.set_pool("others", pool_of({"gpu", "a"})).ok());
  s.put(2, "gpu");
  EXPECT_EQ(next(s, {.queues = {"gpu"}}), "");  // without a pool
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(s, member_of("others")), "");
  EXPECT_EQ(next(s), "gpu");
  // whose would it be?
  EXPECT_EQ(s.admin.set_pool("third", settings).error().code, Code::kInvalid);
  settings.isolated = false;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(next(s, member_of("others")), "gpu");
  EXPECT_EQ(next(s, member_of("others")), "");
}

TEST(Pools, FS_T08_without_isolation_every_pool_of_a_queue_gets_its_jobs) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  ASSERT_TRUE(s.admin.set_pool("q", pool_of({"a"})).ok());
  fill(s, {"a"}, 3);
  EXPECT_EQ(next(s, member_of("p")), "a");
  EXPECT_EQ(next(s, member_of("q")), "a");
  EXPECT_EQ(next(s, {.queues = {"a"}}), "a");
}

TEST(Pools, FS_T09_a_worker_names_one_pool_that_exists) {
  QuietSegment s;
  EXPECT_EQ(Worker::attach(s.segment, member_of("nowhere")).error().code, Code::kNotFound);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  Worker worker = Worker::attach(s.segment, member_of("p", 4)).value();
  EXPECT_EQ(s.observer.pool("p")->active_workers, 1U);
  EXPECT_EQ(s.observer.pool("p")->declared_concurrency, 4U);
  s.put(2, "a");
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  EXPECT_EQ(s.observer.pool("p")->active_jobs, 1U);
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  EXPECT_EQ(worker.try_fetch(s.job).code(), Code::kNotFound);
  EXPECT_EQ(s.admin.remove_pool("p").code(), Code::kNotFound);
  EXPECT_EQ(s.observer.pool("p").error().code, Code::kNotFound);
}

TEST(Pools, FS_T09_a_worker_of_a_removed_pool_is_nobody_s) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  Worker worker = Worker::attach(s.segment, member_of()).value();
  fill(s, {"a", "b"}, 2);
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  for (unsigned i = 0; i + 1 < engine::kPools; ++i)
    ASSERT_TRUE(s.admin.set_pool("q" + std::to_string(i), pool_of({"b"})).ok());
  for (const WorkerPoolInfo& pool : s.observer.pools()) {
    EXPECT_EQ(pool.active_workers, 0U) << pool.name;
    EXPECT_EQ(pool.active_jobs, 0U) << pool.name;
  }
  // Its place is taken only once it has gone.
  EXPECT_EQ(s.admin.set_pool("last", pool_of({"b"})).error().code, Code::kSegmentFull);
  Job other;
  EXPECT_EQ(worker.try_fetch(other).code(), Code::kNotFound);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"b"})).ok());  // its own, made again
  ASSERT_TRUE(worker.try_fetch(other).ok());
  EXPECT_EQ(other.queue(), "b");
  ASSERT_TRUE(worker.ack(other).ok());
  ASSERT_TRUE(worker.ack(s.job).ok());
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  { const Worker gone = std::move(worker); }
  EXPECT_TRUE(s.admin.set_pool("last", pool_of({"b"})).ok());
}

TEST(Pools, FS_H1_a_descriptor_of_events_is_no_worker_and_follows_the_pool) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  Worker worker = Worker::attach(s.segment, member_of()).value();
  pollfd readable{worker.event_fd().value(), POLLIN, 0};
  EXPECT_EQ(s.observer.pool("p")->active_workers, 1U);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"b"})).ok());
  s.put(2, "b");
  EXPECT_EQ(::poll(&readable, 1, 30'000), 1);
}

TEST(Pools, all_pools_may_be_taken_and_given_back) {
  QuietSegment s;
  for (unsigned i = 0; i < engine::kPools; ++i)
    ASSERT_TRUE(s.admin.set_pool("p" + std::to_string(i), pool_of({"a"})).value());
  EXPECT_EQ(s.admin.set_pool("one-more", pool_of({"a"})).error().code, Code::kSegmentFull);
  ASSERT_TRUE(s.admin.remove_pool("p7").ok());
  EXPECT_TRUE(s.admin.set_pool("one-more", pool_of({"a"})).value());
  EXPECT_EQ(s.observer.pools().size(), engine::kPools);
}

TEST(Pools, a_worker_finds_a_job_of_whose_queue_nobody_said_that_it_has_one) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  const std::string id = s.put(2, "a");
  const std::uint32_t queue = s.store().find_queue("a");
  shm::Word& word = s.store().busy_word(queue);
  word.store(engine::BusyWord::with(word.load(), queue, engine::BusyWord::kQuiet),
             shm::Point::kNone);
  Worker worker = Worker::attach(s.segment, member_of()).value();
  EXPECT_TRUE(worker.fetch(s.job, std::chrono::seconds(5)).ok());
  EXPECT_EQ(s.job.id(), id);
}

}  // namespace
}  // namespace ojs_shm::test
