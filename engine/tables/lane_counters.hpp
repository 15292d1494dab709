// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ojs_shm::engine {

/// What stands in each of a lane's counters (Lane::counters).
enum LaneCounter : unsigned {
  kEventsTold,    ///< how many events it has told
  kPoolSeat,      ///< PoolSeat of the worker that has it
  kDropOut,       ///< of a drop that is being committed: the tally `out` as it shall be
  kDropCount,     ///< the same of `dropped`
  kLimitsHeld,    ///< 1 while it enqueues under a key of a limit
  kAccountStamp,  ///< of its operations that touched accounts
  kRivalNamed,    ///< slot + 1, state: the job that it is about to replace
  kTextsMade,     ///< texts that it wrote into blocks with a word of their own
  kSpread,        ///< 1 from the commit of a batch over several queues until all of it stands
};

}  // namespace ojs_shm::engine
