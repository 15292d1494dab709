// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/bounds/refill.hpp"
#include "engine/bounds/room.hpp"
#include "engine/tables/patience.hpp"
#include "engine/tables/queue_flags.hpp"
#include "engine/tenants/tenant_rules.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Charges the queue for a job. The charge stands in this lane's tally when it returns kOk. In a
/// bounded queue the sum of `reserved` decides, by one cas: 1. what we know of the other sums says
/// that it fits: reserve; 2. it seems full: read the sums again; 3. still full, and no job was let
/// in meanwhile: turn it away. A sum that grew too old only makes us read again. Where producers
/// wait, 4. no job passes an earlier one. The cas fails if another was let in since
/// `reserved` was read: so at the instant of that look there was room, and the turn was ours.
Outcome Room::admit(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                    std::uint64_t cost) {
  met_.fullness.bound = 0;
  if ((flags & kBounded) == 0) {
    mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
    return Outcome::kOk;
  }
  if (Refill(queue.refill.load()).pending()) settle_reserved(q);
  DepthCache& cache = depth_cache_[q];
  bool fresh = false;
  std::uint64_t used = 0;
  for (;;) {
    const std::uint64_t reserved = queue.reserved.load();
    if (cache.flags != flags || fresh) {
      cache.flags = flags;
      cache.in_minus_out = used_beside_reserved(queue, q);
    }
    used = reserved + cache.in_minus_out + cost;
    const Backpressure policy(queue.backpressure.load());
    const Bounds bounds{queue.max_depth.load(), queue.max_bytes.load()};
    if (!bounds.fit(used)) {
      if (!fresh) {
        fresh = true;  // 2
        continue;
      }
      // the sums may lack what has left since then, and seem endless
      if (queue.reserved.load() != reserved) continue;
      return turn_away(queue, q, {bounds, used - cost, cost}, policy);  // 3
    }
    if (policy.strategy() == Strategy::kBlock && !may_pass(queue))  // 4
      return turn_away(queue, q, {bounds, used - cost, cost}, policy);
    if (queue.reserved.cas_once(reserved, reserved + cost, Point::kCreditReserved)) break;  // 1
    flags = queue.flags.load();
  }
  mine.in_reserved.set_ordered(mine.in_reserved.get() + cost, Point::kTallyReserved);
  const Backpressure policy(queue.backpressure.load());
  if (Fullness::of(used, queue.max_depth.load(), queue.max_bytes.load()).above(policy)) [[unlikely]]
    notice_pressure(queue, q, used, fresh, policy);
  return Outcome::kOk;
}

/// By what is known of the other sums, which seems more than it is as time goes on: then the
/// general way reads them again.
bool Room::admit_far(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                     std::uint64_t cost) {
  const DepthCache& known = depth_cache_[q];
  const std::uint64_t reserved = queue.reserved.load();
  const std::uint64_t used = reserved + known.in_minus_out + cost;
  const Backpressure policy(queue.backpressure.load());
  const Bounds bounds{queue.max_depth.load(), queue.max_bytes.load()};
  if (known.flags != flags || policy.strategy() == Strategy::kBlock ||
      Refill(queue.refill.load()).pending() || !bounds.fit(used) ||
      bounds.fullness(used).above(policy))
    return false;
  intend<Op::kAdmit>(q, kNoIndex, mine);
  if (!queue.reserved.cas_once(reserved, reserved + cost, Point::kCreditReserved)) {
    intend_nothing();
    return false;
  }
  mine.in_reserved.set_ordered(mine.in_reserved.get() + cost, Point::kTallyReserved);
  intend_further(Op::kEnqueue, q, kNoIndex);
  return true;
}

/// Charges the tenants of new jobs, where they are bounded, and then the queue: so that a
/// full tenant takes no room from the other tenants, not even for a moment. All or nothing.
Outcome Room::admit_all(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags,
                        std::uint64_t cost, std::span<TenantCharge> charges) {
  if ((flags & kTenants) == 0) return admit(queue, mine, q, flags, cost);
  met_.fullness.bound = 0;
  charges_ = charges;
  RoomTicket* ticket = patient_ && ticket_ != kNoIndex ? &store_.tickets[ticket_] : nullptr;
  if (ticket != nullptr) ticket->entering.store(1, Point::kTicketCalled);
  Outcome outcome = Outcome::kOk;
  for (TenantCharge& charge : charges) {
    const Bounds bounds = tenant_bounds(store_, queue, mix_key(q, charge.tenant));
    std::uint64_t used = 0;
    outcome = charge_account(q, charge, bounds, 0, used);
    if (outcome == Outcome::kQueueFull)
      outcome = turn_away(queue, q, {bounds, used - charge.cost, charge.cost, &charge, cost},
                          Backpressure(queue.backpressure.load()));
    if (outcome != Outcome::kOk) break;
  }
  if (outcome == Outcome::kOk) outcome = admit(queue, mine, q, flags, cost);
  charges_ = {};
  if (outcome == Outcome::kOk) return outcome;
  take_back_charges(queue, charges);
  if (ticket == nullptr) return outcome;
  ticket->entering.store(0, Point::kTicketCalled);
  call_next(queue);
  return outcome;
}

/// What becomes of a job that finds no room: it waits, other jobs go for it, or it is refused, with
/// the reasons in met_.
[[gnu::noinline]] Outcome Room::turn_away(QueueRecord& queue, std::uint32_t q, const Full& full,
                                          Backpressure policy) {
  const bool never = !full.bounds.fit(full.cost);
  const TenantCharge* tenant = full.tenant != nullptr ? full.tenant
                               : charges_.size() == 1 ? charges_.data()
                                                      : nullptr;
  if (!never && policy.strategy() == Strategy::kBlock && patient_) {
    wait_for(tenant == nullptr ? 0 : mix_key(q, tenant->tenant),
             tenant == nullptr ? 0 : tenant->cost, charged_jobs(full.used));
    return Outcome::kMustWait;
  }
  if (!never && policy.strategy() == Strategy::kDropOldest) return Outcome::kMustDrop;
  return refuse(queue, q, full, policy);
}

Outcome Room::refuse(QueueRecord& queue, std::uint32_t q, const Full& full, Backpressure policy) {
  met_.fullness = full.bounds.refusal(full.used, full.cost);
  met_.strategy = policy.strategy();
  met_.of_tenant = full.tenant != nullptr;
  met_.refused = full.tenant != nullptr ? full.tenant->first : 0;
  met_.retry_after_ms = recommended_delay(queue, q, full, policy);
  queue.rejected.fetch_add(charged_jobs(std::max(full.cost, full.refused)), Point::kCounterMoved);
  return Outcome::kQueueFull;
}

/// Undoes admit(). `reserved` only grows, so that a recount can tell that it has not
/// moved; a charge on it leaves as if its job had been taken out. A slot that is being filled is
/// freed by the caller, or after its death.
[[gnu::noinline]] void Room::take_back_admission(QueueTally& mine, std::uint32_t q,
                                                 std::uint64_t cost,
                                                 std::span<TenantCharge> charges) {
  intend_further(Op::kEnqueue, q, kNoIndex);
  take_back_charges(store_.queue(q), charges);
  if (mine.in_reserved.get() != kept<Op::kEnqueue, &QueueTally::in_reserved>().get()) {
    LaneWord& out = kept<Op::kGiveBack, &QueueTally::out>();
    out.set(mine.out.get() + cost, Point::kIntentSet);
    intend_further(Op::kGiveBack, q, kNoIndex);
    mine.out.set_ordered(out.get(), Point::kTallyOut);
    call_next(store_.queue(q));
  }
  mine.in.set_ordered(kept<Op::kEnqueue, &QueueTally::in>().get(), Point::kTallyIn);
  mine.enqueued.set_ordered(kept<Op::kEnqueue, &QueueTally::enqueued>().get(),
                            Point::kCounterMoved);
}

/// `reserved` is what the lanes reserved and what the dead took with them between the two. 1. no
/// lane is in the middle of a charge; 2. sum up; 3. `reserved` has not moved meanwhile, so the
/// difference is theirs: write it off. Else another look tries again later.
[[gnu::noinline]] void Room::settle_reserved(std::uint32_t q) {
  QueueRecord& queue = store_.queue(q);
  const Refill refill(queue.refill.load());
  const std::uint64_t written_off = queue.written_off.load();
  const std::uint64_t reserved = queue.reserved.load();
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
  for (std::uint32_t l = 0; l < high; ++l) {                             // 1
    const std::uint64_t intent = segment_.lane(l).intent.get_ordered();  // PAIR intent
    const auto op = static_cast<Op>(OpBits::get(intent));
    if (l != lane_ && charges(op) && OpQueue::get(intent) == (q & OpQueue::kMax)) return;
  }
  std::uint64_t sum = 0;
  // 2
  for (std::uint32_t l = 0; l < high; ++l) sum += store_.tally(q, l).in_reserved.get_ordered();
  // 3
  if (queue.reserved.load() != reserved) return;
  if (!queue.written_off.cas_once(written_off, reserved - sum, Point::kCreditSettled)) return;
  queue.refill.cas_once(refill.word, refill.settled().word, Point::kCreditSettled);
  call_next(queue);
}

/// Undoes charges of this operation whose jobs do not come.
void Room::take_back_charges(QueueRecord& queue, std::span<TenantCharge> charges) {
  for (TenantCharge& charge : charges) {
    if (charge.account == kNoIndex) continue;
    take_back_charge(charge);
    call_next(queue);
  }
}

// ---- being let out ------------------------------------------------------------------------------

/// A job has been taken out, and a lane waits for that or has warned.
[[gnu::noinline]] void Room::room_made(QueueRecord& queue, std::uint32_t q) {
  const std::uint64_t word = queue.attention.load();
  if ((word & Attention::kAwaited) != 0) call_next(queue, Call::kUnlessItRests);
  if ((word & Attention::kWarned) == 0) return;
  DepthCache& cache = depth_cache_[q];
  if (cache.removals_left > 0)
    --cache.removals_left;
  else
    look_for_calm(queue, q);
}

/// The supervisor's look, for what the other lanes leave: none may look after the last refusal or
/// the last removal, and what comes back (a retry, a requeue, a successor) fills without a look.
std::uint64_t Room::watch_pressure(std::uint64_t now) {
  bool more = false;
  for (std::uint32_t q = 0; q < store_.queue_count(); ++q) {
    QueueRecord& queue = store_.queue(q);
    const std::uint64_t word = queue.attention.load();
    const Refusals refusals(queue.refusals.load());
    const bool fills = tellings_.on() && (queue.flags.load() & kBounded) != 0;
    if (word == 0 && refusals.untold() == 0 && !fills) continue;
    if ((word & Attention::kAwaited) != 0) call_next(queue, Call::kAnyway);
    if ((word & Attention::kWarned) != 0 || fills) look_for_calm(queue, q);
    if (refusals.untold() != 0) count_refusals(q, 0, {});
    more = more || fills ||
           (queue.attention.load() & (Attention::kWarned | Attention::kAwaited)) != 0 ||
           Refusals(queue.refusals.load()).untold() != 0;
  }
  return more ? now + kWatchMs : 0;
}

// ---- settings -----------------------------------------------------------------------------------

/// Wakes the producers that wait, so that they look again.
void Room::settings_changed(QueueRecord& queue, std::uint32_t q) {
  if (queue.attention.load() != 0) room_made(queue, q);
  call_all(q);
}

void Room::set_bounds(std::uint32_t q, std::uint64_t max_depth, std::uint64_t max_bytes) {
  QueueRecord& queue = store_.queue(q);
  queue.max_depth.store(max_depth, Point::kSetChanged);
  queue.max_bytes.store(max_bytes, Point::kSetChanged);
  set_flags(queue, kBounded, max_depth != 0 || max_bytes != 0 ? kBounded : 0);
  depth_cache_[q].removals_left = 0;
  settings_changed(queue, q);
}

void Room::set_backpressure(std::uint32_t q, Backpressure policy) {
  QueueRecord& queue = store_.queue(q);
  queue.backpressure.store(policy.word, Point::kSetChanged);
  depth_cache_[q].removals_left = 0;
  settings_changed(queue, q);
}

void Room::set_tenant_bounds(std::uint32_t q, Bounds bounds) {
  QueueRecord& queue = store_.queue(q);
  queue.tenant_max_depth.store(bounds.max_depth, Point::kSetChanged);
  queue.tenant_max_bytes.store(bounds.max_bytes, Point::kSetChanged);
  bool bounded = bounds.any();
  for (std::uint32_t i = 0; i < kTenantRules; ++i) {
    const TenantRule& rule = store_.tenant_rules[i];
    bounded = bounded || (rule.key.load() != 0 && rule.queue_and_length.load() >> 32 == q &&
                          (rule.max_depth.load() > 1 || rule.max_bytes.load() > 1));
  }
  const bool was = (set_flags(queue, kTenants, bounded ? kTenants : 0) & kTenants) != 0;
  if (bounded && !was) gather_accounts(q, kPatience);
  settings_changed(queue, q);
}

}  // namespace ojs_shm::engine
