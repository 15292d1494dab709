// SPDX-License-Identifier: Apache-2.0
#include "engine/pools/samples.hpp"

#include <algorithm>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

std::vector<Dispatched> dispatched_so_far(const Store& store) {
  std::vector<Dispatched> sums(store.queue_count());
  const std::uint32_t lanes = std::min(store.segment().header().lanes_high.load(), store.lanes());
  for (std::uint32_t q = 0; q < sums.size(); ++q)
    for (std::uint32_t l = 0; l < lanes; ++l)
      sums[q].jobs += store.tally(q, l).dispatched.get_ordered();
  for (std::uint32_t i = 0; i < store.wait_pages.size(); ++i) {
    const WaitPage& page = store.wait_pages[i];
    const WaitOwner owner(page.owner.load());
    if (owner.taken() && owner.queue() < sums.size())
      sums[owner.queue()].waited_ms += page.from_available.sum_ms.load();
  }
  return sums;
}

namespace {

/// The sample at which the window begins; kSamples when it begins with the segment.
unsigned first_sample(const Store& store, std::uint64_t now) {
  const auto age = [&](unsigned i) {
    const std::uint64_t at = store.sample_times().at_ms[i].load();  // PAIR sample
    return at == 0 || at > now ? ~0ULL : now - at;
  };
  unsigned oldest = kSamples, newest = kSamples;
  for (unsigned i = 0; i < kSamples; ++i) {
    const std::uint64_t its = age(i);
    if (its <= kWindowMs && (oldest == kSamples || its > age(oldest))) oldest = i;
    if (its != ~0ULL && (newest == kSamples || its < age(newest))) newest = i;
  }
  const std::uint64_t made = store.segment().header().made_at_ms;
  if (made <= now && now - made <= kWindowMs) return kSamples;
  return oldest != kSamples ? oldest : newest;
}

}  // namespace

std::vector<Dispatched> dispatched_in_window(const Store& store) {
  std::vector<Dispatched> window = dispatched_so_far(store);
  const auto less = [](std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); };
  for (unsigned look = 0; look < kSamples; ++look) {
    const unsigned first = first_sample(store, store.now_ms());
    if (first == kSamples) return window;
    const std::uint64_t at = store.sample_times().at_ms[first].load();  // PAIR sample
    std::vector<Dispatched> brought = window;
    for (std::uint32_t q = 0; q < brought.size(); ++q) {
      const QueueSamples& samples = store.samples[q];
      brought[q] = {less(brought[q].jobs, samples.dispatched[first].get()),
                    less(brought[q].waited_ms, samples.waited_ms[first].get())};
    }
    // else it is being written anew
    if (at != 0 && store.sample_times().at_ms[first].load() == at) return brought;
  }
  return window;
}

}  // namespace ojs_shm::engine
