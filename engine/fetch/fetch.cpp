// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/fetch/fetcher.hpp"
#include "engine/fetch/look.hpp"
#include "engine/straight/take.hpp"

namespace ojs_shm::engine {

using shm::Point;

Outcome Fetcher::fetch(std::uint32_t q, std::uint32_t lease_ms, bool lease_owned, Fetched& out) {
  switch (fetch_plain(q, lease_ms, lease_owned, out)) {
    case Straight::kDone: return Outcome::kOk;
    case Straight::kEmpty: return Outcome::kEmpty;
    case Straight::kAside: break;
  }
  return fetch_in_order(q, lease_ms, lease_owned, out);
}

Outcome Fetcher::fetch_from_pool(std::uint32_t lease_ms, bool lease_owned, Fetched& out) {
  PoolTour tour;
  for (std::uint32_t q = 0;;) {
    if (const Outcome chosen = pool_worker_.choose(tour, q); chosen != Outcome::kOk) return chosen;
    if (fetch(q, lease_ms, lease_owned, out) == Outcome::kOk) {
      pool_worker_.count_served(tour);
      return Outcome::kOk;
    }
    if (pool_worker_.passed(tour)) settle_quiet(q);
  }
}

/// From a queue with options.
[[gnu::noinline]] Outcome Fetcher::fetch_in_order(std::uint32_t q, std::uint32_t lease_ms,
                                                  bool lease_owned, Fetched& out) {
  set_current_queue(q);
  QueueRecord& queue = *current_.queue;
  QueueTally& mine = *current_.tally;
  Look& seen = begin_look();
  for (std::uint32_t left = rings_.longest_search();; --left) {
    if (left == 0 || !look(queue, seen)) {
      found_nothing(queue, q);
      return Outcome::kEmpty;
    }
    if (seen.turn != 0 && !take_turn(queue, seen)) [[unlikely]]
      continue;
    JobRecord& job = *seen.job;
    intend<Op::kFetch>(q, seen.slot, mine);
    const Control claimed = seen.expected.to(kSlotClaimed, owner_);
    if (!job.control.cas_once(seen.expected.word, claimed.word,
                              Point::kSlotClaimed)) {  // PAIR slot-publish
      // dead, and for ever: a failed claim moves head on by itself
      if (seen.leads) shm::Rings::retire(seen.found);
      intend_nothing();
      continue;
    }
    if (seen.leads) shm::Rings::retire(seen.found);  // else head meets it later, dead
    prefetch_behind(seen.found);
    if (seen.flow != kNoIndex) [[unlikely]]
      end_turn(queue, seen, job.tenant.get());
    // Of one look at the clock for both; a job that came since became available later than that.
    const std::uint64_t now =
        seen.now == 0 ? store_.now_ms() : std::max(seen.now, job.available_at.get());
    count_backlog(queue, ~0ULL);
    const std::uint64_t expires = job.expires_at.get();
    if ((expires != 0 && expires <= now) || limiting()) [[unlikely]]
      if (const Outcome end = end_of_claim(q, seen.slot, claimed, now); end != Outcome::kOk) {
        if (end == Outcome::kEmpty) return end;
        continue;
      }
    intend_attempt(job.attempt.get());
    out.slot = seen.slot;
    out.queue = q;
    take(job, claimed, mine, lease_ms, lease_owned, now, out);
    tidy_index(seen);
    after_dispatch();
    return Outcome::kOk;
  }
}

/// Takes one job that was seen to wait, whatever stands before it.
Outcome Fetcher::fetch_seen(std::uint32_t q, std::uint32_t slot, Control available,
                            std::uint32_t lease_ms, bool lease_owned, Fetched& out) {
  set_current_queue(q);
  QueueRecord& queue = *current_.queue;
  QueueTally& mine = *current_.tally;
  JobRecord& job = store_.job(slot);
  intend<Op::kFetch>(q, slot, mine);
  const Control claimed = available.to(kSlotClaimed, owner_);
  // its hint stays, dead from now on
  if (!job.control.cas_once(available.word, claimed.word, Point::kSlotClaimed)) {
    intend_nothing();
    return Outcome::kLost;
  }
  const std::uint64_t now = std::max(store_.now_ms(), job.available_at.get());
  count_backlog(queue, ~0ULL);
  if (const Outcome end = end_of_claim(q, slot, claimed, now); end != Outcome::kOk) return end;
  intend_attempt(job.attempt.get());
  out.slot = slot;
  out.queue = q;
  take(job, claimed, mine, lease_ms, lease_owned, now, out);
  after_dispatch();
  return Outcome::kOk;
}

}  // namespace ojs_shm::engine
