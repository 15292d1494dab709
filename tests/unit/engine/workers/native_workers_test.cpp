// SPDX-License-Identifier: Apache-2.0
// Workers that are handles of this process: they register, obey, and may die.

#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/workers/registered.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Registry, a_native_worker_obeys) {
  s.put(), s.put();
  Worker native = Worker::attach(s.segment, {.id = "n", .labels = R"({"a":1})"}).value();
  EXPECT_TRUE(look("n").native);
  EXPECT_EQ(look("n").labels, R"({"a":1})");
  Job job;
  ASSERT_TRUE(native.try_fetch(job).ok());
  EXPECT_EQ(s.get(job.id()).worker_id, "n");
  ASSERT_TRUE(s.admin.direct_worker("n", WorkerDirective::kQuiet).ok());
  EXPECT_EQ(native.directive(), WorkerDirective::kQuiet);
  EXPECT_EQ(native.try_fetch(s.job).code(), Code::kEmpty);
  EXPECT_EQ(native.fetch(s.job, std::chrono::milliseconds(5)).code(), Code::kTimeout);
  ASSERT_TRUE(s.admin.direct_worker("n", WorkerDirective::kRunning).ok());
  EXPECT_TRUE(native.try_fetch(s.job).ok());
  ASSERT_TRUE(s.admin.direct_worker("n", WorkerDirective::kTerminate).ok());
  EXPECT_EQ(native.fetch(s.job, std::chrono::seconds(30)).code(), Code::kClosed);
  EXPECT_TRUE(native.ack(job).ok()) << "what it has it may end";
}

TEST_F(Registry, a_native_worker_leaves_with_its_handle) {
  auto native = std::make_unique<Worker>(Worker::attach(s.segment, {.id = "n"}).value());
  auto second = std::make_unique<Worker>(Worker::attach(s.segment, {.id = "n"}).value());
  second.reset();
  EXPECT_EQ(ids(), std::vector<std::string>{"n"}) << "it was made by the other handle";
  native.reset();
  EXPECT_TRUE(s.observer.registered_workers().empty());
}

TEST_F(Registry, a_native_worker_that_is_silent_loses_its_job_and_registers_anew) {
  const std::string id = s.put();
  Worker native = Worker::attach(s.segment, {.id = "n"}).value();
  Job job;
  ASSERT_TRUE(native.try_fetch(job).ok());
  s.pass(20 * kSecond);
  native.beat();
  s.pass(20 * kSecond);
  EXPECT_EQ(s.state_of(id), State::kActive);
  s.pass(20 * kSecond);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_TRUE(job.cancel_requested());
  EXPECT_EQ(native.ack(job).code(), Code::kLost);
  ASSERT_TRUE(native.try_fetch(job).ok());
  EXPECT_EQ(ids(), std::vector<std::string>{"n"});
  EXPECT_EQ(s.get(id).worker_id, "n");
  EXPECT_TRUE(native.ack(job).ok());
}

TEST_F(Registry, a_dead_handle_that_was_a_worker_is_one_no_more) {
  engine::WorkerReport native{.id = "n", .pledges = true, .native = true};
  auto doomed = internal::Handle::make(s.segment).value();
  const std::uint32_t lane = doomed->lane();
  WorkerKey key;
  ASSERT_EQ(engine::Registry(doomed->actor()).report(native, key), engine::Outcome::kOk);
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  EXPECT_TRUE(ids().empty());
  EXPECT_EQ(look("n").state(), "stale");
}

/// The supervisor looks at it between the end that a repair makes and the record's.
TEST_F(Registry, the_death_of_a_native_worker_is_told_as_no_silence) {
  engine::WorkerReport native{.id = "n", .pledges = true, .native = true};
  auto doomed = internal::Handle::make(s.segment).value();
  const std::uint32_t lane = doomed->lane();
  WorkerKey key;
  ASSERT_EQ(engine::Registry(doomed->actor()).report(native, key), engine::Outcome::kOk);
  std::vector<engine::LostWorker> lost;
  unsigned looks = 0;
  {
    const AtAccess meanwhile([&](shm::Access access, shm::Point point, const void*) {
      if (access != shm::Access::kWritten || point != shm::Point::kWorkerEnded || looks++ != 0)
        return;
      engine::Registry(s.actor()).look(s.now_ms(), lost);
    });
    engine::Repairer::repair(s.store(), std::span(&lane, 1));
  }
  EXPECT_EQ(looks, 1U);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(s.store().header().workers_lost.load(), 0U);
  EXPECT_EQ(look("n").state(), "stale");
  EXPECT_EQ(look("n").end(), "died");
}

}  // namespace
}  // namespace ojs_shm::test
