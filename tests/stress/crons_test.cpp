// SPDX-License-Identifier: Apache-2.0
// Method: many crons that come every second, processes that only stay attached and so stand by
// to supervise, and workers. All of them are killed again and again, the broker first of all. The
// ids of the jobs that came are written outside of the segment, in memory that survives every
// death. In the end there are as many as the crons say they made, and one time never made two. No
// threads, and nothing depends on time.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint32_t kCronsOfAll = 40, kKills = 30, kChildren = 5, kWorkers = 2,
                        kRunsForEachKill = 40, kPlaces = 1U << 16;

struct Books {
  std::atomic<std::uint64_t> came[kPlaces];  ///< ids of jobs, each once
  std::atomic<std::uint32_t> jobs, offences, stop;
};
Books* books = nullptr;

void note(std::string_view id) {
  const auto own = static_cast<std::uint64_t>(std::hash<std::string_view>{}(id)) | 1;
  for (std::uint64_t at = own;; ++at) {
    std::uint64_t before = 0;
    if (books->came[at % kPlaces].compare_exchange_strong(before, own)) {
      ++books->jobs;
      return;
    }
    if (before == own) return;  // its worker died meanwhile, and it came again
  }
}

void work(const SegmentName& where) {
  Worker worker = Worker::attach(where, {}).value();
  Job held;
  while (books->stop.load() == 0) {
    if (!worker.fetch(held, std::chrono::milliseconds(20))) continue;
    note(held.id());
    (void)worker.ack(held);
  }
}

/// Now and then it sets a cron to what it is already, fires one by hand, or does nothing.
void stand_by(const SegmentName& where, std::uint64_t seed) {
  Admin admin = Admin::attach(where).value();
  Worker idle = Worker::attach(where, {.queues = {"none"}}).value();
  Job none;
  for (std::uint64_t turn = seed; books->stop.load() == 0; ++turn) {
    const std::string name = "cron" + std::to_string(turn % kCronsOfAll);
    // kTimeout: a killed process has the seat, and another one repairs after it just then
    const auto wrong = [](Code code) { return code != Code::kOk && code != Code::kTimeout; };
    if (turn % 7 == 0 && wrong(admin.trigger_cron(name).code())) ++books->offences;
    if (turn % 11 == 0 && wrong(admin.enable_cron(name, true).code())) ++books->offences;
    (void)idle.fetch(none, std::chrono::milliseconds(1));
  }
}

pid_t start(const SegmentName& where, unsigned self, std::uint64_t seed) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  self < kWorkers ? work(where) : stand_by(where, seed);
  ::_exit(0);
}

void end(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
}

std::uint64_t runs(const Observer& observer) {
  std::uint64_t sum = 0;
  for (const CronInfo& cron : observer.crons()) sum += cron.run_count;
  return sum;
}

TEST(CronStorm, each_time_comes_once_under_kills) {
  Seeded random;
  void* memory =
      ::mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  books = new (memory) Books;
  LiveSegment segment({"--slots", "1024"});
  const SegmentName where = segment.where();
  {
    Admin admin = Admin::attach(where).value();
    for (std::uint32_t i = 0; i < kCronsOfAll; ++i) {
      const std::string name = "cron" + std::to_string(i);
      CronSpec spec;
      spec.name = name;
      spec.expression = "@every 1s";
      spec.overlap = CronOverlap::kAllow;
      spec.job.type = "storm.cron";
      spec.job.retry.max_attempts = 1000;
      ASSERT_TRUE(admin.set_cron(spec).ok());
    }
  }
  pid_t children[kChildren];
  for (unsigned i = 0; i < kChildren; ++i)
    children[i] = start(where, i, static_cast<std::uint64_t>(random.between(0, 1'000'000)));
  const Observer observer = Observer::attach(where).value();

  const auto bound = std::chrono::steady_clock::now() + 6 * kBound;
  const auto in_time = [&] { return std::chrono::steady_clock::now() < bound; };
  for (std::uint32_t kills = 0; kills < kKills; ++kills) {
    while (runs(observer) < std::uint64_t{kRunsForEachKill} * kills && in_time()) ::sched_yield();
    if (kills == 5) segment.broker().signal(SIGKILL);  // from here on those that stand by supervise
    const auto victim = static_cast<unsigned>(random.between(0, kChildren - 1));
    ::kill(children[victim], SIGKILL);
    end(children[victim]);
    children[victim] =
        start(where, victim, static_cast<std::uint64_t>(random.between(0, 1'000'000)));
  }
  {
    Admin admin = Admin::attach(where).value();
    books->stop = 1;
    for (const pid_t child : children) end(child);
    (void)admin.repair();
    for (const CronInfo& cron : observer.crons())  // one that stood by may have been faster
      EXPECT_TRUE(admin.enable_cron(cron.name, false).ok());
  }
  Worker last = Worker::attach(where, {}).value();
  for (Job job; last.try_fetch(job);) {
    note(job.id());
    EXPECT_TRUE(last.ack(job).ok());
  }
  EXPECT_TRUE(in_time());
  EXPECT_EQ(books->offences.load(), 0U);
  EXPECT_EQ(books->jobs.load(), runs(observer));
  for (const Violation& violation : observer.audit()) ADD_FAILURE() << violation.text;
  std::cout << runs(observer) << " jobs of crons, " << kKills + 1 << " kills\n";
}

}  // namespace
}  // namespace ojs_shm::test
