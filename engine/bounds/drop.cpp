// SPDX-License-Identifier: Apache-2.0
#include "engine/bounds/drop.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "engine/fetch/look.hpp"
#include "engine/tables/patience.hpp"
#include "engine/tables/probes.hpp"
#include "engine/tenants/tenant_rules.hpp"

// Dropping waiting jobs for new ones. A victim is first taken into this lane's hands, where it
// still counts against the bound, and a death gives it back. Only when there are as many as are
// needed does the new job reserve its credit; and when the new jobs are committed, the same store
// commits their victims: from then on a repair ends what is left of them. In between the queue is
// charged with both. No lane takes that for a full queue, for a lane that finds it full comes here,
// and one lane at a time drops. Jobs that the new ones replace make room as well, and are no
// victims.

namespace ojs_shm::engine {

using shm::Point;

namespace {
bool is_among(std::span<const Leaver> leavers, std::uint32_t slot) {
  return std::ranges::find(leavers, slot, &Leaver::slot) != leavers.end();
}
}  // namespace

/// Goes on from a leaver to the first job behind it in its ring that is none. False: there is none.
bool Dropping::pass_leavers(shm::RingSet& set, std::span<const Leaver> leavers, Live& live) {
  bool found = false;
  const auto look_at = [&](std::uint32_t, unsigned, std::uint64_t value) {
    const shm::Hint hint(value);
    if (found || hint.hint_first() || hint.index() >= store_.slots()) return;
    JobRecord& job = store_.job(hint.index());
    const Control expected(kSlotAvailable, live.number, 0, hint.tag());
    if (job.control.load() != expected.word || is_among(leavers, hint.index())) return;
    live.head.value = value;
    live.job = &job;
    live.available_at = job.available_at.get();
    found = true;
  };
  shm::Rings::walk(segment_, shm::Rings::find(set, live.number), look_at);
  return found;
}

/// Takes the waiting job that became available first, of the lowest priority or of all. Only the
/// heads of rings are looked at: those behind them came later; of tenants that share a level, the
/// job of the one whose turn it is. False: there is none.
bool Dropping::claim_victim(QueueRecord& queue, std::uint32_t q, bool lowest_first,
                            std::span<const Leaver> leavers, Victim& victim) {
  for (std::uint32_t left = rings_.longest_search(); left > 0;) {
    Look& seen = begin_look();
    const std::uint64_t flags = queue.flags.load();
    seen.queue = &queue;
    seen.begin(flags);
    Live best{};
    bool found = false;
    const auto better = [&](const Live& live) {
      if (!found) return true;
      if (lowest_first && live.number / 2 != best.number / 2)
        return live.number / 2 > best.number / 2;
      if (live.available_at != best.available_at) return live.available_at < best.available_at;
      return live.number / 2 > best.number / 2;
    };
    const auto look_at = [&](shm::RingSet& set) {
      for (unsigned i = 0; i < shm::kIndexWords; ++i)
        for (std::uint64_t bits = set.index[i].load() & 0xFFFF'FFFF; bits != 0;
             bits &= bits - 1) {  // PAIR ring-index
          Live live;
          const unsigned number = i * 32 + static_cast<unsigned>(std::countr_zero(bits));
          if (!first_live<false>(set, number, seen, left, live)) continue;
          if (is_among(leavers, live.head.hint().index()) && !pass_leavers(set, leavers, live))
            continue;
          if (!better(live)) continue;
          best = live;
          found = true;
        }
    };
    for (std::uint32_t parts = queue.parts(flags); parts != 0; parts &= parts - 1)
      look_at(store_.rings_of(q, static_cast<unsigned>(std::countr_zero(parts))));
    for (std::uint32_t lot = 0; lot < store_.lots.size() && store_.lots[lot].owner.load() != 0;
         ++lot)
      if (store_.lots[lot].queue() == q) look_at(store_.lots[lot].rings);  // held back by a limit
    if (!found) return false;
    if (left > 0) --left;
    JobRecord& job = *best.job;
    const Control expected = best.expected();
    victim = {best.head.hint().index(), expected.to(kSlotMoving, best.number, owner_), 0};
    const bool claimed = job.control.cas_once(expected.word, victim.held.word, Point::kSlotMoving);
    if (best.head.value == best.first) shm::Rings::retire(best.head);
    if (!claimed) continue;
    victim.cost = charge(1, job.body_length());
    return true;
  }
  return false;
}

/// The same of one tenant's jobs that count for it, by a walk over all slots.
bool Dropping::claim_victim(std::uint64_t tenant, std::uint32_t q, bool lowest_first,
                            std::span<const Leaver> leavers, Victim& victim) {
  for (unsigned look = 0; look < kPatience; ++look) {
    std::uint32_t best = kNoIndex;
    Control best_control;
    std::tuple<int, std::uint64_t, int, JobId> best_key;
    for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
      const JobRecord& job = store_.job(slot);
      const Control control(job.control.load());
      if (control.state() != kSlotAvailable || job.queue.get() != q || job.tenant.get() != tenant ||
          !AccountMark(job.account.load()).counts() || is_among(leavers, slot))
        continue;
      const int rank = rank_of_ring(control.ring());
      const std::tuple key(lowest_first ? -rank : 0, job.available_at.get(), -rank, job.id());
      if (best != kNoIndex && !(key < best_key)) continue;
      best = slot, best_control = control, best_key = key;
    }
    if (best == kNoIndex) return false;
    JobRecord& job = store_.job(best);
    victim = {best, best_control.to(kSlotMoving, best_control.ring(), owner_), 0};
    if (!job.control.cas_once(best_control.word, victim.held.word, Point::kSlotMoving)) continue;
    victim.cost = charge(1, job.body_length());
    return true;
  }
  return false;
}

/// Charges a tenant for its new jobs, as admit_by_dropping() does the queue, with its own jobs as
/// victims.
Outcome Dropping::admit_by_dropping(QueueRecord& queue, std::uint32_t q, TenantCharge& charge,
                                    std::span<const Leaver> leavers, std::vector<Victim>& victims) {
  std::uint64_t held = 0, used = 0, refused_at = 0;
  for (const Leaver& leaver : leavers)
    if (leaver.counts && leaver.tenant == charge.tenant) held += leaver.cost;
  for (;;) {
    const Backpressure policy(queue.backpressure.load());
    const Bounds bounds = tenant_bounds(store_, queue, mix_key(q, charge.tenant));
    const Outcome outcome = charge_account(q, charge, bounds, held, used);
    if (outcome != Outcome::kQueueFull) return outcome;
    Victim victim;
    const bool may_drop = bounds.fit(charge.cost) && policy.strategy() == Strategy::kDropOldest;
    if (may_drop && claim_victim(charge.tenant, q, policy.lowest_first(), leavers, victim)) {
      held += victim.cost;
      victims.push_back(victim);
      continue;
    }
    if (used == refused_at || !may_drop)
      return refuse(queue, q, {bounds, used - charge.cost, charge.cost, &charge}, policy);
    refused_at = used;
  }
}

/// Charges the queue for new jobs and collects the victims that make room for them, as many as are
/// needed at each look. When it returns kOk the caller has the seat, and commits them or gives
/// them back.
Outcome Dropping::admit_by_dropping(QueueRecord& queue, QueueTally& mine, std::uint32_t q,
                                    std::uint64_t cost, std::span<TenantCharge> charges,
                                    std::span<const Leaver> leavers, std::vector<Victim>& victims) {
  if (!dropper(queue).take()) return Outcome::kBusy;
  const std::uint64_t flags = queue.flags.load();
  for (TenantCharge& charge : charges)
    if (const Outcome outcome = admit_by_dropping(queue, q, charge, leavers, victims);
        outcome != Outcome::kOk) {
      take_back_charges(queue, charges);
      return outcome;
    }
  if ((flags & kBounded) == 0) return admit(queue, mine, q, flags, cost);
  std::uint64_t held = 0, refused_at = 0;
  for (const Victim& victim : victims) held += victim.cost;
  for (const Leaver& leaver : leavers) held += leaver.cost;
  for (;;) {
    const std::uint64_t reserved = queue.reserved.load();
    const std::uint64_t used = reserved + used_beside_reserved(queue, q) + cost;
    const Bounds bounds{queue.max_depth.load(), queue.max_bytes.load()};
    const Backpressure policy(queue.backpressure.load());
    if (bounds.fit(used, held)) {
      if (!queue.reserved.cas_once(reserved, reserved + cost, Point::kCreditReserved)) continue;
      mine.in_reserved.set_ordered(mine.in_reserved.get() + cost, Point::kTallyReserved);
      if (bounds.fullness(used - held).above(policy))
        notice_pressure(queue, q, used - held, true, policy);
      return Outcome::kOk;
    }
    // as in admit(): what left meanwhile may never have been counted
    if (queue.reserved.load() != reserved) continue;
    Victim victim;
    if (policy.strategy() == Strategy::kDropOldest &&
        claim_victim(queue, q, policy.lowest_first(), leavers, victim)) {
      held += victim.cost;
      victims.push_back(victim);
      continue;
    }
    // Another lane may have taken the last one meanwhile: then there is room by now.
    if (used == refused_at || policy.strategy() != Strategy::kDropOldest) {
      take_back_charges(queue, charges);
      return refuse(queue, q, {bounds, used - cost, cost}, policy);
    }
    refused_at = used;
  }
}

/// The store that makes new jobs and their victims' end one. What the tallies shall be is written
/// down before it.
void Dropping::commit_drop(QueueTally& mine, std::span<const Victim> victims) {
  std::uint64_t out = mine.out.get();
  for (const Victim& victim : victims) out += victim.cost;
  self_.counters[kDropOut].set(out, Point::kIntentSet);
  self_.counters[kDropCount].set(mine.dropped.get() + victims.size(), Point::kIntentSet);
  commit_batch(kWholeAndDrops);
  mine.out.set_ordered(out, Point::kTallyOut);
  mine.dropped.set_ordered(self_.counters[kDropCount].get(), Point::kCounterMoved);
}

/// Ends the victims of a committed drop.
void Dropping::drop_victims(std::span<const Victim> victims) {
  const std::uint64_t now = store_.now_ms();
  for (const Victim& victim : victims) {
    JobRecord& job = store_.job(victim.slot);
    const Control dropped = victim.held.to(kSlotDiscarded);
    if (!store_.parked(job)) count_backlog(store_.queue(job.queue.get()), ~0ULL);
    const bool waited = (job.signals.load() & kWaited) != 0;
    // Named, so that a repair lists it when we come to its end and no further.
    if (AccountMark(job.account.load()).counts()) {
      // A step of its own under the batch's intent: a repair undoes it while the job is still held,
      // and drops the job anew.
      LaneWord& stamp = self_.counters[kAccountStamp];
      stamp.set_ordered(stamp.get() + 1, Point::kIntentSet);
      announce(Op::kBatch, job.queue.get(), victim.slot, kOfAccounts);
      leave_account(victim.slot, job);
    } else {
      announce(Op::kBatch, job.queue.get(), victim.slot);
    }
    job.policy.set(job.flags().with_previous(kSlotAvailable).word);
    job.finished_at.set(now);
    OJS_SHM_PROBE3(drop, job.id_hi.get(), job.id_lo.get(), job.queue.get());
    if (tellings_.on()) [[unlikely]] {
      tellings_.tell(EventKind::kBackpressureDropped, job, dropped);
      tellings_.tell(EventKind::kJobDiscarded, job, dropped);
    }
    recorder_.note(victim.slot, job.generation.get(), kSlotMoving, kSlotDiscarded, now);
    const std::uint64_t signals = job.signals.load();
    const Membership member = (signals & kMember) != 0 ? membership(job) : Membership();
    const Kept kept = (signals & kUnique) != 0 ? kept_for(job, kSlotDiscarded) : Kept();
    job.control.store(dropped.word, Point::kSlotSettled);  // PAIR slot-settle
    if ((signals & kMember) != 0) {
      drop_member(member);
    } else {
      list_ended(victim.slot, dropped, kept);
    }
    if (waited) bell_.ring_completion(victim.slot);
  }
}

void Dropping::drop_apart(std::uint32_t q, std::span<const Victim> victims) {
  QueueTally& mine = tally(q);
  intend<Op::kBatch>(q, kNoIndex, mine);
  commit_drop(mine, victims);
  drop_victims(victims);
  intend_nothing();
}

/// Gives the victims of a drop that does not happen back, each to the front of its level, and
/// leaves the seat.
void Dropping::end_refused_drop(QueueRecord& queue, std::uint32_t q,
                                std::span<const Victim> victims) {
  for (const Victim& victim : victims) {
    intend<Op::kMove>(q, victim.slot, tally(q));
    if (!store_.parked(store_.job(victim.slot))) count_backlog(queue, ~0ULL);  // it never left
    put_back(victim.slot, store_.job(victim.slot), victim.held, kSlotAvailable);
  }
  dropper(queue).leave_if_ours();
}

/// What this lane, whose process is dead, holds in that queue to drop it.
std::vector<Victim> Dropping::victims_left(std::uint32_t q) const {
  std::vector<Victim> victims;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    const Control control(job.control.load());
    if (control.state() == kSlotMoving && control.owner() == owner_ && job.queue.get() == q &&
        !job.unborn() && (job.signals.load() & kRivalBits) == 0)
      victims.push_back({slot, control, charge(1, job.body_length())});
  }
  return victims;
}

/// Rolls a committed drop forward after its lane's death: all that the lane still holds for a
/// moment are victims.
std::uint32_t Dropping::finish_drop(std::uint32_t q) {
  QueueTally& mine = tally(q);
  mine.out.set_ordered(self_.counters[kDropOut].get(), Point::kTallyOut);
  mine.dropped.set_ordered(self_.counters[kDropCount].get(), Point::kCounterMoved);
  const std::vector<Victim> victims = victims_left(q);
  drop_victims(victims);
  return static_cast<std::uint32_t>(victims.size());
}

std::uint32_t Dropping::drop_rest() {
  std::uint32_t dropped = 0;
  for (std::uint32_t q = 0; q < store_.max_queues() && store_.queue(q).name_hash.load() != 0; ++q)
    if (const std::vector<Victim> victims = victims_left(q); !victims.empty()) {
      drop_apart(q, victims);
      dropped += static_cast<std::uint32_t>(victims.size());
    }
  return dropped;
}

}  // namespace ojs_shm::engine
