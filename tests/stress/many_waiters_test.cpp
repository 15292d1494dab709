// SPDX-License-Identifier: Apache-2.0
// Method: twenty thousand requests wait on four threads, each with a proxy and its one descriptor:
// fifteen thousand enqueues for room in one queue, begun in turns, so that neighbours in line are
// of different threads, two thousand fetches, two thousand that wait for the end of a job, and a
// thousand that wait for an event of one. Then the main thread makes room and
// jobs, and ends some. The numbers that the jobs carry say who was let in before whom, and the
// kernel's and the segment's tables say what the waiting costs.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/events.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/proxy.hpp>
#include <ojs_shm/worker.hpp>

#include "shm/atomics.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 4, kEnqueues = 15'000, kFetches = 2000, kEnds = 2000,
                      kSubscriptions = 1000, kDepth = 64;
static_assert(kEnqueues + kFetches + kEnds + kSubscriptions == 20'000);

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

std::uint64_t handles(const Observer& observer) {
  for (const PoolInfo& pool : observer.segment_info().pools)
    if (pool.name == "handles") return pool.used;
  return 0;
}

JobSpec spec_of(std::string_view queue, std::string_view args) {
  JobSpec spec;
  spec.type = "wait.job";
  spec.queue = queue;
  spec.args = args;
  return spec;
}

/// One thread's handles, and the requests that wait on them in the order in which they came.
struct Loop {
  Loop(const Segment& segment, const Observer& observer)
      : proxy(Proxy::attach(segment).value()), reader(observer.events()) {}

  void begin(std::size_t number) {
    const std::string args = "[" + std::to_string(number) + "]";
    const JobSpec spec = spec_of("full", args);
    const EnqueueOptions patience{.block_timeout = 600s};
    enqueues.push_back(proxy.begin_enqueue(std::span(&spec, 1), patience, enqueues.size()).value());
  }
  void await_end(const std::string& job) {
    ends.insert(job);
    EXPECT_TRUE(proxy.await_end(job).ok());
  }
  /// Until each request has got what it waits for.
  void serve() {
    pollfd bell{proxy.await_jobs({"empty"}).value(), POLLIN, 0};
    EXPECT_EQ(proxy.await_events().value(), bell.fd);
    while (let_in < enqueues.size() || fetched.size() < kFetches / kThreads || !ends.empty() ||
           !subscriptions.empty()) {
      const int woken = ::poll(&bell, 1, reader.holds_young() ? 20 : 30'000);
      EXPECT_TRUE(woken != 0 || reader.holds_young()) << "no wake came";
      eventfd_t count = 0;
      if (bell.revents != 0) ::eventfd_read(bell.fd, &count);
      let_some_in();
      fetch_some();
      for (const std::string& job : proxy.take_ended()) EXPECT_EQ(ends.erase(job), 1U);
      for (Event event; reader.next(event);)
        if (event.type == "job.completed") subscriptions.erase(event.job_id);
    }
    EXPECT_EQ(reader.lost(), 0U);
  }
  void let_some_in() {
    for (const std::uint64_t tag : proxy.take_decided()) {
      EXPECT_EQ(tag, let_in) << "not in the order in which they came";
      const auto decided = enqueues[tag].poll();
      EXPECT_TRUE(decided && decided->ok());
      ++let_in;
    }
  }
  void fetch_some() {
    const std::size_t missing = kFetches / kThreads - fetched.size();
    if (missing == 0) return;
    const auto jobs = proxy.fetch({.queues = {"empty"}, .count = missing});
    ASSERT_TRUE(jobs.ok()) << jobs.error().message;
    for (const JobInfo& job : *jobs) fetched.push_back(job.id);
    if (jobs->size() < missing) return;
    EXPECT_TRUE(proxy.await_jobs({}).ok());  // what it was told is told to another thread
  }

  Proxy proxy;
  std::vector<WaitingEnqueue> enqueues;
  std::size_t let_in = 0;
  std::vector<std::string> fetched;
  EventReader reader;
  std::set<std::string> ends, subscriptions;  ///< the jobs of those that still wait
};

TEST(ManyWaiters, BP_T05_twenty_thousand_on_four_threads_are_served_in_their_order) {
  const ScratchDirectory folder;
  SegmentOptions options;
  options.slots = 16'384;
  options.max_waiting = kEnqueues;
  const Segment segment = Segment::create({"many", folder.path()}, options).value();
  Admin admin = Admin::attach(segment).value();
  ASSERT_TRUE(
      admin.set_queue("full", {.max_depth = kDepth, .strategy = BackpressureStrategy::kBlock})
          .ok());
  for (std::size_t i = 0; i < kDepth; ++i)
    ASSERT_TRUE(admin.producer().enqueue(spec_of("full", "[-1]")).ok());
  const Observer observer = Observer::attach(segment).value();
  ASSERT_TRUE(admin.set_events(true).ok());
  const std::size_t threads_before = threads();
  const std::uint64_t handles_before = handles(observer);

  std::vector<Loop> loops;
  loops.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) loops.emplace_back(segment, observer);
  for (std::size_t i = 0; i < kEnqueues; ++i) loops[i % kThreads].begin(i);
  EXPECT_EQ(observer.queue("full")->waiting, kEnqueues);
  for (std::size_t i = 0; i < kEnds + kSubscriptions; ++i) {
    const std::string id = admin.producer().enqueue(spec_of("ends", "[]")).value().str();
    Loop& loop = loops[i % kThreads];
    i < kEnds ? loop.await_end(id) : (void)loop.subscriptions.insert(id);
  }
  std::vector<std::thread> running;
  for (Loop& each : loops) running.emplace_back([&each] { each.serve(); });

  Worker worker = Worker::attach(segment, {.queues = {"full"}}).value();
  Worker ending = Worker::attach(segment, {.queues = {"ends"}}).value();
  std::size_t ended = 0;
  for (std::size_t taken = 0; taken < kEnqueues + kDepth; ++taken) {
    Job job;
    ASSERT_TRUE(worker.fetch(job, 60s).ok()) << "behind " << taken << " jobs";
    if (taken >= kDepth) {
      EXPECT_EQ(job.args(), "[" + std::to_string(taken - kDepth) + "]");
    }
    ASSERT_TRUE(worker.ack(job).ok());
    if (taken % 2 == 0 && taken / 2 < kFetches) {
      ASSERT_TRUE(admin.producer().enqueue(spec_of("empty", "[]")).ok());
    }
    if (taken % 5 < 3 && ended < kEnds + kSubscriptions) {
      ASSERT_TRUE(ending.try_fetch(job).ok());
      ASSERT_TRUE(ending.ack(job).ok());
      ++ended;
    }
    if (taken != kEnqueues / 2) continue;
    // Each thread has a descriptor, which costs a thread and a handle. The process keeps the
    // segment by a thread with a handle that may begin late, and has the two workers.
    EXPECT_LE(threads() - threads_before, 2 * kThreads + 1);
    EXPECT_LE(handles(observer) - handles_before, 2 * kThreads + 3);
  }
  for (std::thread& each : running) each.join();
  std::set<std::string> fetched;
  for (const Loop& each : loops) fetched.insert(each.fetched.begin(), each.fetched.end());
  EXPECT_EQ(fetched.size(), kFetches) << "each job once";
  EXPECT_TRUE(observer.audit().empty());
}

}  // namespace
}  // namespace ojs_shm::test
