// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/limits/limits.hpp"
#include "engine/moves/changer.hpp"
#include "engine/pools/pool_worker.hpp"
#include "engine/tables/lane_counters.hpp"

namespace ojs_shm::engine {

/// What a lane does for limits: it asks the keys of a job that it has claimed, parks what they hold
/// back, and lets go what may begin. LimitSetter sets limits.
class LimitGate : protected Changer {
 protected:
  LimitGate(Store& store, std::uint32_t lane) : Changer(store, lane), pool_worker_(store_, self_) {}
  ~LimitGate() = default;

  std::uint32_t worker_limit() const { return pool_worker_.limit(); }

  // ---- of a fetch
  bool gate_open(const QueueRecord& queue);
  enum class Passage : std::uint8_t { kPasses, kHeldBack, kGateClosed };
  Passage pass_limits(std::uint32_t q, std::uint32_t slot, JobRecord& job, Control claimed,
                      std::uint64_t now);
  OJS_SHM_INLINE void after_dispatch() {
    if (!pending_lots_.empty()) [[unlikely]]
      follow_dispatch();
  }

  // ---- of an enqueue
  LaneWord& limits_held() { return self_.counters[kLimitsHeld]; }  ///< of LimitsHold
  std::uint32_t lot_at_birth(const NewJob& spec, const shm::RingSet& line) const;
  void follow_birth(std::uint32_t lot);

  // ---- of an end, or when there is room for another reason
  LimitList give_limits(std::uint32_t slot, JobRecord& job, bool held) final;
  void let_begin(const LimitList& keys, std::uint32_t q) final;
  void let_more_begin(std::uint32_t key, unsigned most);
  std::uint64_t tend_limits(std::uint64_t now);  ///< when it is to be called again, Unix ms

  // ---- of a repair
  void wait_with_limits() { mending_ = true; }  ///< until mend_limits() sees to all lots
  void mend_limits();

  PoolWorker pool_worker_;

 private:
  void follow_dispatch();
  unsigned take_limits(const LimitList& keys, Permit holder, std::uint64_t now);
  void hold_back(std::uint32_t key, std::uint32_t slot, JobRecord& job, Control claimed,
                 std::uint64_t now);
  void drop_limited(std::uint32_t key, std::uint32_t slot, JobRecord& job, Control claimed,
                    std::uint64_t now);
  std::uint32_t ensure_lot(std::uint32_t key, std::uint32_t q);
  unsigned risen_in(ParkingLot& lot, const Aging& aging, std::uint32_t& left);
  bool unpark(std::uint32_t lot);
  bool unpark_head(const ParkingLot& lot, std::uint32_t ring, unsigned number,
                   const shm::Peeked& head);

  bool mending_ = false;
  std::vector<std::uint32_t> pending_lots_;  ///< to be looked into after the dispatch
};

}  // namespace ojs_shm::engine
