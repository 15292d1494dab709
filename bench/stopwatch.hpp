// SPDX-License-Identifier: Apache-2.0
//
// Time stamps that two processes may compare, at the cost of a few nanoseconds.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ojs_shm::bench {

/// True where the kernel itself keeps time by the processor's counter: only then do the counters of
/// two cores agree.
bool counter_is_the_clock();

/// Nanoseconds per tick, measured once against the steady clock.
double ns_per_tick();

/// A reading that is not taken before the instructions above it are done. Comparable between
/// processes.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  if (counter_is_the_clock()) {
    _mm_lfence();
    const std::uint64_t now = __rdtsc();
    _mm_lfence();
    return now;
  }
#endif
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

inline double ns_between(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(static_cast<std::int64_t>(to - from)) * ns_per_tick();
}

/// What a spinning loop does between two looks.
inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What a producer does at a full queue: a microsecond of pauses, and now and then the core for
/// another process.
class FullQueueWait {
 public:
  void operator()() {
    for (int i = 0; i < 64; ++i) pause_briefly();
    if (++times_ % 16 == 0) ::sched_yield();
  }

 private:
  unsigned times_ = 0;
};

/// Keeps this core busy for so long; used where a sleep would let the core halt and change what is
/// measured.
void stay_busy_ns(double ns);

}  // namespace ojs_shm::bench
