// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/unique/unique_keys.hpp"

namespace ojs_shm::engine {

struct PastJob;  // restore.hpp

/// How a lane brings a job into its slot and into its place: a new one, one that has lived
/// elsewhere, and one that was lost and comes back.
class Filler : protected UniqueKeys {
 protected:
  using UniqueKeys::UniqueKeys;
  ~Filler() override = default;

  // ---- a new one (filler.cpp)
  /// Fills a slot that this lane has taken; kPlain: with what lies in it whole and in no index.
  template <bool kPlain, class Spec>
  Outcome fill(const Spec& spec, const JobForm& form, std::uint32_t slot, JobRecord& job,
               std::uint64_t now, JobId& id, std::uint64_t signals = 0);
  /// The same of a job that no queue gets: others are made from it.
  Outcome fill_aside(const NewJob& spec, std::uint32_t slot, JobId& id);
  Outcome publish(std::uint64_t flags, shm::RingSet& rings, std::uint32_t slot, JobRecord& job,
                  Control filling, unsigned number, JobState state);
  void settings_moved(QueueRecord& queue, std::uint64_t before, std::uint64_t now);

  // ---- one that is charged, and comes with others or not at all (unborn.cpp)
  /// It is being filled afterwards.
  void uncharge_unborn(std::uint32_t slot);
  void publish_unborn(std::uint32_t slot);
  void give_out(std::uint32_t slot, JobRecord& job, Control held);

  // ---- one with a past (restore.cpp)
  /// Its queue's bound does not refuse it.
  Outcome restore(const PastJob& past);
  Outcome remember(const PastJob& past, std::uint32_t slot, JobRecord& job);

  // ---- one that was lost (revive.cpp)
  Outcome retry(JobId id, Lost which, JobState& found);
  void revive(std::uint32_t slot, JobRecord& job, Control held);

 private:
  JobId next_id(std::uint64_t now, std::uint32_t slot, std::uint32_t generation);
  std::uint32_t write_body(std::uint32_t slot, std::uint32_t generation, const NewJob& spec);
  Outcome publish_past(const PastJob& past, shm::RingSet& rings, std::uint32_t slot, JobRecord& job,
                       Control filling);

  IdClock clock_;
};

}  // namespace ojs_shm::engine
