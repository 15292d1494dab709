// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/crons.hpp"
#include "engine/limit_turn.hpp"
#include "engine/probes.hpp"
#include "engine/unique_keys.hpp"
#include "engine/workflows.hpp"

// A batch is filled whole before any of it is published, and one store of the lane's intent commits
// it: before that store a death frees every slot of it, after it the repair publishes what is left,
// in order. The same store commits the jobs that were dropped to make room for it (drop.cpp).

namespace ojs_shm::engine {

using shm::Point;

Outcome Actor::enqueue_batch(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  ids.clear();
  if (specs.empty()) return Outcome::kOk;
  ids.resize(specs.size());
  if (enqueue_batch_plain(specs, ids) == Straight::kDone) return Outcome::kOk;
  conflicts_.ignored.clear();
  const bool unique = std::ranges::any_of(specs, [](const NewJob& spec) { return spec.unique(); });
  return unique ? UniqueKeys{*this, store_}.enqueue_batch(specs, ids)
                : enqueue_batch_in_order(specs, ids);
}

Outcome Actor::enqueue_batch_in_order(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  ids.clear();
  const LimitsHold hold(store_, self_.counters[kLimitsHeld], specs);
  if (!hold.stand()) return Outcome::kLimitsMoved;
  const std::uint32_t q = specs.front().queue;
  QueueRecord& queue = store_.queue(q);
  QueueTally& mine = tally(q);
  std::uint64_t cost = 0;
  Short<unsigned> parts(specs.size(), 0);
  const std::uint64_t flags = queue.flags.load();
  std::vector<TenantCharge> charges;
  const auto charge_of = [&charges](std::uint64_t tenant) {
    return std::find_if(charges.begin(), charges.end(),
                        [tenant](const TenantCharge& c) { return c.tenant == tenant; });
  };
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const NewJob& spec = specs[i];
    // In one line, also when the number of shards changes meanwhile: else its order would be lost.
    if (i != 0 && !spec.age_rate && !specs.front().age_rate)
      parts[i] = parts[0];
    else if (const Outcome chosen = order().choose_part(spec, queue, parts[i]);
             chosen != Outcome::kOk)
      return chosen;
    const std::uint64_t size = spec.size();
    if (size > store_.max_body()) return Outcome::kTooLarge;
    cost += charge(1, size);
    if ((flags & kTenants) == 0) continue;
    if (charge_of(spec.tenant) == charges.end())
      charges.push_back({spec.tenant, 0, static_cast<std::uint32_t>(i)});
    charge_of(spec.tenant)->cost += charge(1, size);
  }
  intend<Op::kAdmit>(q, kNoIndex, mine);
  std::vector<Victim> victims;
  Outcome outcome = admit_all(queue, mine, q, flags, cost, charges);
  if (outcome == Outcome::kMustDrop)
    outcome = admit_by_dropping(queue, mine, q, cost, charges, victims);
  if (outcome != Outcome::kOk) {
    intend_nothing();
    if (outcome == Outcome::kQueueFull && tellings_.on())
      count_refusals(q, specs.size(), specs.front().type);
    end_refused_drop(queue, q, victims);
    return outcome;
  }
  intend_further(Op::kBatch, q, kNoIndex);
  Short<std::uint32_t> slots;
  slots.reserve(specs.size());
  ids.resize(specs.size());
  for (std::size_t i = 0; i < specs.size() && outcome == Outcome::kOk; ++i) {
    std::uint64_t filling = 0;
    const std::uint32_t slot = slots_.take(filling);
    if (slot == kNoIndex) {
      outcome = Outcome::kNoSlots;
      break;
    }
    slots.push_back(slot);
    JobRecord& job = store_.job(slot);
    outcome =
        fill<false>(specs[i], JobForm(specs[i], parts[i]), slot, job, store_.now_ms(), ids[i]);
    const unsigned ring = normal_ring(specs[i].rank);
    if (outcome == Outcome::kOk && rings_.ensure(store_.rings_of(q, parts[i]), ring) == kNoIndex)
      outcome = Outcome::kNoRings;
    // NO CRASH POINT: the slot is held exclusively
    if (!charges.empty())
      job.account.store(AccountMark(job.generation.get(), charge_of(specs[i].tenant)->account).word,
                        Point::kNone);
    // NO CRASH POINT: as above
    job.signals.store(place_in_batch(i) | (job.signals.load() & kAnnexed), Point::kNone);
    job.control.store(Control(filling).to(kSlotFilling, ring, owner_).word, Point::kSlotFilling);
  }
  UniqueKeys keys{*this, store_};
  Rivals rivals;
  if (outcome == Outcome::kOk) outcome = keys.claim_all(specs, slots, rivals);
  if (outcome == Outcome::kOk && !keys.seize(rivals)) outcome = Outcome::kRivalMoved;
  if (outcome != Outcome::kOk) {
    take_back_admission(mine, q, cost, charges);
    for (const std::uint32_t slot : slots)
      slots_.free(slot, Control(store_.job(slot).control.load()));
    intend_nothing();
    for (const Rival& rival : rivals)
      if (keys.ours(rival.slot)) keys.end(rival.slot);
    ids.clear();
    end_refused_drop(queue, q, victims);
    return outcome;
  }
  mine.enqueued.set_ordered(mine.enqueued.get() + specs.size(), Point::kCounterMoved);
  const bool fires = crons_ != nullptr && crons_->firing();
  if (fires) crons_->stage(ids.front());
  if (victims.empty())
    commit_batch(kWhole);
  else
    commit_drop(mine, victims);
  dropper(queue).leave_if_ours();
  publish_batch(slots);
  drop_victims(victims);
  for (const Rival& rival : rivals) keys.mark_replaced(rival.slot);
  if (fires) crons_->apply();
  const std::uint64_t now_flags = queue.flags.load_seq_cst();
  if (now_flags != flags) queue.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
  intend_nothing();
  for (const Rival& rival : rivals) {
    keys.end(rival.slot);
    queue.conflicts.fetch_add(1, Point::kCounterMoved);
  }
  if (!victims.empty()) workflows().advance_dropped();
  if ((now_flags & ~flags & kTenants) != 0) gather_accounts(q, kPatience);
  for (std::size_t i = 0; i < slots.size() && bell_.wake_one(queue); ++i) {}
  return Outcome::kOk;
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
