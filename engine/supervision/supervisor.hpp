// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/pools/schedule_watch.hpp"
#include "engine/supervision/dead_letters.hpp"
#include "engine/supervision/lease_watch.hpp"
#include "engine/supervision/packing.hpp"
#include "engine/supervision/retention.hpp"
#include "engine/supervision/timers.hpp"
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
        timers_(actor),
        leases_(actor, forbids_retry),
        watch_(actor),
        packer_(actor),
        dead_letters_(actor),
        ended_jobs_(actor),
        registry_(actor) {}

  struct Report : Timers::Report {
    std::uint32_t leases_ended = 0;
    std::vector<LostWorker> lost_workers = {};
  };
  /// Does what is due now. Returns when it wants to be called again, at the latest (Unix ms); at
  /// once when it returns `now`.
  std::uint64_t tick(std::uint64_t now, Report& report);

 private:
  void look_anew();
  std::uint64_t look_at_turns(std::uint64_t now);

  Actor& actor_;
  Timers timers_;
  LeaseWatch leases_;
  ScheduleWatch watch_;
  Packer packer_;
  DeadLetters dead_letters_;
  EndedJobs ended_jobs_;
  Registry registry_;
  std::uint64_t last_tick_ = 0;
  std::uint64_t next_retention_ = 0, next_turns_ = 0, next_workers_ = 0;
};

}  // namespace ojs_shm::engine
