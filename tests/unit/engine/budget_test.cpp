// SPDX-License-Identifier: Apache-2.0
// What an operation costs: read-modify-writes of shared words, counted by the hook of this thread, and allocations.
// The table is printed; the budgets are promises of docs/architecture.md.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <new>

#include "tests/unit/engine/quiet_segment.hpp"

namespace {
thread_local std::uint64_t allocations = 0;
thread_local std::uint64_t writes = 0;

void count(ojs_shm::shm::Access access, ojs_shm::shm::Point, const void*) {
  if (access == ojs_shm::shm::Access::kRmw) ++writes;
}
}  // namespace

// Not inlined: the compiler would take malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ojs_shm::test {
namespace {

struct Cost {
  double rmw = 0, most = 0, allocations = 0;
};

/// The mean and the worst over `times` calls.
Cost cost_of(const char* name, int times, const std::function<void(int)>& operation) {
  Cost cost;
  for (int i = 0; i < times; ++i) {
    writes = 0;
    allocations = 0;
    shm::thread_hook = count;
    operation(i);
    shm::thread_hook = nullptr;
    const auto rmw = static_cast<double>(writes), made = static_cast<double>(allocations);
    cost.rmw += rmw;
    cost.most = std::max(cost.most, rmw);
    cost.allocations += made;
  }
  cost.rmw /= times;
  cost.allocations /= times;
  std::cout << std::left << std::setw(34) << name << std::right << std::fixed << std::setprecision(2) << std::setw(8)
            << cost.rmw << std::setw(7) << std::setprecision(0) << cost.most << std::setw(14) << std::setprecision(2)
            << cost.allocations << '\n';
  return cost;
}

constexpr int kTimes = 140;  // ten batches of finished slots

TEST(Budget, of_each_operation_in_its_steady_state) {
  QuietSegment s(few_slots(4096));
  s.put(2);  // the level is there and not empty
  std::vector<Job> jobs(kTimes);
  std::vector<JobIdText> ids(kTimes);
  const JobSpec spec = spec_of(2);
  auto enqueue = [&](int i) { ids[static_cast<std::size_t>(i)] = s.producer.enqueue(spec).value(); };
  auto fetch = [&](int i) { ASSERT_TRUE(s.worker.try_fetch(jobs[static_cast<std::size_t>(i)]).ok()); };
  auto ack = [&](int i) { ASSERT_TRUE(s.worker.ack(jobs[static_cast<std::size_t>(i)]).ok()); };
  for (int round = 0; round < 3; ++round) {  // buffers have their size, every hint word its owner
    for (int i = 0; i < kTimes; ++i) enqueue(i);
    for (int i = 0; i < kTimes; ++i) fetch(i);
    for (int i = 0; i < kTimes; ++i) ack(i);
  }
  std::cout << "operation                         RMW mean  worst   allocations\n";
  const Cost enqueued = cost_of("enqueue", kTimes, enqueue);
  const Cost fetched = cost_of("fetch", kTimes, fetch);
  const Cost acked = cost_of("ack, its batches included", kTimes, ack);
  for (int i = 0; i < kTimes; ++i) enqueue(i);
  const Cost moved = cost_of("reprioritize", kTimes, [&](int i) {
    ASSERT_TRUE(s.producer.reprioritize(ids[static_cast<std::size_t>(i)].view(), 3).ok());
  });
  engine::JobState found{};
  const Cost cancelled = cost_of("cancel, its batches included", kTimes, [&](int i) {
    ASSERT_EQ(s.actor().cancel(*engine::parse_id(ids[static_cast<std::size_t>(i)].view()), found),
              engine::Outcome::kOk);
  });
  ASSERT_TRUE(s.admin.set_queue("default", {1'000'000, {}, {}}).ok());
  enqueue(0);
  const Cost bounded = cost_of("enqueue into a bounded queue", kTimes, enqueue);

  EXPECT_LE(enqueued.rmw, 4.0);
  EXPECT_LE(bounded.rmw, enqueued.rmw + 1.1);  // one, and another share of the chunks
  EXPECT_LE(fetched.rmw, 2.25);                // two, and a fourteenth part of leaving a chunk
  EXPECT_LE(acked.rmw, 1.25);                  // one, and the batch of fourteen
  EXPECT_LE(moved.rmw, 3.25);                  // three, and the chunks of the new level
  EXPECT_LE(cancelled.rmw, 2.35);              // two, and the batch of fourteen
  EXPECT_GE(acked.rmw, 1.0);                   // the hook is alive
  EXPECT_GE(fetched.rmw, 2.0);
  EXPECT_EQ(enqueued.allocations, 0.0);
  EXPECT_EQ(fetched.allocations, 0.0);
  EXPECT_EQ(acked.allocations, 0.0);
}

TEST(Budget, of_an_enqueue_while_slots_are_used_again) {
  QuietSegment s(few_slots(256));
  const JobSpec spec = spec_of(2);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(s.producer.enqueue(spec).ok());
    ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  }
  Cost cycle = cost_of("enqueue, fetch and ack", kTimes * 4, [&](int) {
    ASSERT_TRUE(s.producer.enqueue(spec).ok());
    ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  });
  EXPECT_LE(cycle.rmw, 9.0);
  EXPECT_EQ(cycle.allocations, 0.0);
}

// ---- system calls -------------------------------------------------------------------------------------------------

/// From here on any system call of this thread but the one that ends the process kills it.
bool forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kForbidden = 77;

/// How a process ends that does the deed many times, and then as often without system calls; kForbidden where the kernel,
/// or who stands between, lets nobody do without.
int end_without_system_calls(const SegmentName& where, const std::function<bool(Producer&, Worker&)>& deed) {
  const pid_t child = ::fork();
  if (child == 0) {
    Producer producer = Producer::attach(where).value();
    Worker worker = Worker::attach(where, {}).value();
    bool good = true;
    for (int i = 0; i < 300; ++i) good = deed(producer, worker) && good;  // buffers have their size
    if (!forbid_system_calls()) ::_exit(kForbidden);
    for (int i = 0; i < 300; ++i) good = deed(producer, worker) && good;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class SystemCalls : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "NOT RUN: a sanitizer makes calls of its own";
#endif
    const int status = end_without_system_calls(s.where(), [](Producer&, Worker&) { return true; });
    if (WIFEXITED(status) && WEXITSTATUS(status) == kForbidden) GTEST_SKIP() << "NOT RUN: no seccomp filters here";
  }
  bool through(Producer& producer, Worker& worker) {
    return producer.enqueue(spec).ok() && worker.try_fetch(job).ok() && worker.ack(job).ok();
  }
  void expect_none() {
    const int status = end_without_system_calls(s.where(), [this](auto& p, auto& w) { return through(p, w); });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  QuietSegment s{few_slots(128)};
  JobSpec spec = spec_of(2);
  Job job;
};

TEST_F(SystemCalls, none_in_a_jobs_life) { expect_none(); }

TEST_F(SystemCalls, none_with_a_large_body) {
  const std::string args = "[\"" + std::string(1000, 'x') + "\"]";
  spec.args = args;
  expect_none();
}

TEST_F(SystemCalls, none_with_a_bound_ageing_tenants_and_a_limit) {
  QueueSettings settings;
  settings.max_depth = 100;
  settings.aging.emplace();
  settings.tenant_fairness = TenantFairness{};
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  JobLimit limit;
  limit.key = "k";
  limit.limit.concurrency = 2;
  spec.limit = &limit;
  spec.tenant = "acme";
  expect_none();
}

TEST_F(SystemCalls, a_fetch_that_sleeps_makes_one) {
  const int status = end_without_system_calls(
      s.where(), [this](Producer&, Worker& worker) { return !worker.fetch(job, std::chrono::milliseconds(1)).ok(); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << "status " << status;
}

}  // namespace
}  // namespace ojs_shm::test
