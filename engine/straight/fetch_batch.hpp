// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "engine/straight/take.hpp"

// Fetches of several plain jobs of one queue, under one intent:
//
//   look, look again | intent | each slot available -> claimed | heads | each record
//   | tallies | commit | each slot -> active
//
// All are the best that waited at one instant, between the two looks. A death before the commit
// gives them back as if they had not been fetched; after it, the repair makes those active that are
// left (Repairer::finish_fetches), and then it is their holder's death.

namespace ojs_shm::engine {

/// A Receiver has `at(i)`, the places of the job that comes there, as Fetched has them, and is told
/// `took(i, places)`. What it was told of a place may come again, or another.
template <class Receiver>
std::size_t StraightFetch::fetch_batch_plain(std::uint32_t q, std::uint32_t lease_ms,
                                             bool lease_owned, std::size_t wanted,
                                             Receiver& receiver) {
  const std::uint64_t now = store_.now_ms();
  const std::uint32_t holder = lease_owned ? shm::kLeaseOwner : owner_;
  std::size_t count = 0;
  Picked jobs;
  while (count < wanted &&
         claim_best(q, static_cast<unsigned>(std::min<std::size_t>(wanted - count, kPlainBatch)),
                    jobs)) {
    std::uint64_t cost = 0, shortest_lease = ~0ULL;
    bool alike = !limiting();
    for (unsigned i = 0; i < jobs.count && alike; ++i) {
      Picked::One& one = jobs.all[i];
      const std::uint64_t expires = one.job->expires_at.get();
      alike = (expires == 0 || expires > now) && !AccountMark(one.job->account.load()).counts();
      if (!alike) [[unlikely]]
        break;
      auto&& out = receiver.at(count + i);
      out.slot = one.slot, out.queue = q;
      const Control active = Control(one.word).to(kSlotActive, holder);
      cost += charge(1, begin(*one.job, active, lease_ms, now, out));
      one.word = active.word;
      shortest_lease = std::min(shortest_lease, out.deadline - now);
      receiver.took(count + i, out);
    }
    if (alike) [[likely]] {
      begin_all(jobs, cost, shortest_lease, now);
      count += jobs.count;
      continue;
    }
    for (unsigned i = 0; i < jobs.count; ++i) {
      auto&& out = receiver.at(count);
      if (begin_alone(q, jobs.all[i], lease_ms, lease_owned, now, out)) receiver.took(count++, out);
    }
  }
  return count;
}

/// One of several that were claimed, by itself. False: it does not begin.
template <class Out>
[[gnu::noinline]] bool StraightFetch::begin_alone(std::uint32_t q, const Picked::One& one,
                                                  std::uint32_t lease_ms, bool lease_owned,
                                                  std::uint64_t now, Out& out) {
  const Control claimed(one.job->control.load());
  QueueTally& mine = *current_.tally;
  intend<Op::kFetch>(q, one.slot, mine);
  if (end_of_claim(q, one.slot, claimed, now) != Outcome::kOk) return false;
  intend_attempt(one.job->attempt.get());
  out.slot = one.slot, out.queue = q;
  take(*one.job, claimed, mine, lease_ms, lease_owned, now, out);
  after_dispatch();
  return true;
}

}  // namespace ojs_shm::engine
