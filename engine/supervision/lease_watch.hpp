// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/actor.hpp"
#include "engine/rules/retry.hpp"

namespace ojs_shm::engine {

/// Ends leases that are over. A walk over all slots, a part of it in each call: when the earliest
/// end seen comes, and as often as the shortest lease ever given asks for, but not at all while
/// nothing has been dispatched since a walk that found no active job. A new supervisor
/// begins it anew.
class LeaseWatch {
 public:
  LeaseWatch(Actor& actor, RetryRule forbids_retry)
      : actor_(actor), forbids_retry_(forbids_retry) {}

  /// Does what is due; `ended` grows by each lease. When it is to be called again, Unix ms: at once
  /// when that is `now`.
  std::uint64_t look(std::uint64_t now, std::uint32_t& ended);
  /// The clock was set back.
  void look_anew() { next_ = began_ = 0; }

 private:
  std::uint64_t dispatches() const;

  Actor& actor_;
  RetryRule forbids_retry_;
  std::uint32_t cursor_ = 0;
  std::uint64_t next_ = 0, began_ = 0;
  std::uint64_t earliest_ = 0;  ///< end of a lease that this walk has left; 0: none
  std::uint64_t dispatches_seen_ = ~0ULL;
};

}  // namespace ojs_shm::engine
