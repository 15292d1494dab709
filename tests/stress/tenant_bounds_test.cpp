// SPDX-License-Identifier: Apache-2.0
// Method: three processes put jobs of three tenants into a queue that bounds each of them, three
// take them out again, and all of them are killed again and again in the middle of it, while a
// seventh switches the bounds off and on. At the end, with no other at work, each tenant must
// take exactly as many jobs as its bound still has room for, by what the jobs themselves say. No
// threads, and nothing depends on time.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr unsigned kProducers = 3, kWorkers = 3, kChildren = kProducers + kWorkers + 1,
                   kTenants = 3;
constexpr std::uint64_t kTenantBound = 20;
constexpr std::uint32_t kKills = 120;

struct Books {
  std::atomic<std::uint32_t> done, stop, failed;
};
Books* books = nullptr;

JobSpec spec_of(unsigned tenant) {
  static const std::string names[kTenants] = {"a", "b", "c"};
  JobSpec spec;
  spec.type = "storm.job";
  spec.args = "[1]";
  spec.tenant = names[tenant];
  spec.retry.max_attempts = 1000;
  return spec;
}

QueueSettings bounded(bool on) {
  QueueSettings settings;
  settings.tenant_max_depth = on ? kTenantBound : 0;
  return settings;
}

void produce(const SegmentName& where, unsigned self) {
  Producer producer = Producer::attach(where).value();
  for (unsigned n = self; books->stop.load() == 0; ++n) {
    const std::vector<JobSpec> batch{spec_of(n % kTenants), spec_of((n + 1) % kTenants)};
    const Code code =
        n % 4 == 0 ? producer.enqueue_batch(batch).code() : producer.enqueue(batch.front()).code();
    if (code != Code::kOk && code != Code::kQueueFull && code != Code::kSegmentFull)
      ++books->failed;
    if (code != Code::kOk) ::sched_yield();
  }
}

void work(const SegmentName& where) {
  Worker worker = Worker::attach(where, {}).value();
  Job job;
  while (books->stop.load() == 0) {
    if (!worker.fetch(job, std::chrono::milliseconds(50))) continue;
    if (!(++books->done % 5 == 0 ? worker.requeue(job) : worker.ack(job))) ++books->failed;
  }
}

void change(const SegmentName& where) {
  Admin admin = Admin::attach(where).value();
  for (bool on = true; books->stop.load() == 0; on = !on) {
    const std::uint32_t goal = books->done.load() + 50;
    if (!admin.set_queue("default", bounded(on))) ++books->failed;
    while (books->done.load() < goal && books->stop.load() == 0) ::sched_yield();
  }
}

pid_t start(const SegmentName& where, unsigned self) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (self < kProducers)
    produce(where, self);
  else if (self < kProducers + kWorkers)
    work(where);
  else
    change(where);
  ::_exit(0);
}

void end(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST(TenantStorm, BP_T19_the_count_of_each_tenant_is_exact_after_kills) {
  Seeded random;
  void* memory =
      ::mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  books = new (memory) Books;
  const LiveSegment segment({"--slots", "2000"});
  const SegmentName where = segment.where();
  ASSERT_TRUE(Admin::attach(where).value().set_queue("default", bounded(true)).ok());
  pid_t children[kChildren];
  for (unsigned i = 0; i < kChildren; ++i) children[i] = start(where, i);

  const auto bound = std::chrono::steady_clock::now() + 4 * kBound;
  for (std::uint32_t kills = 0; kills < kKills; ++kills) {
    const std::uint32_t goal =
        books->done.load() + static_cast<std::uint32_t>(random.between(1, 100));
    while (books->done.load() < goal && std::chrono::steady_clock::now() < bound) ::sched_yield();
    const auto victim = static_cast<unsigned>(random.between(0, kChildren - 1));
    ::kill(children[victim], SIGKILL);
    end(children[victim]);
    children[victim] = start(where, victim);
  }
  books->stop = 1;
  for (const pid_t child : children) end(child);

  // Empty but for some that wait, and bounded at last. The broker may still be repairing after the
  // last of the dead.
  Admin admin = Admin::attach(where).value();
  const Observer observer = Observer::attach(where).value();
  const auto others_gone = [](const ProcessInfo& process) {
    return process.broker || process.pid == static_cast<std::uint32_t>(::getpid());
  };
  ASSERT_TRUE(eventually([&] {
    return admin.repair().ok() &&
           std::ranges::all_of(observer.segment_info().processes, others_gone);
  }));
  ASSERT_TRUE(admin.set_queue("default", bounded(true)).ok());
  Worker worker = Worker::attach(where, {}).value();
  Producer producer = Producer::attach(where).value();
  Job job;
  while (observer.queue("default").value().depth > 10 && worker.try_fetch(job))
    EXPECT_TRUE(worker.ack(job).ok());
  for (unsigned tenant = 0; tenant < kTenants; ++tenant)
    for (std::uint64_t n = 0; n <= kTenantBound; ++n)
      if (const auto put = producer.enqueue(spec_of(tenant)); !put) {
        EXPECT_EQ(put.error().tenant, spec_of(tenant).tenant);
      }
  EXPECT_EQ(observer.queue("default").value().depth, kTenants * kTenantBound);
  std::uint64_t left = 0;
  for (; worker.try_fetch(job); ++left) EXPECT_TRUE(worker.ack(job).ok());
  EXPECT_EQ(left, kTenants * kTenantBound);
  EXPECT_EQ(books->failed.load(), 0U);
  for (const Violation& v : observer.audit()) ADD_FAILURE() << "I" << v.invariant << " " << v.text;
  std::cout << books->done.load() << " dispatches, " << kKills << " kills\n";
  ::munmap(memory, sizeof(Books));
}

}  // namespace
}  // namespace ojs_shm::test
