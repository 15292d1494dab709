// SPDX-License-Identifier: Apache-2.0
#include "shm/parking.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace ojs_shm::shm {

void futex_wait(const Half& word, std::uint32_t expected, std::uint64_t timeout_ms) {
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(timeout_ms / 1000);
  limit.tv_nsec = static_cast<long>(timeout_ms % 1000 * 1'000'000);
  ::syscall(SYS_futex, word.address(), FUTEX_WAIT, expected, &limit, nullptr, 0);
}

std::uint64_t steady_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void futex_wake(const Half& word, int count) {
  ::syscall(SYS_futex, word.address(), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

void wait_for_another(unsigned looks) {
#if defined(OJS_SHM_TEST_HOOKS)
  if (thread_hook != nullptr) return;  // the test that watches each access chooses the next thread
#endif
  if (looks < 64) return pause_cpu();
  if (looks < 256) {
    ::sched_yield();
    return;
  }
  constexpr timespec kMoment{0, 100'000};
  ::nanosleep(&kMoment, nullptr);
}

}  // namespace ojs_shm::shm
