// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/moves/intents.hpp"
#include "engine/tables/new_job.hpp"
#include "engine/tables/seat.hpp"
#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// A lane's dealings with the accounts of tenants (accounts.cpp). All of it belongs to an operation
/// of the lane, whose intent stands.
class TenantAccounts : protected Intents {
 protected:
  TenantAccounts(const Store& store, std::uint32_t lane)
      : Intents(store.segment().lane(lane)),
        store_(store),
        segment_(store_.segment()),
        lane_(lane),
        owner_(lane + 1) {}

  Outcome charge_account(std::uint32_t q, TenantCharge& charge, const Bounds& bounds,
                         std::uint64_t held, std::uint64_t& used);
  void charge_return_to_tenant(const QueueRecord& queue, std::uint32_t q, JobRecord& job,
                               std::uint64_t cost);
  /// A charge of this operation whose job does not come.
  void take_back_charge(TenantCharge& charge);
  /// Of a job in this lane's hands that no longer counts for its queue's bounds: nor for its
  /// tenant's.
  OJS_SHM_INLINE void uncharge_tenant(std::uint32_t slot, JobRecord& job) {
    if (AccountMark(job.account.load()).counts()) [[unlikely]]
      leave_account(slot, job);
  }
  void leave_account(std::uint32_t slot, JobRecord& job);
  /// Brings all that waits in the queue into accounts, as far as it can within so many looks.
  void gather_accounts(std::uint32_t q, unsigned patience);
  void settle_account(std::uint32_t account);

  // ---- after its death
  void undo_accounts();
  void keep_charge(std::uint32_t slot);
  bool mark_stands(std::uint32_t slot);
  void leave_account_seat();

  Store store_;  ///< a copy: its tables are at hand
  shm::Segment& segment_;
  std::uint32_t lane_, owner_;

 private:
  void begin_accounts();
  AccountTally& touch(std::uint32_t account);
  bool account_in_use(std::uint32_t account) const;
  Outcome open_account(std::uint32_t q, TenantCharge& charge);
  Seat<Half> seat() const {
    return {store_.header().account_seat, owner_, shm::Point::kAccountSeatTaken};
  }
  bool mark_waiting(std::uint32_t slot, std::uint32_t q);
  bool take_back_mark(JobRecord& job, AccountMark mark, std::uint32_t found);

  std::vector<DepthCache> account_cache_;
};

}  // namespace ojs_shm::engine
