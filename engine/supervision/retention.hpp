// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// How long a queue keeps its jobs after their end, by the state in which they ended. Source:
/// ojs-queue-config 6.3.
struct Retention {
  std::uint64_t completed_ms = 0, discarded_ms = 0, cancelled_ms = 0;  ///< 0: no time of its own
  static Retention of(const QueueRecord& queue) {
    return {queue.kept_completed.load(), queue.kept_discarded.load(), queue.kept_cancelled.load()};
  }
  std::uint64_t of_state(unsigned state) const {
    return state == kSlotCompleted   ? completed_ms
           : state == kSlotDiscarded ? discarded_ms
           : state == kSlotCancelled ? cancelled_ms
                                     : 0;
  }
  std::uint64_t shortest() const;  ///< 0: it has none
};
/// Effective at once, also on jobs that have ended. The supervisor looks.
void set_retention(Actor& actor, std::uint32_t queue, const Retention& wanted);

/// Whether what is kept of a job may go: neither the workflow that it belongs to still needs it,
/// nor the key that it is unique by. A key that is taken for ever is held by nothing but a
/// retention.
bool may_go(const Store& store, const JobRecord& job, unsigned state, std::uint64_t now);

/// Drops jobs that their queues keep no longer. A walk over all slots, a part of it in each call,
/// and none before one can be due. Nothing that another could not begin anew.
class EndedJobs {
 public:
  explicit EndedJobs(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// Does what is due. When it is to be called again, Unix ms: at once when that is `now`.
  std::uint64_t look(std::uint64_t now);
  /// The clock was set back.
  void look_anew() { next_ = next_check_ = 0; }

 private:
  std::uint64_t shortest() const;
  void look_at(std::uint32_t slot, std::uint64_t now);

  Actor& actor_;
  Store& store_;
  std::uint64_t settings_ = 0;  ///< EngineHeader::retentions as they were
  bool walking_ = false;
  std::uint32_t cursor_ = 0;
  std::uint64_t next_ = 0, next_check_ = 0, began_ = 0;
  std::uint64_t shortest_ = 0;  ///< time of any queue, at the last check; 0: none has one
  std::uint64_t earliest_ = 0;  ///< end of the time of a job that this walk has left
};

}  // namespace ojs_shm::engine
