// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/moves/holder.hpp"
#include "engine/observing/waits.hpp"
#include "engine/tables/fetched.hpp"
#include "engine/tables/job_look.hpp"

namespace ojs_shm::engine {

/// Of the jobs that ended without being completed.
enum class Lost : std::uint8_t { kAny, kDeadLetter };

/// What a lane does to one job that is there, whether it holds it, knows its id, or its time has
/// come: an attempt ends without an ack, a job is cancelled, gets another rank, becomes due.
class Changer : protected Holder {
 protected:
  Changer(Store& store, std::uint32_t lane);
  ~Changer() = default;

  // ---- the end of an attempt (settle.cpp)
  Settled set_back(std::uint32_t slot, std::uint64_t word, Setback why, const ErrorEntry* error);

  // ---- by its id (change.cpp)
  Outcome cancel(JobId id, JobState& found);
  /// `raises`: only to a better rank than it has at that moment.
  Outcome reprioritize(JobId id, std::uint8_t rank, std::uint8_t& previous, JobState& found,
                       bool raises = false);
  Outcome activate(JobId id, Activation what, JobState& found);
  Outcome discard(JobId id);  ///< its queue is deleted
  Outcome drop_dead(JobId id, JobState& found);
  Outcome drop(JobId id, JobState& found);        ///< what is kept of a job that is over
  bool prune(std::uint32_t slot, Control found);  ///< a dead letter that still is as it was found
  /// Takes a job that was lost into this lane's hands. One that `which` does not name stays as it
  /// was.
  Outcome seize_lost(Event event, Lost which, JobId id, std::uint32_t& slot, Control& held,
                     JobState& found);
  /// Of a job that this lane holds under an intent that says what it was before.
  void end_cancelled(std::uint32_t slot, Control held, unsigned before);

  // ---- time (due.cpp), called by the supervisor
  /// Sees to what is due in the slot; when something is due there next, 0 for never.
  std::uint64_t tend(std::uint32_t slot, std::uint32_t generation, std::uint64_t now);
  /// Ends leases and timeouts that are over in slots [begin, end). Returns the earliest deadline
  /// seen that lies ahead. `forbids_retry`: as Supervisor's.
  std::uint64_t end_leases(std::uint32_t begin, std::uint32_t end, std::uint64_t now,
                           std::uint32_t& ended, RetryRule forbids_retry = nullptr);
  void end_expired(std::uint32_t slot, JobRecord& job, Control held, std::uint64_t now,
                   unsigned before = kSlotAvailable);

  WaitMeter waits_;

 private:
  void follow_rerank(std::uint32_t slot, JobRecord& job, QueueRecord& queue, std::uint32_t ring,
                     Control available);
  void append_error(std::uint32_t slot, JobRecord& job, const ErrorEntry& error);
  void close_limit(const JobRecord& job, Control held, std::uint64_t until);
  Outcome seize(Event event, JobId id, std::uint32_t& slot, Control& held, JobState& found);
  bool promote(std::uint32_t slot, JobRecord& job, Control before, std::uint64_t now);
  bool expire(std::uint32_t slot, JobRecord& job, Control before, std::uint64_t now);
  bool end_total(std::uint32_t slot, JobRecord& job, Control active, std::uint64_t now);

  std::uint64_t random_;  ///< what pauses before a retry are spread by
};

}  // namespace ojs_shm::engine
