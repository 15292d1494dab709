// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/bounds/drop.hpp"
#include "engine/unique/unique.hpp"

namespace ojs_shm::engine {

/// What a lane does for unique jobs, and for those that they replace (unique.cpp).
class UniqueKeys : protected Dropping {
 protected:
  using Dropping::Dropping;
  ~UniqueKeys() override = default;

  // ---- entering
  Outcome claim_key(const NewAnnex& annex, std::uint32_t slot, std::uint64_t now, Rivals& rivals);
  /// The same of a key that has other entries, as far as is known.
  Outcome claim_key_among(const NewAnnex& annex, std::uint32_t slot, std::uint64_t now,
                          Rivals& rivals);
  Outcome claim_past_key(const NewAnnex& annex, bool waits, std::uint32_t slot);
  Outcome claim_keys(std::span<const NewJob> specs, std::span<const std::uint32_t> slots,
                     Rivals& rivals);
  Outcome reclaim_key(std::uint32_t slot, const JobRecord& job);
  Outcome foresee_clash(const NewAnnex& annex);
  /// Adds the waiting jobs of the queue that those would replace, as far as no lane has them in
  /// hand.
  void foresee_leavers(std::span<const NewJob> specs, std::uint32_t queue,
                       std::vector<Leaver>& leavers);
  // The memory that a claim reads: of the index, then of the job that has the key.
  void ask_for_key(const NewAnnex& annex);
  shm::KeyIndex::Glance ask_for_rival(const NewAnnex& annex);
  /// A duplicate of that rank may be more urgent than the job in its way.
  void raise_other(const NewAnnex& annex, std::uint32_t queue, std::uint8_t rank, JobId other);
  void count_conflict(std::uint32_t queue);

  // ---- rivals
  bool seize_rivals(std::span<Rival> rivals);
  bool seize_one_rival(const NewAnnex& annex, std::span<Rival> rivals);
  bool is_our_rival(std::uint32_t slot) const;
  void mark_replaced(std::uint32_t slot);
  void end_rival(std::uint32_t slot);
  bool find_named_rival(std::uint32_t slot);

  Conflicts conflicts_;  ///< of the last enqueue of unique jobs

 private:
  bool others_come(UniqueKey key, const KeyLook& look) const;
};

}  // namespace ojs_shm::engine
