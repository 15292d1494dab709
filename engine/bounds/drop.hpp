// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fetch/search.hpp"
#include "engine/tables/seat.hpp"

namespace ojs_shm::engine {

/// How waiting jobs go for new ones (drop.cpp): a search for each victim, and an admission by what
/// they leave.
class Dropping : protected Search {
 protected:
  using Search::Search;
  ~Dropping() override = default;

  Outcome admit_by_dropping(QueueRecord& queue, QueueTally& mine, std::uint32_t q,
                            std::uint64_t cost, std::span<TenantCharge> charges,
                            std::span<const Leaver> leavers, std::vector<Victim>& victims);
  void commit_drop(QueueTally& mine, std::span<const Victim> victims);
  void drop_victims(std::span<const Victim> victims);
  /// Both, of victims whose drop another store has committed.
  void drop_apart(std::uint32_t q, std::span<const Victim> victims);
  /// The same of all that the lane still holds, and that are neither unborn nor rivals.
  std::uint32_t drop_rest();
  void end_refused_drop(QueueRecord& queue, std::uint32_t q, std::span<const Victim> victims);
  Seat<Half> dropper(QueueRecord& queue) const {
    return {queue.dropper, owner_, shm::Point::kDropperSet};
  }
  std::uint32_t finish_drop(std::uint32_t q);

 private:
  std::vector<Victim> victims_left(std::uint32_t q) const;
  Outcome admit_by_dropping(QueueRecord& queue, std::uint32_t q, TenantCharge& charge,
                            std::span<const Leaver> leavers, std::vector<Victim>& victims);
  bool pass_leavers(shm::RingSet& set, std::span<const Leaver> leavers, Live& live);
  bool claim_victim(QueueRecord& queue, std::uint32_t q, bool lowest_first,
                    std::span<const Leaver> leavers, Victim& victim);
  bool claim_victim(std::uint64_t tenant, std::uint32_t q, bool lowest_first,
                    std::span<const Leaver> leavers, Victim& victim);

  /// A door: the workflow of a victim is told later, when the batch has ended.
  virtual void drop_member(const Membership& member) = 0;
};

}  // namespace ojs_shm::engine
