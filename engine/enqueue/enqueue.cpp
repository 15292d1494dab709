// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/tables/probes.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// A job on its way into its queue. kPlain: one that is plain().
template <bool kPlain>
class Actor::Entry {
 public:
  Entry(Actor& actor, const NewJob& spec)
      : actor_(actor),
        spec_(spec),
        queue_(*actor.current_.queue),
        mine_(*actor.current_.tally),
        flags_(queue_.flags.load()),
        cost_(charge(1, spec.size())),
        bounded_((flags_ & (kBounded | kTenants)) != 0),
        tenant_{spec.tenant, cost_} {}

  OJS_SHM_INLINE Outcome enter(JobId& id) {
    if (spec_.size() > actor_.store_.max_body()) [[unlikely]]
      return Outcome::kTooLarge;
    if ((flags_ & kSharded) != 0 || spec_.age_rate) [[unlikely]]
      if (const Outcome chosen = actor_.order().choose_part(spec_, queue_, part_);
          chosen != Outcome::kOk)
        return chosen;
    actor_.meet_nothing();
    if (bounded_) [[unlikely]]
      if (const Outcome admitted = admit(); admitted != Outcome::kOk) return admitted;
    slot_ = actor_.slots_.take(filling_);
    if (slot_ == kNoIndex) [[unlikely]] {
      if (bounded_) take_back();
      actor_.intend_nothing();
      return Outcome::kNoSlots;
    }
    JobRecord& job = actor_.store_.job(slot_);
    Outcome outcome = fill(job, id);
    // The counts and the publication, which a death undoes or finishes together.
    if (bounded_) [[unlikely]]
      actor_.intend_further(Op::kEnqueue, spec_.queue, slot_);
    else
      actor_.intend<Op::kEnqueue>(spec_.queue, slot_, mine_);
    if (outcome == Outcome::kOk) [[likely]]
      outcome = publish(job);
    if (outcome == Outcome::kOk) [[likely]] {
      tell(id);
      return outcome;
    }
    take_back();
    actor_.slots_.free(slot_, Control(job.control.load()));
    actor_.intend_nothing();
    return outcome;
  }

 private:
  /// Room in a bounded queue comes first, for it may be refused.
  Outcome admit() {
    actor_.intend<Op::kAdmit>(spec_.queue, kNoIndex, mine_);
    const Outcome admitted =
        actor_.admit_all(queue_, mine_, spec_.queue, flags_, cost_, std::span(&tenant_, 1));
    if (admitted == Outcome::kOk) {
      actor_.intend_further(Op::kEnqueue, spec_.queue, kNoIndex);
      return admitted;
    }
    actor_.intend_nothing();
    if (admitted == Outcome::kQueueFull && actor_.tellings_.on()) [[unlikely]]
      actor_.count_refusals(spec_.queue, 1, spec_.type);
    return admitted;
  }

  void take_back() {
    actor_.take_back_admission(mine_, spec_.queue, cost_, std::span(&tenant_, 1));
  }

  /// The slot is filled in private: a death frees it.
  OJS_SHM_INLINE Outcome fill(JobRecord& job, JobId& id) {
    now_ = actor_.store_.now_ms();
    if (!kPlain && spec_.unique()) [[unlikely]]
      (void)actor_.ask_for_rival(*spec_.annex);
    Outcome outcome = actor_.fill<kPlain>(spec_, JobForm(spec_, part_), slot_, job, now_, id);
    if (!kPlain && outcome == Outcome::kOk && spec_.unique()) [[unlikely]] {
      Rivals rivals;
      outcome = actor_.claim_key(*spec_.annex, slot_, now_, rivals);
    }
    if (tenant_.account != kNoIndex) [[unlikely]]
      // NO CRASH POINT: the slot is held exclusively
      job.account.store(AccountMark(job.generation.get(), tenant_.account).word, Point::kNone);
    return outcome;
  }

  OJS_SHM_INLINE Outcome publish(JobRecord& job) {
    if (!bounded_) mine_.in.set_ordered(mine_.in.get() + cost_, Point::kTallyIn);
    mine_.enqueued.set_ordered(mine_.enqueued.get() + 1, Point::kCounterMoved);
    state_ = birth_state(spec_.pending, spec_.scheduled_at, now_);
    if (!kPlain && actor_.limiting() && state_ == JobState::kAvailable) {
      lot_ = actor_.lot_at_birth(spec_, actor_.store_.rings_of(spec_.queue, part_));
      job.limits.set(with_second(spec_.limit, lot_));
    }
    const bool in_line = lot_ == kNoIndex;
    shm::RingSet& rings =
        in_line ? actor_.store_.rings_of(spec_.queue, part_) : actor_.store_.lots[lot_].rings;
    const std::uint32_t generation = job.generation.get();
    const Outcome outcome = actor_.publish(in_line ? flags_ : 0, rings, slot_, job,
                                           Control(filling_), normal_ring(spec_.rank), state_);
    if (outcome == Outcome::kOk) [[likely]]
      actor_.recorder_.note(slot_, generation, kSlotFree, slot_state(state_), now_);
    return outcome;
  }

  /// Whom it concerns that the job is there.
  OJS_SHM_INLINE void tell(JobId id) {
    // A bound that was set meanwhile has not seen our charge.
    if (const auto now_flags = queue_.flags.load_seq_cst(); now_flags != flags_) [[unlikely]]
      actor_.settings_moved(queue_, flags_, now_flags);
    actor_.intend_nothing();
    if (actor_.tellings_.on() && state_ != JobState::kPending) [[unlikely]]
      // an id that is not the client's was made at that time, which the clock may have passed since
      actor_.tellings_.born({spec_.id ? now_ : id.hi >> 16, spec_.scheduled_at, spec_.queue,
                             spec_.retry.max_attempts, spec_.rank, state_ == JobState::kAvailable},
                            id, Control(filling_));
    OJS_SHM_PROBE4(enqueue, id.hi, id.lo, spec_.queue, spec_.rank);
    if (state_ == JobState::kAvailable) {
      if ((flags_ & kCounted) != 0 && lot_ == kNoIndex) [[unlikely]]
        actor_.store_.backlogs[spec_.queue].fetch_add(1, Point::kBacklogCounted);
      actor_.bell_.wake_one(queue_);
    }
    if (!kPlain && lot_ != kNoIndex) actor_.follow_birth(lot_);
  }

  Actor& actor_;
  const NewJob& spec_;
  QueueRecord& queue_;
  QueueTally& mine_;
  const std::uint64_t flags_, cost_;
  const bool bounded_;
  TenantCharge tenant_;
  unsigned part_ = 0;
  std::uint32_t slot_ = kNoIndex;
  std::uint64_t filling_ = 0, now_ = 0;
  JobState state_ = JobState::kPending;
  std::uint32_t lot_ = kNoIndex;  ///< where a limit holds it back
};

Outcome Actor::enqueue_short(const NewJob& spec, JobId& id) {
  set_current_queue(spec.queue);
  return Entry<true>(*this, spec).enter(id);
}

Outcome Actor::enqueue(const NewJob& spec, JobId& id) {
  if (spec.straight() && (enqueue_plain(spec, id) == Straight::kDone ||
                          enqueue_under_bound(spec, id) == Straight::kDone))
    return Outcome::kOk;
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
  if (outcome == Outcome::kOk) [[likely]] {
    set_current_queue(spec.queue);
    outcome = Entry<false>(*this, spec).enter(id);
  }
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
