// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/bounds/pressure.hpp"

namespace ojs_shm::engine {

/// The producers that wait for room in a bounded queue: this lane takes its place among them, looks
/// whose turn it is, and calls that one when it makes room.
class WaitingLine : protected Pressure {
 protected:
  WaitingLine(Store& store, std::uint32_t lane) : Pressure(store, lane) {}
  ~WaitingLine() = default;

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
  /// Wakes every producer that waits for the queue: its rules have changed.
  void call_all(std::uint32_t queue);

  bool may_pass(QueueRecord& queue);
  void wait_for(std::uint64_t key, std::uint64_t cost, std::uint64_t depth);

  bool patient_ = false;
  std::uint32_t ticket_ = kNoIndex;
  std::span<const TenantCharge> charges_;  ///< of the enqueue that is being admitted

 private:
  std::uint32_t first_waiting(QueueRecord& queue);
  bool still_waits(shm::Hint hint);
  std::uint32_t whose_turn(QueueRecord& queue, std::uint32_t first, bool& passable);

  std::uint32_t places_of_ = owner_;  ///< lane + 1
  /// of the next ticket; jobs in what is full
  std::uint64_t wait_key_ = 0, wait_cost_ = 0, wait_depth_ = 0;
  std::uint32_t turn_ = 0;  ///< where the search for a free ticket begins
};

}  // namespace ojs_shm::engine
