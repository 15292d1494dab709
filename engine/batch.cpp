// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/crons.hpp"
#include "engine/limit_turn.hpp"
#include "engine/probes.hpp"
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
  return unique ? enqueue_unique_batch(specs, ids) : enqueue_batch_in_order(specs, ids);
}

Outcome Actor::enqueue_batch_in_order(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  ids.clear();
  const LimitsHold hold(store_, limits_held(), specs);
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
  Rivals rivals;
  if (outcome == Outcome::kOk) outcome = claim_keys(specs, slots, rivals);
  if (outcome == Outcome::kOk && !seize_rivals(rivals)) outcome = Outcome::kRivalMoved;
  if (outcome != Outcome::kOk) {
    take_back_admission(mine, q, cost, charges);
    for (const std::uint32_t slot : slots)
      slots_.free(slot, Control(store_.job(slot).control.load()));
    intend_nothing();
    for (const Rival& rival : rivals)
      if (is_our_rival(rival.slot)) end_rival(rival.slot);
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
  for (const Rival& rival : rivals) mark_replaced(rival.slot);
  if (fires) crons_->apply();
  const std::uint64_t now_flags = queue.flags.load_seq_cst();
  if (now_flags != flags) queue.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
  intend_nothing();
  for (const Rival& rival : rivals) {
    end_rival(rival.slot);
    queue.conflicts.fetch_add(1, Point::kCounterMoved);
  }
  if (!victims.empty()) workflows().advance_dropped();
  if ((now_flags & ~flags & kTenants) != 0) gather_accounts(q, kPatience);
  for (std::size_t i = 0; i < slots.size() && bell_.wake_one(queue); ++i) {}
  return Outcome::kOk;
}

/// Jobs whose keys others have, and which are content with that, are not enqueued; the rest is, all
/// or none. Others are raised once it is, so a batch that is refused changes nothing.
Outcome Actor::enqueue_unique_batch(std::span<const NewJob> specs, std::vector<JobId>& ids) {
  Outcome outcome = Outcome::kBusy;
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    conflicts_.ignored.assign(specs.size(), false);
    ids.assign(specs.size(), {});
    Short<std::pair<UniqueKey, std::size_t>> keys;  // of those before
    Short<std::size_t> places, same_as(specs.size(), specs.size());
    Short<NewJob> chosen;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].unique()) {
        const UniqueKey key = key_of(*specs[i].annex);
        const Uniqueness wish{specs[i].annex->uniqueness};
        const bool content = wish.on_conflict() == OnConflict::kIgnore;
        const auto before = std::ranges::find(keys, key, &std::pair<UniqueKey, std::size_t>::first);
        conflicts_.at = i;
        if (before != keys.end()) {
          conflicts_.clash = {};
          if (!content) return refuse_batch(specs[i], ids);
          same_as[i] = before->second;
        } else if (!wish.replaces() && foresee_clash(*specs[i].annex) == Outcome::kClash) {
          if (!content) return refuse_batch(specs[i], ids);
          ids[i] = conflicts_.clash.id;
        }
        conflicts_.ignored[i] = same_as[i] != specs.size() || ids[i] != JobId{};
        if (conflicts_.ignored[i]) continue;
        keys.emplace_back(key, i);
      }
      places.push_back(i);
      chosen.push_back(specs[i]);
    }
    std::vector<JobId> made;
    outcome = chosen.empty() ? Outcome::kOk : enqueue_batch_in_order(chosen, made);
    if (outcome == Outcome::kOk) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        if (same_as[i] != specs.size())
          count_conflict(specs[i].queue);
        else if (conflicts_.ignored[i])
          raise_other(*specs[i].annex, specs[i].queue, specs[i].rank, ids[i]);
      }
      for (std::size_t n = 0; n < places.size(); ++n) ids[places[n]] = made[n];
      for (std::size_t i = 0; i < specs.size(); ++i)
        if (same_as[i] != specs.size()) ids[i] = ids[same_as[i]];
      return outcome;
    }
    if (outcome == Outcome::kClash) conflicts_.at = places[conflicts_.at];
    const bool again =
        outcome == Outcome::kRivalMoved ||
        (outcome == Outcome::kClash &&
         Uniqueness{specs[conflicts_.at].annex->uniqueness}.on_conflict() == OnConflict::kIgnore);
    if (!again) break;
    shm::wait_for_another(looks);
  }
  if (outcome == Outcome::kClash) return refuse_batch(specs[conflicts_.at], ids);
  ids.clear();
  return outcome == Outcome::kRivalMoved ? Outcome::kBusy : outcome;
}

/// Of the job of a batch that met another of its key.
Outcome Actor::refuse_batch(const NewJob& spec, std::vector<JobId>& ids) {
  count_conflict(spec.queue);
  ids.clear();
  return Outcome::kClash;
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
