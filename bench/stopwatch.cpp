// SPDX-License-Identifier: Apache-2.0
#include "bench/stopwatch.hpp"

#include <fstream>
#include <string>

namespace ojs_shm::bench {

namespace {

bool read_clock_source() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return file >> name && name == "tsc";
#else
  return false;
#endif
}

const bool counter_is_clock = read_clock_source();

double calibrate() {
  if (!counter_is_clock) return 1.0;  // the steady clock already counts nanoseconds
  using Clock = std::chrono::steady_clock;
  const auto clock_from = Clock::now();
  const std::uint64_t tick_from = ticks();
  while (Clock::now() - clock_from < std::chrono::milliseconds(20)) pause_briefly();
  const auto clock_to = Clock::now();
  const std::uint64_t tick_to = ticks();
  return std::chrono::duration<double, std::nano>(clock_to - clock_from).count() /
         static_cast<double>(tick_to - tick_from);
}

}  // namespace

bool counter_is_the_clock() { return counter_is_clock; }

double ns_per_tick() {
  static const double value = calibrate();
  return value;
}

void stay_busy_ns(double ns) {
  const std::uint64_t from = ticks();
  while (ns_between(from, ticks()) < ns) pause_briefly();
}

}  // namespace ojs_shm::bench
