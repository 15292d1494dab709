// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/bounds/waiting_line.hpp"

namespace ojs_shm::engine {

/// What a lane does for bounds: it lets new jobs in or turns them away, and says when it has made
/// room.
class Room : protected WaitingLine {
 protected:
  Room(Store& store, std::uint32_t lane) : WaitingLine(store, lane) {}
  ~Room() = default;

  // ---- being let in
  Outcome admit(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                std::uint64_t cost);
  /// admit() of a queue that is far from full, and where no producer ever waits: the charge is that
  /// of an enqueue that goes on. False: nothing has happened.
  bool admit_far(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                 std::uint64_t cost);
  Outcome admit_all(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                    std::uint64_t cost, std::span<TenantCharge> charges);
  Outcome refuse(QueueRecord& queue, std::uint32_t q, const Full& full, Backpressure policy);
  void take_back_admission(QueueTally& mine, std::uint32_t q, std::uint64_t cost,
                           std::span<TenantCharge> charges);
  void take_back_charges(QueueRecord& queue, std::span<TenantCharge> charges);
  void settle_reserved(std::uint32_t queue);

  // ---- being let out
  void room_made(QueueRecord& queue, std::uint32_t q) final;
  /// Tells what is still untold of pressure and refusals. When to look again, 0: when it is
  /// rung for.
  std::uint64_t watch_pressure(std::uint64_t now);

  // ---- settings
  void set_bounds(std::uint32_t queue, std::uint64_t max_depth, std::uint64_t max_bytes);
  void set_backpressure(std::uint32_t queue, Backpressure policy);
  /// Of each tenant of the queue that has no bounds of its own.
  void set_tenant_bounds(std::uint32_t queue, Bounds bounds);

 private:
  Outcome turn_away(QueueRecord& queue, std::uint32_t q, const Full& full, Backpressure policy);
  void settings_changed(QueueRecord& queue, std::uint32_t q);
};

}  // namespace ojs_shm::engine
