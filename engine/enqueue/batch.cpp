// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/crons/crons.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/tables/probes.hpp"
#include "engine/workflows/workflows.hpp"

// A batch is filled whole before any of it is published, and one store of the lane's intent commits
// it: before that store a death frees every slot of it, after it the repair publishes what is left,
// in order. The same store commits the jobs that were dropped to make room for it (drop.cpp).

namespace ojs_shm::engine {

using shm::Point;

/// A batch on its way into the queue of its first job.
class Actor::Batch {
 public:
  Batch(Actor& actor, std::span<const NewJob> specs)
      : actor_(actor),
        specs_(specs),
        q_(specs.front().queue),
        queue_(actor.store_.queue(q_)),
        mine_(actor.tally(q_)),
        flags_(queue_.flags.load()) {}

  /// All jobs, in order, or none.
  Outcome enter(std::vector<JobId>& ids) {
    ids.clear();
    const LimitsHold hold(actor_.store_, actor_.limits_held(), specs_);
    if (!hold.stand()) return Outcome::kLimitsMoved;
    Outcome outcome = measure();
    if (outcome == Outcome::kOk) outcome = admit();
    if (outcome != Outcome::kOk) return outcome;
    actor_.intend_further(Op::kBatch, q_, kNoIndex);
    ids.resize(specs_.size());
    outcome = fill(ids);
    if (outcome == Outcome::kOk) outcome = actor_.claim_keys(specs_, slots_, rivals_);
    const bool waited_for_itself = outcome == Outcome::kBusy && !victims_.empty();
    if (outcome == Outcome::kOk && (!all_leave() || !actor_.seize_rivals(rivals_)))
      outcome = Outcome::kRivalMoved;
    if (waited_for_itself) outcome = Outcome::kRivalMoved;
    if (outcome != Outcome::kOk) {
      take_back();
      ids.clear();
      return outcome;
    }
    commit(ids.front());
    for (std::size_t i = 0; i < slots_.size() && actor_.bell_.wake_one(queue_); ++i) {}
    return Outcome::kOk;
  }

 private:
  std::vector<TenantCharge>::iterator charge_of(std::uint64_t tenant) {
    return std::ranges::find(charges_, tenant, &TenantCharge::tenant);
  }

  /// What it costs the queue and its tenants, and where in the queue each job goes.
  Outcome measure() {
    parts_.assign(specs_.size(), 0);
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const NewJob& spec = specs_[i];
      // In one line, also when the number of shards changes meanwhile: else its order would be lost.
      if (i != 0 && !spec.age_rate && !specs_.front().age_rate)
        parts_[i] = parts_[0];
      else if (const Outcome chosen = actor_.order().choose_part(spec, queue_, parts_[i]);
               chosen != Outcome::kOk)
        return chosen;
      const std::uint64_t size = spec.size();
      if (size > actor_.store_.max_body()) return Outcome::kTooLarge;
      cost_ += charge(1, size);
      if ((flags_ & kTenants) == 0) continue;
      if (charge_of(spec.tenant) == charges_.end())
        charges_.push_back({spec.tenant, 0, static_cast<std::uint32_t>(i)});
      charge_of(spec.tenant)->cost += charge(1, size);
    }
    return Outcome::kOk;
  }

  Outcome admit() {
    actor_.intend<Op::kAdmit>(q_, kNoIndex, mine_);
    Outcome outcome = actor_.admit_all(queue_, mine_, q_, flags_, cost_, charges_);
    if (outcome == Outcome::kMustDrop) {
      actor_.foresee_leavers(specs_, q_, leavers_);
      outcome = actor_.admit_by_dropping(queue_, mine_, q_, cost_, charges_, leavers_, victims_);
    }
    if (outcome == Outcome::kOk) return outcome;
    actor_.intend_nothing();
    if (outcome == Outcome::kQueueFull && actor_.tellings_.on())
      actor_.count_refusals(q_, specs_.size(), specs_.front().type);
    actor_.end_refused_drop(queue_, q_, victims_);
    return outcome;
  }

  /// Whether those that make room by being replaced still wait, and are to be replaced.
  bool all_leave() const {
    return std::ranges::all_of(leavers_, [this](const Leaver& leaver) {
      const auto rival = std::ranges::find(rivals_, leaver.slot, &Rival::slot);
      return rival != rivals_.end() && rival->found.state() != kSlotActive;
    });
  }

  /// Fills a slot with each job; a death frees them all.
  Outcome fill(std::vector<JobId>& ids) {
    slots_.reserve(specs_.size());
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const NewJob& spec = specs_[i];
      std::uint64_t filling = 0;
      const std::uint32_t slot = actor_.slots_.take(filling);
      if (slot == kNoIndex) return Outcome::kNoSlots;
      slots_.push_back(slot);
      JobRecord& job = actor_.store_.job(slot);
      Outcome outcome = actor_.fill<false>(spec, JobForm(spec, parts_[i]), slot, job,
                                           actor_.store_.now_ms(), ids[i]);
      const unsigned ring = normal_ring(spec.rank);
      if (outcome == Outcome::kOk &&
          actor_.rings_.ensure(actor_.store_.rings_of(q_, parts_[i]), ring) == kNoIndex)
        outcome = Outcome::kNoRings;
      // NO CRASH POINT: the slot is held exclusively
      if (!charges_.empty())
        job.account.store(AccountMark(job.generation.get(), charge_of(spec.tenant)->account).word,
                          Point::kNone);
      // NO CRASH POINT: as above
      job.signals.store(place_in_batch(i) | (job.signals.load() & kAnnexed), Point::kNone);
      job.control.store(Control(filling).to(kSlotFilling, ring, actor_.owner_).word,
                        Point::kSlotFilling);
      if (outcome != Outcome::kOk) return outcome;
    }
    return Outcome::kOk;
  }

  void take_back() {
    actor_.take_back_admission(mine_, q_, cost_, charges_);
    for (const std::uint32_t slot : slots_)
      actor_.slots_.free(slot, Control(actor_.store_.job(slot).control.load()));
    actor_.intend_nothing();
    for (const Rival& rival : rivals_)
      if (actor_.is_our_rival(rival.slot)) actor_.end_rival(rival.slot);
    actor_.end_refused_drop(queue_, q_, victims_);
  }

  /// The one store that counts, and what it promises: jobs in line, victims and rivals ended.
  void commit(JobId first) {
    mine_.enqueued.set_ordered(mine_.enqueued.get() + specs_.size(), Point::kCounterMoved);
    Crons* const fires =
        actor_.crons_ != nullptr && actor_.crons_->firing() ? actor_.crons_.get() : nullptr;
    if (fires != nullptr) fires->stage(first);
    if (victims_.empty())
      actor_.commit_batch(kWhole);
    else
      actor_.commit_drop(mine_, victims_);
    actor_.dropper(queue_).leave_if_ours();
    actor_.publish_batch(slots_);
    actor_.drop_victims(victims_);
    for (const Rival& rival : rivals_) actor_.mark_replaced(rival.slot);
    if (fires != nullptr) fires->apply();
    const std::uint64_t now_flags = queue_.flags.load_seq_cst();
    if (now_flags != flags_) queue_.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
    actor_.intend_nothing();
    for (const Rival& rival : rivals_) {
      actor_.end_rival(rival.slot);
      queue_.conflicts.fetch_add(1, Point::kCounterMoved);
    }
    if (!victims_.empty()) actor_.workflows().advance_dropped();
    if ((now_flags & ~flags_ & kTenants) != 0) actor_.gather_accounts(q_, kPatience);
  }

  Actor& actor_;
  std::span<const NewJob> specs_;
  std::uint32_t q_;
  QueueRecord& queue_;
  QueueTally& mine_;
  const std::uint64_t flags_;
  std::uint64_t cost_ = 0;
  Short<unsigned> parts_;  ///< of the queue, for each job
  std::vector<TenantCharge> charges_;
  std::vector<Leaver> leavers_;
  std::vector<Victim> victims_;
  Short<std::uint32_t> slots_;
  Rivals rivals_;
};

/// A batch that has unique jobs. Those whose keys others have, and which are content with that, are
/// not enqueued; the rest is, all or none. Others are raised once it is, so a batch that is refused
/// changes nothing.
class Actor::UniqueBatch {
 public:
  UniqueBatch(Actor& actor, std::span<const NewJob> specs) : actor_(actor), specs_(specs) {}

  Outcome enter(std::vector<JobId>& ids) {
    Outcome outcome = Outcome::kBusy;
    for (unsigned looks = 0; looks < kPatience; ++looks) {
      outcome = choose();
      if (outcome == Outcome::kClash) break;
      std::vector<JobId> made;
      if (!chosen_.empty()) outcome = Batch(actor_, chosen_).enter(made);
      if (outcome == Outcome::kOk) {
        tell(made, ids);
        return outcome;
      }
      if (outcome == Outcome::kClash) conflicts().at = places_[conflicts().at];
      if (outcome != Outcome::kRivalMoved &&
          !(outcome == Outcome::kClash && content(conflicts().at)))
        break;
      shm::wait_for_another(looks);
    }
    ids.clear();
    if (outcome == Outcome::kClash) actor_.count_conflict(specs_[conflicts().at].queue);
    return outcome == Outcome::kRivalMoved ? Outcome::kBusy : outcome;
  }

 private:
  Conflicts& conflicts() { return actor_.conflicts_; }
  bool content(std::size_t i) const {
    return Uniqueness{specs_[i].annex->uniqueness}.on_conflict() == OnConflict::kIgnore;
  }

  /// Which of them to enqueue; kClash: one of them may not be.
  Outcome choose() {
    conflicts().ignored.assign(specs_.size(), false);
    others_.assign(specs_.size(), {});
    same_as_.assign(specs_.size(), specs_.size());
    places_.clear();
    chosen_.clear();
    Short<std::pair<UniqueKey, std::size_t>> keys;  // of those before
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const NewJob& spec = specs_[i];
      if (spec.unique()) {
        const UniqueKey key = key_of(*spec.annex);
        const auto before = std::ranges::find(keys, key, &std::pair<UniqueKey, std::size_t>::first);
        conflicts().at = i;
        const bool again = before != keys.end();
        if (again) {
          conflicts().clash = {};
          same_as_[i] = before->second;
        } else if (!Uniqueness{spec.annex->uniqueness}.replaces() &&
                   actor_.foresee_clash(*spec.annex) == Outcome::kClash) {
          others_[i] = conflicts().clash.id;
        }
        conflicts().ignored[i] = again || others_[i] != JobId{};
        if (conflicts().ignored[i] && !content(i)) return Outcome::kClash;
        if (conflicts().ignored[i]) continue;
        keys.emplace_back(key, i);
      }
      places_.push_back(i);
      chosen_.push_back(spec);
    }
    return Outcome::kOk;
  }

  /// The id of each: its own, or that of the job that has its key.
  void tell(std::span<const JobId> made, std::vector<JobId>& ids) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (same_as_[i] != specs_.size())
        actor_.count_conflict(specs_[i].queue);
      else if (conflicts().ignored[i])
        actor_.raise_other(*specs_[i].annex, specs_[i].queue, specs_[i].rank, others_[i]);
    }
    ids = others_;
    for (std::size_t n = 0; n < places_.size(); ++n) ids[places_[n]] = made[n];
    for (std::size_t i = 0; i < specs_.size(); ++i)
      if (same_as_[i] != specs_.size()) ids[i] = ids[same_as_[i]];
  }

  Actor& actor_;
  std::span<const NewJob> specs_;
  std::vector<JobId> others_;   ///< who has the key of each, where that is known
  Short<std::size_t> same_as_;  ///< the place of an earlier one of the same key
  Short<std::size_t> places_;   ///< of the chosen
  Short<NewJob> chosen_;
};

Outcome Actor::enqueue_batch(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  ids.clear();
  if (specs.empty()) return Outcome::kOk;
  ids.resize(specs.size());
  if (enqueue_batch_plain(specs, std::span(ids)) == Straight::kDone) return Outcome::kOk;
  conflicts_.ignored.clear();
  const bool unique = std::ranges::any_of(specs, [](const NewJob& spec) { return spec.unique(); });
  return unique ? UniqueBatch(*this, specs).enter(ids) : Batch(*this, specs).enter(ids);
}

/// Publishes filled slots in order. What finds no room for its hint stays available and is found by
/// the next mending.
void Actor::publish_batch(std::span<const std::uint32_t> slots) {
  for (const std::uint32_t slot : slots) {
    JobRecord& job = store_.job(slot);
    shm::RingSet& rings = store_.rings_of(job);
    const Control filling(job.control.load());
    const JobState state = job.birth_state();
    const std::uint64_t timer = timer_of(job, slot_state(state));
    const std::uint32_t generation = job.generation.get();
    const Control published = filling.to(slot_state(state), filling.ring(), 0);
    if (tellings_.on() && state != JobState::kPending) [[unlikely]]
      tellings_.tell(
          state == JobState::kAvailable ? EventKind::kJobEnqueued : EventKind::kJobScheduled, job,
          published, job.due_at.get());
    OJS_SHM_PROBE4(enqueue, job.id_hi.get(), job.id_lo.get(), job.queue.get(),
                   rank_of_ring(published.ring()));
    recorder_.note(slot, generation, kSlotFree, published.state(), job.created_at.get());
    job.control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
    if (state == JobState::kAvailable &&
        !stand_in_line(store_.queue(job.queue.get()).flags.load(), rings,
                       rings_.ensure(rings, published.ring()), slot, published))
      announce_lost_hint();
    if (state == JobState::kAvailable) count_backlog(store_.queue(job.queue.get()), 1);
    if (timer != 0) push_timer(slot, generation, timer);
  }
}

}  // namespace ojs_shm::engine
