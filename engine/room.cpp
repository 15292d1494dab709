// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"
#include "shm/parking.hpp"

// Producers that wait for room in a bounded queue. Each has a ticket, and the hints of the queue's room_ring lead to them:
// whose hint stands first is let in first. So the cas that publishes the hint is what registers a waiter. A ticket ends
// when its owner is let in or gives up; when its time is over, by anyone; and when its owner is dead, by the repair. Its
// hint is then dead, and the next look moves past it.
//
// Who takes a job out reads `attention` after its tally; if somebody may wait, it wakes the first. On a machine where that
// store may still be on its way when the word is read, a waiter can miss it: therefore it looks once more a millisecond
// after it lay down, and from then on whenever it is woken, and ten times in a second.

namespace ojs_shm::engine {

using shm::Point;

namespace {
/// How long a ticket outlives its time, for its owner to end it itself.
constexpr std::uint64_t kGraceMs = 50;
}  // namespace

/// The ticket whose turn it is; kNoIndex when nobody waits.
std::uint32_t Actor::first_waiting(QueueRecord& queue) {
  const std::uint32_t ring = queue.room_ring.load() - 1;  // PAIR ring-name
  if (ring == kNoIndex) return kNoIndex;
  for (std::uint32_t left = rings_.longest_search(); left > 0; --left) {
    const shm::Peeked head = rings_.peek(ring);
    if (head.empty()) return kNoIndex;
    const std::uint32_t index = head.hint().index();
    if (index < room_tickets(store_.lanes())) {
      RoomTicket& ticket = store_.ticket(index);
      const TicketControl found(ticket.control.load());
      if (found.is(head.hint().tag())) {
        if (ticket.until.load() + kGraceMs >= shm::steady_ms()) return index;
        ticket.control.cas_once(found.word, found.void_().word, Point::kTicketVoided);  // its owner seems to be stopped
      }
    }
    shm::Rings::retire(head);
  }
  return kNoIndex;
}

/// Whether nobody came before this lane.
bool Actor::may_pass(QueueRecord& queue) { return first_waiting(queue) == (patient_ ? ticket_ : kNoIndex); }

Outcome Actor::await_room(std::uint32_t q, std::uint64_t until_ms, std::uint32_t& ticket) {
  QueueRecord& queue = store_.queue(q);
  const std::uint32_t ring = rings_.ensure_unindexed(queue.room_ring);
  if (ring == kNoIndex) return Outcome::kNoRings;
  const std::uint32_t all = room_tickets(store_.lanes());
  for (std::uint32_t i = 0; i < all; ++i) {
    const std::uint32_t at = (lane_ * 8 + room_turn_ + i) % all;
    RoomTicket& free = store_.ticket(at);
    const TicketControl found(free.control.load());
    if (found.taken()) continue;
    const TicketControl taken = found.take(q, owner_);
    if (!free.control.cas_once(found.word, taken.word, Point::kTicketTaken)) continue;
    room_turn_ = (room_turn_ + i + 1) % all;
    free.until.store(until_ms, Point::kTicketTaken);
    free.called.store(0, Point::kTicketCalled);
    const shm::Hint hint(at, taken.tag());
    if (!rings_.push(ring, hint, nullptr, 0)) {
      relieve();
      if (!rings_.push(ring, hint, nullptr, 0)) {
        free.control.cas_once(taken.word, taken.void_().word, Point::kTicketVoided);
        return Outcome::kNoChunks;
      }
    }
    for (std::uint64_t word = queue.attention.load();
         !queue.attention.cas(word, (word | Attention::kAwaited) + Attention::kVersion, Point::kAttentionSet);) {}
    ticket = at;
    return Outcome::kOk;
  }
  return Outcome::kNoTickets;
}

void Actor::leave_room(std::uint32_t q, std::uint32_t ticket) {
  RoomTicket& mine = store_.ticket(ticket);
  const TicketControl found(mine.control.load());
  if (found.taken() && found.owner() == owner_ && found.queue() == q)
    mine.control.cas_once(found.word, found.void_().word, Point::kTicketVoided);
  call_next(store_.queue(q));
}

/// Wakes whose turn it is, unless it has been called and has not looked yet, or anyway: whoever called it may have died
/// before it woke it. When nobody waits any more, says so.
[[gnu::noinline]] void Actor::call_next(QueueRecord& queue, bool anyway) {
  const std::uint64_t word = queue.attention.load();
  if ((word & Attention::kAwaited) == 0) return;
  const std::uint32_t first = first_waiting(queue);
  if (first == kNoIndex) {
    queue.attention.cas_once(word, word & ~Attention::kAwaited, Point::kAttentionSet);
    return;
  }
  RoomTicket& ticket = store_.ticket(first);
  if (ticket.called.exchange(1, Point::kTicketCalled) != 0 && !anyway) return;
  const std::uint32_t owner = TicketControl(ticket.control.load()).owner();
  if (owner == 0 || owner > store_.lanes()) return;
  shm::Lane& lane = segment_.lane(owner - 1);
  lane.park.fetch_add(1, Point::kParkSet);
  shm::futex_wake(lane.park, 1 << 20);  // its descriptor's thread, too
}

/// Wakes all who wait for the queue: its rules have changed.
void Actor::call_all(std::uint32_t q) {
  for (std::uint32_t i = 0; i < room_tickets(store_.lanes()); ++i) {
    const TicketControl found(store_.ticket(i).control.load());
    if (!found.taken() || found.queue() != q || found.owner() == 0 || found.owner() > store_.lanes()) continue;
    shm::Lane& lane = segment_.lane(found.owner() - 1);
    lane.park.fetch_add(1, Point::kParkSet);
    shm::futex_wake(lane.park, 1 << 20);
  }
}

/// Those of this lane, whose owner is dead.
void Actor::drop_tickets() {
  for (std::uint32_t i = 0; i < room_tickets(store_.lanes()); ++i) {
    RoomTicket& ticket = store_.ticket(i);
    const TicketControl found(ticket.control.load());
    if (found.taken() && found.owner() == owner_)
      ticket.control.cas_once(found.word, found.void_().word, Point::kTicketVoided);
  }
}

/// A job has been taken out, and somebody waits for that or has warned.
[[gnu::noinline]] void Actor::room_made(QueueRecord& queue, std::uint32_t q) {
  const std::uint64_t word = queue.attention.load();
  if ((word & Attention::kAwaited) != 0) call_next(queue);
  if ((word & Attention::kWarned) == 0) return;
  DepthCache& cache = depth_cache_[q];
  if (cache.removals_left > 0)
    --cache.removals_left;
  else
    look_for_calm(queue, q);
}

}  // namespace ojs_shm::engine
