// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/crons/crons.hpp"
#include "engine/enqueue/batches.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/tables/probes.hpp"
#include "engine/workflows/workflows.hpp"

// A batch is filled whole before any of it is published, and one store of the lane's intent commits
// it: before that store a death frees every slot of it, after it the repair publishes what is left,
// in order. The same store commits the jobs that were dropped to make room for it (drop.cpp).

namespace ojs_shm::engine {

using shm::Point;

Outcome Actor::Batch::enter(std::vector<JobId>& ids) {
  const std::span specs = share_.specs();
  ids.clear();
  const LimitsHold hold(actor_.store_, actor_.limits_held(), specs);
  if (!hold.stand()) return Outcome::kLimitsMoved;
  Outcome outcome = share_.measure();
  if (outcome == Outcome::kOk) outcome = share_.admit();
  if (outcome != Outcome::kOk) return outcome;
  ids.resize(specs.size());
  outcome = fill(ids);
  if (outcome == Outcome::kOk) outcome = actor_.claim_keys(specs, slots_, rivals_);
  if (outcome == Outcome::kOk && (!share_.all_leave(rivals_) || !actor_.seize_rivals(rivals_)))
    outcome = Outcome::kRivalMoved;
  if (outcome != Outcome::kOk) {
    take_back();
    ids.clear();
    return outcome;
  }
  commit(ids.front());
  share_.wake();
  return Outcome::kOk;
}

/// Fills a slot with each job; a death frees them all.
Outcome Actor::Batch::fill(std::vector<JobId>& ids) {
  slots_.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::uint32_t slot = kNoIndex;
    const Outcome outcome = share_.fill(i, ids[i], slot);
    if (slot != kNoIndex) {
      slots_.push_back(slot);
      share_.mark_account(i, actor_.store_.job(slot));
    }
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

void Actor::Batch::take_back() {
  share_.take_back_admission();
  for (const std::uint32_t slot : slots_)
    actor_.slots_.free(slot, Control(actor_.store_.job(slot).control.load()));
  actor_.intend_nothing();
  for (const Rival& rival : rivals_)
    if (actor_.is_our_rival(rival.slot)) actor_.end_rival(rival.slot);
  share_.keep_victims();
}

/// The one store that counts, and what it promises: jobs in line, victims and rivals ended.
void Actor::Batch::commit(JobId first) {
  QueueTally& mine = share_.tally();
  const std::vector<Victim>& victims = share_.victims();
  mine.enqueued.set_ordered(mine.enqueued.get() + slots_.size(), Point::kCounterMoved);
  Crons* const fires =
      actor_.crons_ != nullptr && actor_.crons_->firing() ? actor_.crons_.get() : nullptr;
  if (fires != nullptr) fires->stage(first);
  if (victims.empty())
    actor_.commit_batch(kWhole);
  else
    actor_.commit_drop(mine, victims);
  actor_.publish_batch(slots_);
  actor_.drop_victims(victims);
  for (const Rival& rival : rivals_) actor_.mark_replaced(rival.slot);
  if (fires != nullptr) fires->apply();
  const bool gathers = share_.settings_moved();
  actor_.intend_nothing();
  for (const Rival& rival : rivals_) {
    actor_.end_rival(rival.slot);
    if (rival.by != kNoIndex) actor_.count_conflict(rival.by);
  }
  // What goes is charged no more: the next one that finds the queue full drops no job too many.
  actor_.dropper(share_.record()).leave_if_ours();
  if (!victims.empty()) actor_.workflows().advance_dropped();
  if (gathers) actor_.gather_accounts(share_.queue(), kPatience);
}

Outcome Actor::enqueue_batch(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  ids.clear();
  if (specs.empty()) return Outcome::kOk;
  ids.resize(specs.size());
  if (enqueue_batch_plain(specs, std::span(ids)) == Straight::kDone) return Outcome::kOk;
  conflicts_.ignored.clear();
  const bool unique = std::ranges::any_of(specs, [](const NewJob& spec) { return spec.unique(); });
  return unique ? UniqueBatch(*this, specs).enter(ids) : enter_batch(specs, ids);
}

Outcome Actor::enter_batch(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  const bool one = std::ranges::all_of(
      specs, [&specs](const NewJob& spec) { return spec.queue == specs.front().queue; });
  return one ? Batch(*this, specs).enter(ids) : Spread(*this, specs).enter(ids);
}

/// Publishes filled slots in order. What finds no room for its hint stays available and is found by
/// the next mending.
void Actor::publish_batch(std::span<const std::uint32_t> slots) {
  for (const std::uint32_t slot : slots) {
    JobRecord& job = store_.job(slot);
    shm::RingSet& rings = store_.rings_of(job);
    QueueRecord& queue = store_.queue(job.queue.get());  // once it is there the slot may go on
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
        !stand_in_line(queue.flags.load(), rings, rings_.ensure(rings, published.ring()), slot,
                       published))
      announce_lost_hint();
    if (state == JobState::kAvailable) count_backlog(queue, 1);
    if (timer != 0) push_timer(slot, generation, timer);
  }
}

}  // namespace ojs_shm::engine
