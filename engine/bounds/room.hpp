// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/bounds/admission.hpp"
#include "engine/limits/limit_gate.hpp"

namespace ojs_shm::engine {

/// What a lane does for bounds: it lets new jobs in or turns them away (admission.cpp), waits in
/// line for room and calls those that do (room.cpp), and says how full queues are (pressure.cpp).
class Room : protected LimitGate {
 protected:
  Room(Store& store, std::uint32_t lane)
      : LimitGate(store, lane), depth_cache_(store.max_queues()) {}
  ~Room() = default;

  /// How the last enqueue or batch met its queue's bound: refused, or accepted above the threshold.
  const Meeting& met() const { return met_; }
  void meet_nothing() { met_.fullness.bound = 0; }
  /// The batch that was refused has its jobs in another order than its caller's.
  void refused_at(std::span<const std::size_t> places) {
    if (met_.of_tenant) met_.refused = static_cast<std::uint32_t>(places[met_.refused]);
  }

  // ---- being let in (admission.cpp)
  Outcome admit(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                std::uint64_t cost);
  /// admit() of a queue that is far from full, and where no producer ever waits: the charge is that
  /// of an enqueue that goes on. False: nothing has happened.
  bool admit_far(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                 std::uint64_t cost);
  Outcome admit_all(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                    std::uint64_t cost, std::span<TenantCharge> charges);
  Outcome refuse(QueueRecord& queue, std::uint32_t q, const Full& full, Backpressure policy);
  std::uint64_t used_beside_reserved(const QueueRecord& queue, std::uint32_t q) const;
  void take_back_admission(QueueTally& mine, std::uint32_t q, std::uint64_t cost,
                           std::span<TenantCharge> charges);
  void take_back_charges(QueueRecord& queue, std::span<TenantCharge> charges);
  void settle_reserved(std::uint32_t queue);

  // ---- waiting (room.cpp)
  /// Of the next enqueues: ready to wait, with a ticket or, before there is one, with kNoIndex.
  /// kQueueFull becomes kMustWait.
  void be_patient(bool patient, std::uint32_t ticket = kNoIndex) {
    patient_ = patient;
    ticket_ = ticket;
  }
  /// From now on the places that it takes are that lane's, of the same process: that one is called,
  /// and they end with it.
  void take_places_for(std::uint32_t lane) { places_of_ = lane + 1; }
  /// Takes the last place in the line of waiting producers, until that time of the steady clock.
  Outcome await_room(std::uint32_t queue, std::uint64_t until_ms, RoomPlace& place);
  /// The ticket whose turn it is in that line; kNoIndex: none waits, or none may be let in.
  std::uint32_t first_in_line(std::uint32_t queue);
  /// This lane is about to look whether its turn has come: a lane that makes room now wakes it
  /// again.
  void attend(std::uint32_t ticket) {
    store_.tickets[ticket].called.exchange(0, shm::Point::kTicketCalled);
  }
  /// This lane looks again by itself then, and need not be woken before, unless much room is made.
  void rest_in_line(std::uint32_t ticket, std::uint64_t until_ms);
  /// Gives the place up, and lets the next one look.
  void leave_room(std::uint32_t queue, RoomPlace place);
  void call_next(QueueRecord& queue, Call call = Call::kUnlessCalled);
  void drop_tickets();
  void room_made(QueueRecord& queue, std::uint32_t q) final;

  // ---- how full it is (pressure.cpp)
  void notice_pressure(QueueRecord& queue, std::uint32_t q, std::uint64_t used, bool fresh,
                       Backpressure policy);
  /// Whether what was warned of is over.
  void look_for_calm(QueueRecord& queue, std::uint32_t q);
  void count_refusals(std::uint32_t q, std::uint64_t jobs, std::string_view type);
  /// Tells what is still untold of pressure and refusals. When to look again, 0: when it is
  /// rung for.
  std::uint64_t watch_pressure(std::uint64_t now);

  // ---- settings (admission.cpp)
  void set_bounds(std::uint32_t queue, std::uint64_t max_depth, std::uint64_t max_bytes);
  void set_backpressure(std::uint32_t queue, Backpressure policy);
  /// Of each tenant of the queue that has no bounds of its own.
  void set_tenant_bounds(std::uint32_t queue, Bounds bounds);

 private:
  Outcome turn_away(QueueRecord& queue, std::uint32_t q, const Full& full, Backpressure policy);
  bool may_pass(QueueRecord& queue);
  std::uint32_t first_waiting(QueueRecord& queue);
  bool still_waits(shm::Hint hint);
  std::uint32_t whose_turn(QueueRecord& queue, std::uint32_t first, bool& passable);
  void wait_for(std::uint64_t key, std::uint64_t cost, std::uint64_t depth);
  void call_all(std::uint32_t q);
  void settings_changed(QueueRecord& queue, std::uint32_t q);
  void settle_pressure(QueueRecord& queue, std::uint32_t q, const Fullness& fullness,
                       Backpressure policy);
  std::uint32_t recommended_delay(QueueRecord& queue, std::uint32_t q, const Full& full,
                                  Backpressure policy);

  std::vector<DepthCache> depth_cache_;
  Meeting met_;
  bool patient_ = false;
  std::uint32_t ticket_ = kNoIndex;
  std::uint32_t places_of_ = owner_;       ///< lane + 1
  std::span<const TenantCharge> charges_;  ///< of the enqueue that is being admitted
  /// of the next ticket; jobs in what is full
  std::uint64_t wait_key_ = 0, wait_cost_ = 0, wait_depth_ = 0;
  std::uint32_t turn_ = 0;  ///< where the search for a free ticket begins
};

}  // namespace ojs_shm::engine
