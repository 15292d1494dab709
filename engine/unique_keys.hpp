// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/actor.hpp"
#include "engine/unique.hpp"

namespace ojs_shm::engine {

/// What an Actor does for unique jobs, and for those that they replace.
struct UniqueKeys {
  Actor& actor;
  Store& store;

  Outcome claim(const NewAnnex& annex, std::uint32_t slot, std::uint64_t now, Rivals& rivals);
  /// The same of a key that has other entries, as far as is known.
  Outcome claim_among(const NewAnnex& annex, std::uint32_t slot, std::uint64_t now, Rivals& rivals);
  Outcome claim_past(const NewAnnex& annex, bool waits, std::uint32_t slot);
  Outcome claim_all(std::span<const NewJob> specs, std::span<const std::uint32_t> slots,
                    Rivals& rivals);
  Outcome reclaim(std::uint32_t slot, const JobRecord& job);
  Outcome foresee(const NewAnnex& annex);
  // The memory that a claim reads: of the index, then of the job that has the key.
  void ask_for_key(const NewAnnex& annex);
  shm::KeyIndex::Glance ask_for_rival(const NewAnnex& annex);
  /// A duplicate of that rank may be more urgent than the job in its way.
  void raise_other(const NewAnnex& annex, std::uint32_t queue, std::uint8_t rank, JobId other);
  Outcome enqueue_batch(std::span<const NewJob> specs, std::vector<JobId>& ids);
  // rivals
  bool seize(std::span<Rival> rivals);
  bool seize_one(const NewAnnex& annex, std::span<Rival> rivals);
  bool ours(std::uint32_t slot) const;
  void mark_replaced(std::uint32_t slot);
  void end(std::uint32_t slot);
  bool find_named(std::uint32_t slot);

 private:
  bool others_come(UniqueKey key, const KeyLook& look) const;
  void count_conflict(std::uint32_t queue);
  Outcome refuse_batch(const NewJob& spec, std::vector<JobId>& ids);
};

}  // namespace ojs_shm::engine
