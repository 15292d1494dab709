// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/pools/schedule_watch.hpp"
#include "engine/rules/retry.hpp"
#include "engine/supervision/dead_letters.hpp"
#include "engine/supervision/packing.hpp"
#include "engine/supervision/retention.hpp"
#include "engine/workers/registry.hpp"

namespace ojs_shm::engine {

/// The work of time, for whichever process holds the supervisor's seat. Owns nothing that another
/// could not build anew from the slots: a new supervisor starts with a walk over all of them.
/// Bounded work per tick. One thread.
class Supervisor {
 public:
  /// `forbids_retry` decides of jobs that ran longer than their timeout; without it they are tried
  /// again as their policy says.
  explicit Supervisor(Actor& actor, RetryRule forbids_retry = nullptr)
      : actor_(actor),
        forbids_retry_(forbids_retry),
        watch_(actor),
        packer_(actor),
        dead_letters_(actor),
        ended_jobs_(actor),
        registry_(actor) {}

  struct Report {
    std::uint32_t tended = 0, leases_ended = 0, hints_mended = 0;
    std::vector<LostWorker> lost_workers = {};
  };
  /// Does what is due now. Returns when it wants to be called again, at the latest (Unix ms); at
  /// once when it returns `now`.
  std::uint64_t tick(std::uint64_t now, Report& report);

 private:
  /// Of several that are due at once, the one that was announced first comes first.
  struct Timer {
    std::uint64_t due, announced;
    std::uint32_t slot, generation;
    bool operator>(const Timer& other) const {
      return due != other.due ? due > other.due : announced > other.announced;
    }
  };
  void rebuild(std::uint64_t now);
  void look_anew();
  void add(std::uint64_t due, std::uint32_t slot, std::uint32_t generation);
  bool read_inbox(std::uint64_t now);
  std::uint64_t look_at_leases(std::uint64_t now, Report& report);
  std::uint64_t look_at_turns(std::uint64_t now);
  std::uint64_t dispatches() const;

  Actor& actor_;
  RetryRule forbids_retry_;
  ScheduleWatch watch_;
  Packer packer_;
  DeadLetters dead_letters_;
  EndedJobs ended_jobs_;
  Registry registry_;
  std::vector<Timer> heap_;
  std::uint64_t announced_ = 0;  ///< of the last one: grows, and lies not behind the clock
  bool built_ = false;
  std::uint64_t last_tick_ = 0;
  std::uint64_t timers_lost_ = 0;
  std::uint64_t next_lease_look_ = 0, next_retention_ = 0, next_turns_ = 0, next_workers_ = 0;
  std::uint32_t lease_cursor_ = 0;
  std::uint64_t lease_earliest_ = 0, lease_began_ = 0, dispatches_seen_ = ~0ULL;
};

}  // namespace ojs_shm::engine
