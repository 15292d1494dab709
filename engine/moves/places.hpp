// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/bounds/tenant_accounts.hpp"
#include "engine/moves/bell.hpp"
#include "engine/moves/slot_pool.hpp"
#include "shm/ring.hpp"

namespace ojs_shm::engine {

/// The places where jobs stand while they wait, and how a lane puts them there when chunks are
/// short: lines of available jobs, and timers.
class Places : protected TenantAccounts {
 protected:
  Places(Store& store, std::uint32_t lane)
      : TenantAccounts(store, lane),
        rings_(segment_, lane),
        bell_(store_),
        slots_(store_, rings_, lane) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  ~Places() = default;

  /// Puts an available job where fetches find it: into its tenant's flow if its queue is fair, else
  /// into its ring. A job that goes to the front stands in its ring.
  OJS_SHM_INLINE bool stand_in_line(std::uint64_t flags, shm::RingSet& rings, std::uint32_t ring,
                                    std::uint32_t slot, Control available) {
    if ((flags & kFair) != 0 && join_flow(rings, ring, slot, available)) [[unlikely]]
      return true;
    return push_hint(rings, ring, slot, available);
  }
  bool push_hint(shm::RingSet& rings, std::uint32_t ring, std::uint32_t slot, Control available);
  static std::uint64_t timer_of(const JobRecord& job, unsigned state);
  bool push_timer(std::uint32_t slot, std::uint32_t generation, std::uint64_t due);
  void announce_lost_hint();
  /// Does what found no chunk again: after packing, and at last with the chunk of the longest
  /// finished jobs.
  bool relieved(const auto& again) {
    return pack_for_a_while(), again() || (slots_.drop_oldest_batch() && again());
  }
  /// Among what was given back to a rank, the job that became available first. The head leads; at
  /// most 64 are compared.
  shm::Peeked oldest_in_front(std::uint32_t ring, unsigned number, shm::Peeked head);
  std::uint32_t collect_leaks();  ///< frees chunks that stand in no ring. Returns how many

  shm::Rings rings_;
  Bell bell_;
  SlotPool slots_;

 private:
  void pack_for_a_while();

  // ---- a door to what options do
  virtual bool join_flow(shm::RingSet& rings, std::uint32_t ring, std::uint32_t slot,
                         Control available) = 0;
};

}  // namespace ojs_shm::engine
