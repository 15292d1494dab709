// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "engine/limits/limit_gate.hpp"
#include "engine/limits/rates.hpp"

// What a limit does to jobs. A lane that claims a job asks each of its keys, and begins it only
// with all of them. A job that a key holds back leaves its ring once, for the key's lot: it stays
// available, in no other's way, and keeps its level and place. A lane that lets a permit go moves
// the best job of each lot of that key back to the front of its level, where it is claimed like any
// other, and asks again: so what is free is never waited for in vain, and a job that was let go in
// vain goes back to its lot.
//
// No job is forgotten. To park is 1. to put the job into the lot, 2. to look for room once more; to
// give a permit back is to do so first, and then to look into the lot: one side sees the other. A
// death between the two is followed by its repair, which looks into all lots; and the supervisor
// does so every second while something stands in one.

namespace ojs_shm::engine {

using shm::Point;

namespace {
/// until a job is tried again whose time is not known
constexpr std::uint64_t kRetryLimitMs = 1000;
}  // namespace

/// Whether a queue's own key, or that of this lane's worker, lets anything begin.
[[gnu::noinline]] bool LimitGate::gate_open(const QueueRecord& queue) {
  const std::uint64_t now = store_.now_ms();
  for (const std::uint64_t key : {queue.limit.load(), std::uint64_t{worker_limit()} + 1}) {
    if (key == 0 || key > store_.limit_keys.size()) continue;
    std::uint64_t at = 0;
    if (may_begin(store_, store_.limit_keys[static_cast<std::uint32_t>(key - 1)], now, &at))
      continue;
    if (at != 0) bell_.ring_supervisor_for(at);
    return false;
  }
  return true;
}

/// Takes a beginning of every key, or of none.
[[gnu::noinline]] unsigned LimitGate::take_limits(const LimitList& keys, Permit holder,
                                                  std::uint64_t now) {
  const Permits permits(store_);
  const Rates rates(store_);
  unsigned refused = 0;
  while (refused < keys.count && permits.take(store_.limit_keys[keys.key[refused]].permits, holder))
    ++refused;
  for (unsigned i = 0; refused == keys.count && i < keys.count; ++i)
    if (rates.next(store_.limit_keys[keys.key[i]], now) != 0) refused = i;
  unsigned begun = 0;
  while (refused == keys.count && begun < keys.count) {
    if (rates.take(store_.limit_keys[keys.key[begun]], now))
      ++begun;
    else
      refused = begun;
  }
  if (refused == keys.count) return refused;
  for (unsigned i = 0; i < begun; ++i) rates.give_back(store_.limit_keys[keys.key[i]], now);
  for (unsigned i = 0; i < keys.count; ++i)
    permits.give(store_.limit_keys[keys.key[i]].permits, holder);
  return refused;
}

/// For a job that this lane has just claimed. Unless it passes, it is no longer in this lane's
/// hands.
[[gnu::noinline]] LimitGate::Passage LimitGate::pass_limits(std::uint32_t q, std::uint32_t slot,
                                                            JobRecord& job, Control claimed,
                                                            std::uint64_t now) {
  const std::uint32_t worker_limit = pool_worker_.limit_now();
  if (worker_limit != kNoIndex) job.limits.set(with_second(job.limits.get(), worker_limit));
  const LimitList keys = limits_of(store_, slot, job, worker_limit != kNoIndex);
  if (keys.empty()) return Passage::kPasses;
  const unsigned refused = take_limits(keys, Permit(slot, job.generation.get()), now);
  if (refused == keys.count) {
    for (unsigned i = 0; i < keys.count; ++i)  // there may be room for one more than was let go
      if (const std::uint32_t lot = find_lot(store_, store_.limit_keys[keys.key[i]], q);
          lot != kNoIndex)
        pending_lots_.push_back(lot);
    return Passage::kPasses;
  }
  job.limits.set(with_second(job.limits.get(), kNoIndex));
  if (keys.gate(refused)) {
    put_back(slot, job, claimed, kSlotAvailable);
    let_begin(keys, q);
    return Passage::kGateClosed;
  }
  hold_back(keys.key[refused], slot, job, claimed, now);
  // A job's end meanwhile saw none in the lot. And what was taken of the other keys is free
  // again.
  let_begin(keys, q);  // 2
  return Passage::kHeldBack;
}

/// After a dispatch, when no intent stands any more: one more of each lot, if there is room.
[[gnu::noinline]] void LimitGate::follow_dispatch() {
  const std::uint64_t now = store_.now_ms();
  for (const std::uint32_t lot : pending_lots_)
    if (occupied(store_.lots[lot]) &&
        may_begin(store_, store_.limit_keys[store_.lots[lot].key()], now))
      unpark(lot);
  pending_lots_.clear();
}

/// What the key says of jobs for which there is no room.
void LimitGate::hold_back(std::uint32_t key, std::uint32_t slot, JobRecord& job, Control claimed,
                          std::uint64_t now) {
  const std::uint32_t q = job.queue.get();
  LimitKey& limit = store_.limit_keys[key];
  limit.exceeded.fetch_add(1, Point::kCounterMoved);
  std::uint64_t at = 0;
  may_begin(store_, limit, now, &at);
  const OnLimit what = on_limit_of(limit.config.load());
  if (what == OnLimit::kDrop) return drop_limited(key, slot, job, claimed, now);
  if (what == OnLimit::kWait)
    if (const std::uint32_t lot = ensure_lot(key, q);
        lot != kNoIndex && rings_.ensure(store_.lots[lot].rings, claimed.ring()) != kNoIndex) {
      job.limits.set(with_second(job.limits.get(), lot));
      land(Event::kLimitHold, kSlotAvailable, slot, job, claimed, now, key);  // 1
      if (at != 0) bell_.ring_supervisor_for(at);
      return;
    }
  job.due_at.set(at != 0 ? at : now + kRetryLimitMs);
  land(Event::kLimitDelay, kSlotAvailable, slot, job, claimed, now);
}

void LimitGate::drop_limited(std::uint32_t key, std::uint32_t slot, JobRecord& job, Control claimed,
                             std::uint64_t now) {
  const Control held = hold_claimed(slot, claimed);
  job.finished_at.set(now);
  store_.limit_keys[key].dropped.fetch_add(1, Point::kCounterMoved);
  if (tellings_.on()) [[unlikely]]
    tellings_.tell(EventKind::kRateLimitDropped, job, held, describe_rule(store_, key, now));
  land(Event::kLimitDrop, kSlotAvailable, slot, job, held, now);
}

/// Lots stay as long as their key, and each lane takes the first free one: so a lot that is being
/// made by two, or was half made by a dead lane, is one lot only. Where a lot became free in
/// between there are two; then the first name holds.
std::uint32_t LimitGate::ensure_lot(std::uint32_t at, std::uint32_t q) {
  LimitKey& key = store_.limit_keys[at];
  if (const std::uint32_t known = find_lot(store_, key, q); known != kNoIndex) return known;
  if (std::ranges::none_of(key.lot, [](const Half& name) { return name.load() == 0; }))
    return kNoIndex;
  const std::uint64_t mine = ParkingLot::owner_of(at, q);
  for (std::uint32_t lot = 0; lot < store_.lots.size(); ++lot) {
    std::uint64_t found = store_.lots[lot].owner.load();
    const bool free = found == 0 || found == kLotGone;
    if (free && store_.lots[lot].owner.cas(found, mine, Point::kLotTaken)) found = mine;
    if (found != mine) continue;
    for (Half& name : key.lot) {
      std::uint32_t named = 0;
      if (name.cas(named, lot + 1, Point::kLotNamed) || named == lot + 1)
        return find_lot(store_, key, q);  // PAIR lot-name
    }
    return kNoIndex;
  }
  return kNoIndex;
}

namespace {
/// A look that moves nothing.
bool seems_empty(const shm::Segment& segment, std::uint32_t ring) {
  if (ring == kNoIndex) return true;
  const shm::RingEnds& ends = segment.ring(ring);
  const shm::Place head(ends.head.load());
  return head.cell() < shm::kCellsPerChunk
             ? shm::is_empty(segment.chunk(head.chunk()).cell[head.cell()].load())
             : ends.tail.load() == head.word;
}
}  // namespace

/// Where a new job stands: in the lot of a key, when other jobs of it wait there already and none
/// of its level is before it in its line, for from a lot jobs go to the front of their level.
/// kNoIndex: in that line.
std::uint32_t LimitGate::lot_at_birth(const NewJob& spec, const shm::RingSet& line) const {
  for (const unsigned number : {front_ring(spec.rank), normal_ring(spec.rank)})
    if (!seems_empty(segment_, shm::Rings::find(line, number))) return kNoIndex;
  const bool tenants = (store_.header().limiting.load() & kLimitsTenants) != 0 && spec.tenant != 0;
  for (const std::uint32_t key :
       {spec.limit - 1U, tenants ? find_tenant_limit(store_, spec.tenant) : kNoIndex}) {
    if (key >= store_.limit_keys.size()) continue;
    const std::uint32_t lot = find_lot(store_, store_.limit_keys[key], spec.queue);
    if (lot != kNoIndex && on_limit_of(store_.limit_keys[key].config.load()) == OnLimit::kWait &&
        occupied(store_.lots[lot]))
      return lot;
  }
  return kNoIndex;
}

/// After a job was born into a lot: as after parking.
[[gnu::noinline]] void LimitGate::follow_birth(std::uint32_t lot) {
  std::uint64_t at = 0;
  LimitKey& key = store_.limit_keys[store_.lots[lot].key()];
  key.exceeded.fetch_add(1, Point::kCounterMoved);
  if (may_begin(store_, key, store_.now_ms(), &at))
    unpark(lot);
  else if (at != 0)
    bell_.ring_supervisor_for(at);
}

/// The ring of a lot whose head has risen the most, where the lot's queue ages; kNoIndex: there is
/// none. Of equal ones the job that has waited longer.
unsigned LimitGate::risen_in(ParkingLot& lot, const Aging& aging, std::uint32_t& left) {
  const QueueRecord& queue = store_.queue(lot.queue());
  const std::uint64_t now = store_.now_ms();
  const bool sharded = (queue.flags.load() & kSharded) != 0;
  unsigned best = kNoIndex;
  std::pair<std::int64_t, std::uint64_t> best_standing;
  for (unsigned i = 0; i < shm::kIndexWords; ++i)
    for (std::uint64_t bits = lot.rings.index[i].load_seq_cst() & 0xFFFF'FFFF; bits != 0;
         bits &= bits - 1) {
      const unsigned number = i * 32 + static_cast<unsigned>(std::countr_zero(bits));
      const std::uint32_t ring = shm::Rings::find(lot.rings, number);
      if (ring == kNoIndex) continue;
      shm::Peeked head = rings_.peek(ring);
      const auto is_dead = [&] {
        const shm::Hint hint = head.hint();
        return hint.index() < store_.slots() && !hint.hint_first() &&
               store_.job(hint.index()).control.load() !=
                   Control(kSlotAvailable, number, 0, hint.tag()).word;
      };
      for (; left > 0 && !head.empty() && is_dead(); --left, head = rings_.peek(ring))
        shm::Rings::retire(head);
      if (head.empty() || head.hint().index() >= store_.slots()) continue;
      const JobRecord& job = store_.job(head.hint().index());
      const std::uint64_t since = job.available_at.get();
      const std::uint8_t rate = Store::age_rate(queue, sharded ? 0 : job.flags().part(), aging);
      const std::pair here(
          aging.effective(rank_of_ring(number), now > since ? now - since : 0, rate), since);
      if (best == kNoIndex || here < best_standing) best = number, best_standing = here;
    }
  return best;
}

/// Moves the best job of a lot to the front of its level. False when the lot is empty.
bool LimitGate::unpark(std::uint32_t lot_number) {
  ParkingLot& lot = store_.lots[lot_number];
  if (lot.queue() >= store_.max_queues()) return false;
  std::uint32_t left = rings_.longest_search();
  if (const Aging aging = store_.aging(store_.queue(lot.queue())); aging.enabled()) [[unlikely]]
    if (const unsigned number = risen_in(lot, aging, left); number != kNoIndex) {
      const std::uint32_t ring = shm::Rings::find(lot.rings, number);
      for (shm::Peeked head = rings_.peek(ring); !head.empty() && left > 0;
           head = rings_.peek(ring), --left)
        if (unpark_head(lot, ring, number, head)) return true;
    }
  for (unsigned i = 0; i < shm::kIndexWords; ++i)
    for (std::uint64_t bits = lot.rings.index[i].load_seq_cst() & 0xFFFF'FFFF; bits != 0;
         bits &= bits - 1) {
      const unsigned number = i * 32 + static_cast<unsigned>(std::countr_zero(bits));
      const std::uint32_t ring = shm::Rings::find(lot.rings, number);
      for (; ring != kNoIndex && left > 0; --left) {
        const shm::Peeked head = rings_.peek(ring);
        if (head.empty()) {
          shm::Rings::close(lot.rings, number, *head.cell, head.value);
          break;
        }
        if (unpark_head(lot, ring, number, head)) return true;
      }
    }
  return false;
}

/// True when a job has left the lot. False: what stood at the head is dead, moved, or taken by
/// another.
bool LimitGate::unpark_head(const ParkingLot& lot, std::uint32_t ring, unsigned number,
                            const shm::Peeked& head) {
  const shm::Hint first = head.hint();
  if (first.index() >= store_.slots()) {
    shm::Rings::retire(head);
    return false;
  }
  const Control found(store_.job(first.index()).control.load());
  const Control expected(kSlotAvailable, number, 0, first.tag());
  if (first.hint_first() && found.state() == kSlotAvailable &&
      found.moved_to(number).tag() == first.tag()) {
    store_.job(first.index()).control.cas_once(found.word, expected.word, Point::kMoveHelped);
    return false;
  }
  if (found != expected) {
    shm::Rings::retire(head);
    return false;
  }
  const shm::Peeked best = number % 2 == 0 ? oldest_in_front(ring, number, head) : head;
  const std::uint32_t slot = best.hint().index();
  JobRecord& job = store_.job(slot);
  const Control before(kSlotAvailable, number, 0, best.hint().tag());
  Control held;
  if (!hold(Event::kLimitRelease, slot, before, held)) return false;
  if (best.value == head.value) shm::Rings::retire(head);
  LimitKey& key = store_.limit_keys[lot.key()];
  key.released.fetch_add(1, Point::kCounterMoved);
  if (tellings_.on()) [[unlikely]]
    tellings_.tell(EventKind::kRateLimitReleased, job, held,
                   describe_rule(store_, lot.key(), store_.now_ms()));
  land(Event::kLimitRelease, kSlotAvailable, slot, job, held, 0);
  return true;
}

/// Gives the permits of a job in this lane's hands back. What follows from it is let_begin(), once
/// the job has left them.
[[gnu::noinline]] LimitList LimitGate::give_limits(std::uint32_t slot, JobRecord& job, bool held) {
  LimitList keys = limits_of(store_, slot, job, held);
  const Permits permits(store_);
  if (held)  // a job that was at work before its pool had a limit names no key
    if (const std::uint32_t key = pool_worker_.limit_now(); key != kNoIndex) keys.add(key, true);
  if (held)
    for (unsigned i = 0; i < keys.count; ++i)
      permits.give(store_.limit_keys[keys.key[i]].permits, Permit(slot, job.generation.get()));
  job.limits.set(with_second(job.limits.get(), kNoIndex));
  return keys;
}

/// One job of each lot of these keys, if there is room; those that wait at a gate.
[[gnu::noinline]] void LimitGate::let_begin(const LimitList& keys, std::uint32_t q) {
  if (mending_) return;  // the end of the repair looks into all lots
  for (unsigned i = 0; i < keys.count; ++i) {
    if (keys.gate(i)) bell_.wake_one(store_.queue(q));
    let_more_begin(keys.key[i], 1);
  }
}

/// Up to `most` jobs of each lot of a key.
void LimitGate::let_more_begin(std::uint32_t at, unsigned most) {
  const LimitKey& key = store_.limit_keys[at];
  const std::uint64_t now = store_.now_ms();
  for (const Half& name : key.lot) {
    const std::uint32_t lot = name.load() - 1;
    if (lot >= store_.lots.size()) break;
    for (unsigned i = 0; i < most && occupied(store_.lots[lot]) && may_begin(store_, key, now); ++i)
      if (!unpark(lot)) break;
  }
}

std::uint64_t LimitGate::tend_limits(std::uint64_t now) {
  std::uint64_t next = ~0ULL;
  if (!limiting()) return next;
  const auto by = [&next](std::uint64_t at) { next = at == 0 ? next : std::min(next, at); };
  for (std::uint32_t lot = 0; lot < store_.lots.size() && store_.lots[lot].owner.load() != 0;
       ++lot) {
    if (!occupied(store_.lots[lot]) || store_.lots[lot].key() >= store_.limit_keys.size()) continue;
    const LimitKey& key = store_.limit_keys[store_.lots[lot].key()];
    std::uint64_t at = 0;
    by(now + 1000);
    if (may_begin(store_, key, now, &at)) unpark(lot);
    by(at);
  }
  for (std::uint32_t q = 0; q < store_.queue_count(); ++q) {
    const std::uint64_t key = store_.queue(q).limit.load();
    if (key == 0 || key > store_.limit_keys.size()) continue;
    std::uint64_t at = 0;
    if (may_begin(store_, store_.limit_keys[static_cast<std::uint32_t>(key - 1)], now, &at))
      bell_.wake_one(store_.queue(q));
    else if (std::ranges::any_of(store_.queue(q).waiters,
                                 [](const Word& word) { return word.load() != 0; }))
      by(at);
  }
  return next;
}

/// After a death: permits of jobs that are not held, and whatever may begin for want of them.
void LimitGate::mend_limits() {
  if (!limiting()) return;
  for (std::uint32_t at = 0; at < store_.limit_keys.size(); ++at)
    if (store_.limit_keys[at].name_hash.load() != 0)
      Permits(store_).sweep(store_.limit_keys[at].permits);
  mending_ = false;
  tend_limits(store_.now_ms());
}

}  // namespace ojs_shm::engine
