// SPDX-License-Identifier: Apache-2.0
// Method: two processes put in jobs of three keys and of none, six take them, and all of them are
// killed again and again in the middle of it. Who is at work on a key is counted outside of the
// segment, in memory that survives every death: a holder counts from the return of its fetch to the
// call of its ack, or until a process is about to kill it. No job, and no beginning of one, may be
// lost either. No threads, and nothing depends on time.
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
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr unsigned kKeys = 3, kProducers = 2, kWorkers = 6, kChildren = kProducers + kWorkers;
constexpr std::uint32_t kLimit[kKeys] = {1, 2, 3};
constexpr std::uint32_t kJobs = 6'000, kKills = 40;

struct Books {
  std::atomic<std::uint32_t> at_work[kKeys][kChildren];
  /// it is about to be killed: what it holds counts no more
  std::atomic<std::uint32_t> doomed[kChildren];
  std::atomic<std::uint32_t> offences, put, done, stop, failed;
};
Books* books = nullptr;

JobLimit limit_of(unsigned k) {
  JobLimit limit;
  limit.key = "k" + std::to_string(k);
  limit.limit.concurrency = kLimit[k];
  return limit;
}

void produce(const SegmentName& where, unsigned) {
  Producer producer = Producer::attach(where).value();
  JobLimit limits[kKeys];
  for (unsigned k = 0; k < kKeys; ++k) limits[k] = limit_of(k);
  for (std::uint32_t n = books->put.fetch_add(1); n < kJobs; n = books->put.fetch_add(1)) {
    const unsigned k = n % (kKeys + 1);
    const std::string args = "[" + std::to_string(k) + "]";
    JobSpec spec;
    spec.type = "storm.job";
    spec.args = args;
    spec.priority = n % 5;
    spec.retry.max_attempts = 1000;
    if (k < kKeys) spec.limit = &limits[k];
    if (!producer.enqueue(spec)) ++books->failed;
  }
}

void work(const SegmentName& where, unsigned self) {
  Worker worker = Worker::attach(where, {}).value();
  Job job;
  while (books->stop.load() == 0) {
    if (!worker.fetch(job, std::chrono::milliseconds(50))) continue;
    const auto k = static_cast<unsigned>(job.args()[1] - '0');
    if (k < kKeys) {
      books->at_work[k][self] = 1;
      std::uint32_t now = 0;
      for (unsigned i = 0; i < kChildren; ++i)
        now += books->at_work[k][i] != 0 && books->doomed[i] == 0 ? 1 : 0;
      if (now > kLimit[k]) ++books->offences;
      for (int i = 0; i < 3; ++i) ::sched_yield();
      books->at_work[k][self] = 0;
    }
    if (!worker.ack(job) && books->doomed[self] == 0) ++books->failed;
    ++books->done;
  }
}

pid_t start(const SegmentName& where, unsigned self) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  self < kProducers ? produce(where, self) : work(where, self);
  ::_exit(0);
}

void end(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
}

/// As many as the limit says are let in by what the kills have left, and no more.
void every_limit_is_exact(const SegmentName& where) {
  Producer producer = Producer::attach(where).value();
  Worker worker = Worker::attach(where, {}).value();
  for (unsigned k = 0; k < kKeys; ++k) {
    const JobLimit limit = limit_of(k);
    JobSpec spec;
    spec.type = "storm.job";
    spec.limit = &limit;
    for (std::uint32_t i = 0; i <= kLimit[k]; ++i) ASSERT_TRUE(producer.enqueue(spec).ok());
    std::vector<Job> held(1);
    while (worker.try_fetch(held.back())) held.emplace_back();
    held.pop_back();
    EXPECT_EQ(held.size(), kLimit[k]) << "of key " << k;
    for (Job& job : held) EXPECT_TRUE(worker.ack(job));
    Job last;
    EXPECT_TRUE(worker.try_fetch(last) && worker.ack(last)) << "of key " << k;
  }
}

TEST(LimitStorm, PRI_T22_no_limit_is_passed_and_nobody_is_forgotten_under_kills) {
  Seeded random;
  void* memory =
      ::mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  books = new (memory) Books;
  const LiveSegment segment;
  const SegmentName where = segment.where();
  pid_t children[kChildren];
  for (unsigned i = 0; i < kChildren; ++i) children[i] = start(where, i);

  const auto bound = std::chrono::steady_clock::now() + 4 * kBound;
  const auto in_time = [&] { return std::chrono::steady_clock::now() < bound; };
  for (std::uint32_t kills = 0; kills < kKills; ++kills) {
    const std::uint32_t goal =
        books->done.load() + static_cast<std::uint32_t>(random.between(1, 100));
    while (books->done.load() < goal && books->done.load() < kJobs / 2 * (kills + 1) / kKills &&
           in_time())
      ::sched_yield();
    const auto victim = static_cast<unsigned>(random.between(0, kChildren - 1));
    books->doomed[victim] = 1;
    ::kill(children[victim], SIGKILL);
    end(children[victim]);
    for (auto& key : books->at_work) key[victim] = 0;
    books->doomed[victim] = 0;
    children[victim] = start(where, victim);
  }
  for (unsigned i = 0; i < kProducers; ++i) end(children[i]);
  const Observer observer = Observer::attach(where).value();
  const auto left = [&] { return unfinished(observer.queue("default").value()); };
  while (left() != 0 && in_time()) ::sched_yield();
  EXPECT_EQ(left(), 0U) << "jobs are held back though no process is at work";
  books->stop = 1;
  for (unsigned i = kProducers; i < kChildren; ++i) end(children[i]);

  EXPECT_EQ(books->offences.load(), 0U);
  EXPECT_EQ(books->failed.load(), 0U);
  every_limit_is_exact(where);
  for (const LimitInfo& limit : observer.limits())
    EXPECT_EQ(limit.active + limit.waiting, 0U) << limit.key;
  for (const Violation& v : observer.audit()) ADD_FAILURE() << "I" << v.invariant << " " << v.text;
  std::cout << books->done.load() << " dispatches, " << kKills << " kills\n";
  ::munmap(memory, sizeof(Books));
}

}  // namespace
}  // namespace ojs_shm::test
