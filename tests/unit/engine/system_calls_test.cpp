// SPDX-License-Identifier: Apache-2.0
// A job's life makes no system call unless a worker sleeps or is woken.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

/// From here on any system call of this thread but the one that ends the process kills it.
bool forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kForbidden = 77;

/// How a process ends that does the deed many times, and then as often without system calls;
/// kForbidden where no seccomp filter can be set.
int end_without_system_calls(const SegmentName& where,
                             const std::function<bool(Producer&, Worker&)>& deed) {
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
    if (WIFEXITED(status) && WEXITSTATUS(status) == kForbidden)
      GTEST_SKIP() << "NOT RUN: no seccomp filters here";
  }
  bool through(Producer& producer, Worker& worker) {
    return producer.enqueue(spec).ok() && worker.try_fetch(job).ok() && worker.ack(job).ok();
  }
  void expect_none() {
    const int status =
        end_without_system_calls(s.where(), [this](auto& p, auto& w) { return through(p, w); });
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

TEST_F(SystemCalls, none_with_events_and_a_pool_with_a_concurrency) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  PoolSettings pool;
  pool.queues = {"default"};
  pool.concurrency = 2;
  ASSERT_TRUE(s.admin.set_pool("default", pool).ok());  // of every worker that names none
  expect_none();
}

TEST_F(SystemCalls, a_fetch_that_sleeps_makes_one) {
  const int status = end_without_system_calls(s.where(), [this](Producer&, Worker& worker) {
    return !worker.fetch(job, std::chrono::milliseconds(1)).ok();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << "status " << status;
}

}  // namespace
}  // namespace ojs_shm::test
