// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"
#include "engine/limit_turn.hpp"
#include "engine/probes.hpp"

namespace ojs_shm::engine {

using shm::Point;

template <bool kPlain>
Outcome Actor::put_in(const NewJob& spec, JobId& id) {
  come_near(spec.queue);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  const std::uint64_t size = spec.size();
  if (size > store_.max_body()) [[unlikely]]
    return Outcome::kTooLarge;
  const std::uint64_t cost = charge(1, size);
  const std::uint64_t flags = queue.flags.load();
  unsigned part = 0;
  if ((flags & kSharded) != 0 || spec.age_rate) [[unlikely]]
    if (const Outcome chosen = order().choose_part(spec, queue, part); chosen != Outcome::kOk)
      return chosen;
  // 1. Room in a bounded queue comes first, for it may be refused.
  const bool bounded = (flags & (kBounded | kTenants)) != 0;
  TenantCharge tenant{spec.tenant, cost};
  meet_nothing();
  if (bounded) [[unlikely]] {
    intend<Op::kAdmit>(spec.queue, kNoIndex, mine);
    if (const Outcome admitted =
            admit_all(queue, mine, spec.queue, flags, cost, std::span(&tenant, 1));
        admitted != Outcome::kOk) {
      intend_nothing();
      if (admitted == Outcome::kQueueFull && tellings_.on()) [[unlikely]]
        count_refusals(spec.queue, 1, spec.type);
      return admitted;
    }
    intend_further(Op::kEnqueue, spec.queue, kNoIndex);
  }
  // 2. A slot, filled in private: a death frees it.
  std::uint64_t filling = 0;
  const std::uint32_t slot = slots_.take(filling);
  if (slot == kNoIndex) [[unlikely]] {
    if (bounded) take_back_admission(mine, spec.queue, cost, std::span(&tenant, 1));
    intend_nothing();
    return Outcome::kNoSlots;
  }
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  if (!kPlain && spec.unique()) [[unlikely]]
    (void)ask_for_rival(*spec.annex);
  Outcome outcome = fill<kPlain>(spec, JobForm(spec, part), slot, job, now, id);
  if (!kPlain && outcome == Outcome::kOk && spec.unique()) [[unlikely]] {
    Rivals rivals;
    outcome = claim_key(*spec.annex, slot, now, rivals);
  }
  if (tenant.account != kNoIndex) [[unlikely]]
    // NO CRASH POINT: the slot is held exclusively
    job.account.store(AccountMark(job.generation.get(), tenant.account).word, Point::kNone);
  // 3. The counts and the publication, which a death undoes or finishes together.
  if (bounded) [[unlikely]]
    intend_further(Op::kEnqueue, spec.queue, slot);
  else
    intend<Op::kEnqueue>(spec.queue, slot, mine);
  if (outcome == Outcome::kOk) [[likely]] {
    if (!bounded) mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
    mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
    const JobState state = birth_state(spec.pending, spec.scheduled_at, now);
    const unsigned ring = normal_ring(spec.rank);
    std::uint32_t lot = kNoIndex;
    if (!kPlain && limiting() && state == JobState::kAvailable) {
      lot = lot_at_birth(spec);
      job.limits.set(with_second(spec.limit, lot));
    }
    shm::RingSet& rings =
        lot == kNoIndex ? store_.rings_of(spec.queue, part) : store_.lot(lot).rings;
    const std::uint32_t generation = job.generation.get();
    outcome = publish(lot == kNoIndex ? flags : 0, rings, slot, job, Control(filling), ring, state);
    if (outcome == Outcome::kOk) [[likely]] {
      recorder_.note(slot, generation, kSlotFree, slot_state(state), now);
      // A bound that was set meanwhile has not seen our charge.
      if (const auto now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
        settings_moved(queue, flags, now_flags);
      intend_nothing();
      if (tellings_.on() && state != JobState::kPending) [[unlikely]]
        // an id that is not the client's was made at that time, which the clock may have passed since
        tellings_.born({spec.id ? now : id.hi >> 16, spec.scheduled_at, spec.queue,
                        spec.retry.max_attempts, spec.rank, state == JobState::kAvailable},
                       id, Control(filling));
      OJS_SHM_PROBE4(enqueue, id.hi, id.lo, spec.queue, spec.rank);
      if (state == JobState::kAvailable) {
        if ((flags & kCounted) != 0 && lot == kNoIndex) [[unlikely]]
          store_.backlog(spec.queue).fetch_add(1, Point::kBacklogCounted);
        bell_.wake_one(queue);
      }
      if (!kPlain && lot != kNoIndex) follow_birth(lot);
      return outcome;
    }
  }
  take_back_admission(mine, spec.queue, cost, std::span(&tenant, 1));
  slots_.free(slot, Control(job.control.load()));
  intend_nothing();
  return outcome;
}

Outcome Actor::enqueue_short(const NewJob& spec, JobId& id) { return put_in<true>(spec, id); }

Outcome Actor::enqueue(const NewJob& spec, JobId& id) {
  if (spec.straight() && enqueue_plain(spec, id) == Straight::kDone) return Outcome::kOk;
  Outcome outcome = Outcome::kOk;
  if (enqueue_unique(spec, id, outcome) == Straight::kDone) return outcome;
  const LimitsHold hold(store_, limits_held(), std::span(&spec, 1));
  if (!hold.stand()) [[unlikely]]
    return Outcome::kLimitsMoved;
  if (spec.unique()) ask_for_key(*spec.annex);
  // What is refused by its key is told so before a bound is asked, or the memory for a body; the
  // claim does that where neither is in the way.
  const bool bounded = (store_.queue(spec.queue).flags.load() & (kBounded | kTenants)) != 0;
  if (spec.unique() && (bounded || spec.size() > spec.inline_room() ||
                        Uniqueness{spec.annex->uniqueness}.replaces()))
    outcome = foresee_clash(*spec.annex);
  if (outcome == Outcome::kOk) [[likely]]
    outcome = put_in<false>(spec, id);
  // Shortages that come before the claim, or of room for it: a duplicate needs none of that.
  const bool is_short = outcome == Outcome::kNoSlots || outcome == Outcome::kNoKeys;
  if (is_short && spec.unique() && foresee_clash(*spec.annex) == Outcome::kClash) [[unlikely]]
    outcome = Outcome::kClash;
  if (outcome == Outcome::kClash) [[unlikely]]
    raise_other(*spec.annex, spec.queue, spec.rank, conflicts_.clash.id);
  if (outcome != Outcome::kMustDrop && outcome != Outcome::kMustReplace) [[likely]]
    return outcome;
  std::vector<JobId> ids;
  const Outcome dropped = enqueue_batch(std::span(&spec, 1), ids);
  if (dropped == Outcome::kOk) id = ids.front();
  return dropped;
}

}  // namespace ojs_shm::engine
