// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ojs_shm::engine {

/// Which queues may have a job, 16 in a word: 63..32 version  31..0 two bits for each queue.
struct BusyWord {
  enum State : std::uint64_t {
    kQuiet = 0,    ///< it has none: a lane that makes one available says so before that is done
    kBusy = 1,     ///< it may have one
    kQuieting = 2  ///< a lane is about to say that it has none
  };
  static constexpr unsigned kQueues = 16;
  static constexpr State of(std::uint64_t word, std::uint32_t queue) {
    return static_cast<State>(word >> (queue % kQueues * 2) & 3);
  }
  static constexpr std::uint64_t with(std::uint64_t word, std::uint32_t queue, State state) {
    const unsigned at = queue % kQueues * 2;
    return (word & ~(3ULL << at)) | state << at;
  }
  static constexpr std::uint64_t kVersion = 1ULL << 32;
};
constexpr std::uint32_t busy_words(std::uint32_t max_queues) {
  return (max_queues + BusyWord::kQueues - 1) / BusyWord::kQueues;
}

}  // namespace ojs_shm::engine
