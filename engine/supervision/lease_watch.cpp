// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/lease_watch.hpp"

#include <algorithm>

namespace ojs_shm::engine {

std::uint64_t LeaseWatch::dispatches() const {
  Store& store = actor_.store();
  std::uint64_t sum = 0;
  const std::uint32_t lanes = std::min(store.segment().header().lanes_high.load(), store.lanes());
  for (std::uint32_t q = 0; q < store.queue_count(); ++q)
    for (std::uint32_t l = 0; l < lanes; ++l) sum += store.tally(q, l).dispatched.get_ordered();
  return sum;
}

std::uint64_t LeaseWatch::look(std::uint64_t now, std::uint32_t& ended) {
  constexpr std::uint32_t kSlotsPerCall = 16'384;
  Store& store = actor_.store();
  const std::uint64_t shortest =
      std::max<std::uint64_t>(store.segment().header().shortest_lease_ms.load(), 10);
  if (cursor_ == 0) {
    next_ = std::min(next_, began_ + shortest);
    if (now < next_) return next_;
    const std::uint64_t seen = dispatches();
    if (seen == dispatches_seen_ && earliest_ == 0) {
      began_ = now;
      return next_ = now + shortest;
    }
    dispatches_seen_ = seen;
    began_ = now;
    earliest_ = 0;
  }
  const std::uint64_t earliest =
      actor_.end_leases(cursor_, cursor_ + kSlotsPerCall, now, ended, forbids_retry_);
  if (earliest != 0) earliest_ = earliest_ == 0 ? earliest : std::min(earliest_, earliest);
  cursor_ += kSlotsPerCall;
  if (cursor_ < store.slots()) return now;
  cursor_ = 0;
  next_ = began_ + shortest;
  if (earliest_ != 0) next_ = std::min(next_, earliest_);
  return next_ = std::max(next_, now + 1);
}

}  // namespace ojs_shm::engine
