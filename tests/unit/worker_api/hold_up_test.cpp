// SPDX-License-Identifier: Apache-2.0
// What keeps a worker from fetching, and how long it waits.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using std::chrono::milliseconds;

/// Whether the descriptor tells of work before the bound, or now.
bool tells(int descriptor, milliseconds wait = kBound) {
  pollfd readable{descriptor, POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(wait.count())) == 1;
}

TEST(HoldUp, a_quiet_handle_finds_nothing_and_its_descriptor_is_silent_until_it_resumes) {
  QuietSegment s;
  const int descriptor = s.worker.event_fd().value();
  const std::string id = s.put();
  ASSERT_TRUE(tells(descriptor));
  s.worker.quiet();
  Job job;
  // Its thread may just have been about to tell of the job; after that it rests.
  for (int told = 0; tells(descriptor, milliseconds(300)); ++told) {
    EXPECT_EQ(s.worker.try_fetch(job).code(), Code::kEmpty);
    ASSERT_LT(told, 10);
  }
  EXPECT_EQ(s.worker.fetch(job, milliseconds(1)).code(), Code::kTimeout);
  std::vector<Job> batch(2);
  EXPECT_EQ(s.worker.fetch_batch(batch).value(), 0U);
  s.worker.resume();
  EXPECT_TRUE(tells(descriptor));
  EXPECT_TRUE(s.worker.try_fetch(job).ok());
  EXPECT_EQ(job.id(), id);
  EXPECT_TRUE(s.worker.ack(job).ok());
}

TEST(HoldUp, an_interrupt_ends_a_quiet_handle_too) {
  QuietSegment s;
  s.put();
  s.worker.quiet();
  s.worker.interrupt();
  Job job;
  EXPECT_EQ(s.worker.fetch(job, kBound).code(), Code::kClosed);
  s.worker.resume();
  EXPECT_EQ(s.worker.try_fetch(job).code(), Code::kClosed);
}

/// Whether the thread sleeps: the kernel says so.
bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string word;
  for (int i = 0; i < 3; ++i) stat >> word;  // its name is one word here
  return word == "S";
}

TEST(HoldUp, the_longest_wait_there_is_waits) {
  QuietSegment s;
  const pid_t here = ::gettid();
  Job job;
  std::thread other([&] {
    auto producer = Producer::attach(s.segment).value();
    EXPECT_TRUE(eventually([&] { return sleeps(here); }));
    EXPECT_TRUE(producer.enqueue(spec_of()).ok());
  });
  const Status fetched = s.worker.fetch(job, milliseconds::max());
  other.join();
  ASSERT_TRUE(fetched.ok()) << fetched.error().message;
  const std::string id(job.id());
  std::thread ends([&] {
    EXPECT_TRUE(eventually([&] { return sleeps(here); }));
    EXPECT_TRUE(s.worker.ack(job).ok());
  });
  const auto ended = s.producer.wait(id, milliseconds::max());
  ends.join();
  EXPECT_TRUE(ended.ok());
}

TEST(HoldUp, no_other_state_than_a_worker_has_can_be_said) {
  QuietSegment s;
  auto named = Worker::attach(s.segment, {.id = "w"}).value();
  EXPECT_EQ(named.say(static_cast<WorkerDirective>(3)).code(), Code::kInvalid);
  EXPECT_TRUE(named.say(WorkerDirective::kQuiet).ok());
}

TEST(HoldUp, a_native_worker_has_the_jobs_that_it_holds) {
  QuietSegment s;
  auto named = Worker::attach(s.segment, {.id = "w"}).value();
  Job first, second;
  s.put(), s.put();
  ASSERT_TRUE(named.try_fetch(first).ok());
  ASSERT_TRUE(named.try_fetch(second).ok());
  EXPECT_EQ(s.observer.registered_worker("w").value().active_jobs, 2U);
  ASSERT_EQ(s.observer.registered_workers().size(), 1U);
  EXPECT_EQ(s.observer.registered_workers()[0].active_jobs, 2U);
  EXPECT_TRUE(named.ack(first).ok());
  EXPECT_EQ(s.observer.registered_worker("w").value().active_jobs, 1U);
  EXPECT_TRUE(named.ack(second).ok());
}

TEST(HoldUp, a_worker_whose_places_are_all_taken_is_told_of_no_job) {
  QuietSegment s;
  Worker worker = Worker::attach(s.segment, {.queues = {"default"}, .concurrency = 1}).value();
  s.put(), s.put();
  pollfd readable{worker.event_fd().value(), POLLIN, 0};
  Job held, other;
  ASSERT_TRUE(worker.try_fetch(held).ok());
  int told = 0;
  for (int look = 0; look < 50; ++look) {
    if (::poll(&readable, 1, 10) != 1) continue;
    ++told;
    EXPECT_FALSE(worker.try_fetch(other).ok());
  }
  EXPECT_LT(told, 10);
  ASSERT_TRUE(worker.ack(held).ok());
  EXPECT_TRUE(eventually([&] { return ::poll(&readable, 1, 0) == 1; }));
  EXPECT_TRUE(worker.try_fetch(other).ok());
}

}  // namespace
}  // namespace ojs_shm::test
