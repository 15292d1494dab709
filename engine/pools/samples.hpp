// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/atomics.hpp"

// How much each queue had handed out at each of the last seconds, so that it can be told what the
// last minute brought. The supervisor writes, one at a time.

namespace ojs_shm::engine {

class Store;

using shm::Plain;
using shm::Word;

constexpr unsigned kSamples = 64;
constexpr std::uint64_t kSampleEveryMs = 1000, kWindowMs = 60'000;
static_assert(kSamples * kSampleEveryMs > kWindowMs + 2 * kSampleEveryMs);

struct SampleTimes {
  Word at_ms[kSamples];  ///< 0 while it is being taken, or when none was. PAIR sample
  Word last;             ///< the one that was taken last
};

// NO CRASH POINT: a sample without its time is none
struct QueueSamples {
  Word starved;  ///< episodes in which it starved, times two; less one while one lasts
  Plain<std::uint64_t> dispatched[kSamples], waited_ms[kSamples];  ///< since the queue was made
};

/// What a queue has handed out since it was made, and how long that had waited.
struct Dispatched {
  std::uint64_t jobs = 0, waited_ms = 0;
};
/// By queue.
std::vector<Dispatched> dispatched_so_far(const Store& store);
/// In the last minute, to the second: never what is older than a minute, unless no process has
/// supervised in it.
std::vector<Dispatched> dispatched_in_window(const Store& store);
constexpr std::uint64_t starvations(std::uint64_t starved) { return (starved + 1) / 2; }

}  // namespace ojs_shm::engine
