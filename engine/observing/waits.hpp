// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// The bucket that counts a wait: the first whose bound, 4^i ms, is not below it.
constexpr unsigned wait_bucket(std::uint64_t ms) {
  const auto bits = static_cast<unsigned>(ms == 0 ? 0 : std::bit_width(ms - 1));
  return std::min((bits + 1) / 2, kWaitBuckets - 1);
}
/// The bound of a bucket; the last one has none.
constexpr std::uint64_t wait_bound_ms(unsigned bucket) { return 1ULL << 2 * bucket; }
static_assert(wait_bucket(1) == 0 && wait_bucket(2) == 1 && wait_bucket(4) == 1 &&
              wait_bucket(5) == 2);

/// Counts for one lane how long jobs waited until it took them, and how long they ran until it
/// ended their attempt. A page that it has taken, no other lane
/// writes, so a count is a load and a store. A page outlives its lane with all it counted;
/// then the next lane of the same level goes on in it. When no page is left, lanes share one
/// for the level, and count there by read-modify-writes.
class WaitMeter {
 public:
  WaitMeter(Store& store, std::uint32_t lane) : store_(store), lane_(lane) {}

  /// A dispatch now of so many jobs that were enqueued and became available then.
  OJS_SHM_INLINE void count(std::uint32_t queue, std::uint8_t rank, std::uint64_t now,
                            std::uint64_t enqueued, std::uint64_t available, unsigned jobs = 1) {
    const Waited waited{now - std::min(now, available), now - std::min(now, enqueued)};
    const Known& known = page_of(queue, rank);
    if (known.page == nullptr || known.shared) [[unlikely]]
      return count_elsewhere(known, waited, jobs);
    add(known.page->from_available, waited.since_available_ms, jobs);
    add(known.page->from_enqueue, waited.since_enqueue_ms, jobs);
  }
  /// The end now of so many attempts that began then: by an ack, a failure or its time limit.
  OJS_SHM_INLINE void count_run(std::uint32_t queue, std::uint8_t rank, std::uint64_t now,
                                std::uint64_t started, unsigned runs = 1) {
    const std::uint64_t ran = now - std::min(now, started);
    const Known& known = page_of(queue, rank);
    if (known.page == nullptr || known.shared) [[unlikely]]
      return count_run_elsewhere(known, ran, runs);
    add(known.page->runs, ran, runs);
  }

 private:
  struct Waited {
    std::uint64_t since_available_ms, since_enqueue_ms;
  };
  OJS_SHM_INLINE static void add(WaitCounts& counts, std::uint64_t ms, unsigned times) {
    Word& bucket = counts.count[wait_bucket(ms)];
    // relaxed: no other lane writes these two
    bucket.store(bucket.load_relaxed() + times, shm::Point::kWaitCounted);
    counts.sum_ms.store(counts.sum_ms.load_relaxed() + ms * times, shm::Point::kWaitCounted);
  }
  struct Known {
    std::uint32_t key = 0;
    bool shared = false;
    WaitPage* page = nullptr;  ///< none: there was no page
  };
  /// All levels of one queue have places of their own, and so has one level of many queues.
  static constexpr std::uint32_t place_of(std::uint32_t key) { return key + (key >> 8) * 37; }
  OJS_SHM_INLINE const Known& page_of(std::uint32_t queue, std::uint8_t rank) {
    const std::uint32_t key = WaitOwner::key_of(queue, rank);
    Known& known = known_[place_of(key) % known_.size()];
    if (known.key != key) [[unlikely]]
      known = find(key);
    return known;
  }
  Known find(std::uint32_t key);
  WaitPage* take(std::uint32_t key, std::uint32_t begin, std::uint32_t count, std::uint32_t owner);
  void count_elsewhere(const Known& known, Waited waited, unsigned jobs);
  void count_run_elsewhere(const Known& known, std::uint64_t ms, unsigned runs);

  Store& store_;
  std::uint32_t lane_;
  std::array<Known, 256> known_{};
};

struct WaitHistogram {
  std::array<std::uint64_t, kWaitBuckets> count{};
  std::uint64_t sum_ms = 0;
};
struct LevelHistograms {
  WaitHistogram from_available, from_enqueue, runs;
};
/// By queue and rank, over all lanes.
std::map<std::pair<std::uint32_t, std::uint8_t>, LevelHistograms> read_waits(const Store& store);

}  // namespace ojs_shm::engine
