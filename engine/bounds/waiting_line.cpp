// SPDX-License-Identifier: Apache-2.0
#include "engine/bounds/waiting_line.hpp"

#include <algorithm>

#include "engine/bounds/account_look.hpp"
#include "engine/tenants/tenant_rules.hpp"

// Producers that wait for room in a bounded queue. Each has a ticket, and the hints of the queue's
// room_ring lead to them: whose hint stands first is let in first. So the cas that publishes the
// hint is what registers a waiter. A ticket ends when its owner is let in or gives up; when its
// time is over, by anyone; and when its owner is dead, by the repair. Its hint is then dead, and
// the next look moves past it.
//
// To take a job out is to read `attention` after the tally; if a lane may wait, the first is woken.
// On a machine where that store may still be on its way when the word is read, a waiter can miss
// it: therefore it looks once more a millisecond after it lay down, and from then on whenever it is
// woken, and ten times in a second.
//
// A call costs a worker more than its fetch. So a waiter that has just lain down, or was
// called, rests: it looks again by itself within a millisecond, and lanes that take jobs out let it
// until a sixteenth of those before it has left.
//
// Where tenants are bounded, an enqueue that waits for its tenant's room is passed over by those of
// other tenants, and by none of its own: so a full tenant does not hold up the other tenants.

namespace ojs_shm::engine {

using shm::Point;

namespace {
/// How long a ticket outlives its time, for its owner to end it itself.
constexpr std::uint64_t kGraceMs = 50;

/// Whether the ticket's owner will have looked soon by itself, after this job has left. It sleeps
/// no longer than its rest lasts, and never longer before it has looked after the end of one: so
/// a lane that lets it rest is seen by that look.
bool may_rest(RoomTicket& ticket) {
  for (std::uint64_t found = ticket.rest.load(); !RoomRest(found).over(shm::steady_ms());)
    if (ticket.rest.cas(found, RoomRest(found).less().word, Point::kTicketCalled)) return true;
  return false;
}

}  // namespace

/// Whether the owner of the hint's ticket still waits.
bool WaitingLine::still_waits(shm::Hint hint) {
  if (hint.index() >= store_.tickets.size()) return false;
  RoomTicket& ticket = store_.tickets[hint.index()];
  const TicketControl found(ticket.control.load());
  if (!found.is(hint.tag())) return false;
  if (ticket.until.load() + kGraceMs >= shm::steady_ms()) return true;
  // its owner seems to be stopped
  ticket.control.cas_once(found.word, found.void_().word, Point::kTicketVoided);
  return false;
}

/// The ticket that came first; kNoIndex when none waits.
std::uint32_t WaitingLine::first_waiting(QueueRecord& queue) {
  const std::uint32_t ring = queue.room_ring.load() - 1;  // PAIR ring-name
  if (ring == kNoIndex) return kNoIndex;
  for (std::uint32_t left = rings_.longest_search(); left > 0; --left) {
    const shm::Peeked head = rings_.peek(ring);
    if (head.empty()) return kNoIndex;
    if (still_waits(head.hint())) return head.hint().index();
    shm::Rings::retire(head);
  }
  return kNoIndex;
}

/// The ticket whose turn it is, where tenants are bounded: the first whose tenant has room. A
/// ticket that waits for its tenant's room holds up only later tickets of that tenant. `first` has
/// waited longest. `passable`: no earlier ticket waits for a tenant of the present enqueue.
std::uint32_t WaitingLine::whose_turn(QueueRecord& queue, std::uint32_t first, bool& passable) {
  passable = true;
  if (first == kNoIndex || (queue.flags.load() & kTenants) == 0) return first;
  const std::uint32_t q = store_.number_of(queue);
  std::uint32_t turn = kNoIndex;
  std::vector<std::uint64_t> held_up;
  shm::Rings::walk(segment_, queue.room_ring.load() - 1,
                   [&](std::uint32_t, unsigned, std::uint64_t value) {
                     const shm::Hint hint(value);
                     if (turn != kNoIndex || !still_waits(hint)) return;
                     const RoomTicket& ticket = store_.tickets[hint.index()];
                     const std::uint64_t key = ticket.account.load();
                     for (const TenantCharge& charge : charges_)
                       passable = passable && mix_key(q, charge.tenant) != key;
                     if (std::find(held_up.begin(), held_up.end(), key) != held_up.end()) return;
                     const std::uint32_t at = key == 0 ? kNoIndex : find_account(store_, key);
                     const std::uint64_t used = at == kNoIndex ? 0 : account_charge(store_, at);
                     if (key == 0 || ticket.entering.load() != 0 ||
                         tenant_bounds(store_, queue, key).fit(used + ticket.cost.load()))
                       turn = hint.index();
                     else
                       held_up.push_back(key);
                   });
  return turn;
}

/// Whether none came before this lane that could go first.
bool WaitingLine::may_pass(QueueRecord& queue) {
  bool passable = true;
  const std::uint32_t turn = whose_turn(queue, first_waiting(queue), passable);
  const bool in_line =
      patient_ && ticket_ != kNoIndex &&
      TicketControl(store_.tickets[ticket_].control.load()).queue() == store_.number_of(queue);
  return in_line ? turn == ticket_ : turn == kNoIndex && passable;
}

/// What this lane waits for when it waits: room in the queue, and in that account.
void WaitingLine::wait_for(std::uint64_t key, std::uint64_t cost, std::uint64_t depth) {
  wait_key_ = key;
  wait_cost_ = cost;
  wait_depth_ = depth;
  if (ticket_ == kNoIndex) return;
  store_.tickets[ticket_].cost.store(cost, Point::kTicketTaken);
  store_.tickets[ticket_].account.store(key, Point::kTicketTaken);
}

Outcome WaitingLine::await_room(std::uint32_t q, std::uint64_t until_ms, RoomPlace& place) {
  QueueRecord& queue = store_.queue(q);
  const std::uint32_t ring = rings_.ensure_unindexed(queue.room_ring);
  if (ring == kNoIndex) return Outcome::kNoRings;
  const std::uint32_t all = store_.tickets.size();
  for (std::uint32_t i = 0; i < all; ++i) {
    const std::uint32_t at = (lane_ * 8 + turn_ + i) % all;
    RoomTicket& free = store_.tickets[at];
    const TicketControl found(free.control.load());
    if (found.taken()) continue;
    const TicketControl taken = found.take(q, places_of_);
    if (!free.control.cas_once(found.word, taken.word, Point::kTicketTaken)) continue;
    turn_ = (turn_ + i + 1) % all;
    free.until.store(until_ms, Point::kTicketTaken);
    free.called.store(0, Point::kTicketCalled);
    free.rest.store(0, Point::kTicketCalled);
    free.entering.store(0, Point::kTicketCalled);
    free.cost.store(wait_cost_, Point::kTicketTaken);
    free.account.store(wait_key_, Point::kTicketTaken);
    const shm::Hint hint(at, taken.tag());
    const auto push = [&] { return rings_.push(ring, hint, nullptr, 0); };
    if (!push() && !relieved(push)) {
      free.control.cas_once(taken.word, taken.void_().word, Point::kTicketVoided);
      return Outcome::kNoChunks;
    }
    for (std::uint64_t word = queue.attention.load(); !queue.attention.cas(
             word, (word | Attention::kAwaited) + Attention::kVersion, Point::kAttentionSet);) {}
    place = {at, taken.tag()};
    return Outcome::kOk;
  }
  return Outcome::kNoTickets;
}

void WaitingLine::rest_in_line(std::uint32_t ticket, std::uint64_t until_ms) {
  store_.tickets[ticket].rest.store(RoomRest(until_ms, wait_depth_).word, Point::kTicketCalled);
}

std::uint32_t WaitingLine::first_in_line(std::uint32_t q) {
  bool passable = true;
  QueueRecord& queue = store_.queue(q);
  return whose_turn(queue, first_waiting(queue), passable);
}

/// Another process may have ended the place when its time was over, and the ticket may be another's
/// by now.
void WaitingLine::leave_room(std::uint32_t q, RoomPlace place) {
  RoomTicket& mine = store_.tickets[place.ticket];
  const TicketControl found(mine.control.load());
  if (found.is(place.tag))
    mine.control.cas_once(found.word, found.void_().word, Point::kTicketVoided);
  call_next(store_.queue(q));
}

/// Wakes whose turn it is, unless it has been called and has not looked yet, or anyway: the lane
/// that called it may have died before it woke it. When none waits any more, says so.
[[gnu::noinline]] void WaitingLine::call_next(QueueRecord& queue, Call call) {
  const std::uint64_t word = queue.attention.load();
  if ((word & Attention::kAwaited) == 0) return;
  const std::uint32_t first = first_waiting(queue);
  if (first == kNoIndex) {
    queue.attention.cas_once(word, word & ~Attention::kAwaited, Point::kAttentionSet);
    return;
  }
  bool passable = true;
  const std::uint32_t turn = whose_turn(queue, first, passable);
  if (turn == kNoIndex)
    return;  // all wait for their tenants' room: the lane that makes room calls this
  RoomTicket& ticket = store_.tickets[turn];
  if (call == Call::kUnlessItRests && may_rest(ticket)) return;
  if (ticket.called.exchange(1, Point::kTicketCalled) != 0 && call != Call::kAnyway) return;
  bell_.call(TicketControl(ticket.control.load()).owner());
}

void WaitingLine::call_all(std::uint32_t q) {
  for (std::uint32_t i = 0; i < store_.tickets.size(); ++i) {
    const TicketControl found(store_.tickets[i].control.load());
    if (found.taken() && found.queue() == q) bell_.call(found.owner());
  }
}

/// Those of this lane, whose owner is dead.
void WaitingLine::drop_tickets() {
  for (std::uint32_t i = 0; i < store_.tickets.size(); ++i) {
    RoomTicket& ticket = store_.tickets[i];
    const TicketControl found(ticket.control.load());
    if (found.taken() && found.owner() == owner_)
      ticket.control.cas_once(found.word, found.void_().word, Point::kTicketVoided);
  }
}

}  // namespace ojs_shm::engine
