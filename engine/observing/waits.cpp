// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/waits.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Pages at the end of the table that lanes share.
static std::uint32_t shared_pages(const Store& store) { return store.wait_pages.size() / 4; }

/// Takes the page for `key` in a part of the table. Pages are never given back, so the first that
/// is free ends the search. 1. free: ours by one cas; 2. of that level, and ours or left by
/// a lane that is free: the count of uses in the word makes sure that it still is when our cas
/// succeeds; 3. of that level and shared: just use it.
WaitPage* WaitMeter::take(std::uint32_t key, std::uint32_t begin, std::uint32_t count,
                          std::uint32_t owner) {
  if (count == 0) return nullptr;
  const std::uint32_t start = key * 0x9E3779B1U % count;
  for (std::uint32_t i = 0; i < count; ++i) {
    WaitPage& page = store_.wait_pages[begin + (start + i) % count];
    std::uint64_t word = page.owner.load();
    // 1
    if (word == 0 && page.owner.cas(word, WaitOwner(1, owner, key).word, Point::kWaitPageTaken))
      return &page;
    const WaitOwner found(word);
    if (found.key() != key) continue;
    if (owner == 0 && found.lane_plus_one() == 0) return &page;  // 3
    if (owner == 0 || found.lane_plus_one() == 0 || found.lane_plus_one() > store_.lanes())
      continue;
    const bool left = store_.segment().lane(found.lane_plus_one() - 1).process.load() == 0;
    if ((left || found.lane_plus_one() == owner) &&
        page.owner.cas_once(word, WaitOwner(found.uses() + 1, owner, key).word,
                            Point::kWaitPageTaken))
      return &page;  // 2
  }
  return nullptr;
}

[[gnu::noinline]] WaitMeter::Known WaitMeter::find(std::uint32_t key) {
  const std::uint32_t shared = shared_pages(store_), own = store_.wait_pages.size() - shared;
  if (WaitPage* page = take(key, 0, own, lane_ + 1)) return {key, false, page};
  return {key, true, take(key, own, shared, 0)};
}

static void add_shared(WaitCounts& counts, std::uint64_t ms, unsigned times) {
  counts.count[wait_bucket(ms)].fetch_add(times, Point::kWaitCounted);
  counts.sum_ms.fetch_add(ms * times, Point::kWaitCounted);
}

[[gnu::noinline]] void WaitMeter::count_elsewhere(const Known& known, Waited waited,
                                                  unsigned jobs) {
  if (known.page == nullptr) {
    store_.header().waits_unmeasured.fetch_add(jobs, Point::kCounterMoved);
    return;
  }
  add_shared(known.page->from_available, waited.since_available_ms, jobs);
  add_shared(known.page->from_enqueue, waited.since_enqueue_ms, jobs);
}

[[gnu::noinline]] void WaitMeter::count_run_elsewhere(const Known& known, std::uint64_t ms,
                                                      unsigned runs) {
  if (known.page != nullptr) add_shared(known.page->runs, ms, runs);
}

static void add_to(WaitHistogram& sum, const WaitCounts& counts) {
  for (unsigned b = 0; b < kWaitBuckets; ++b) sum.count[b] += counts.count[b].load();
  sum.sum_ms += counts.sum_ms.load();
}

std::map<std::pair<std::uint32_t, std::uint8_t>, LevelHistograms> read_waits(const Store& store) {
  std::map<std::pair<std::uint32_t, std::uint8_t>, LevelHistograms> waits;
  for (std::uint32_t i = 0; i < store.wait_pages.size(); ++i) {
    const WaitPage& page = store.wait_pages[i];
    const WaitOwner owner(page.owner.load());
    if (!owner.taken()) continue;
    LevelHistograms& level = waits[{owner.queue(), owner.rank()}];
    add_to(level.from_available, page.from_available);
    add_to(level.from_enqueue, page.from_enqueue);
    add_to(level.runs, page.runs);
  }
  return waits;
}

}  // namespace ojs_shm::engine
