// SPDX-License-Identifier: Apache-2.0
#include "engine/unique/unique_keys.hpp"

#include <algorithm>

#include "engine/tables/job_look.hpp"
#include "shm/parking.hpp"

// A job that another replaces is taken into this lane's hands when the new one has its key, and
// says so in its signals (kRival) and what it was before. The store that commits the batch of the
// new ones decides: from then on the rivals are marked as replaced and end as cancelled, by this
// lane or by its repairer; before it a repair gives them back.

namespace ojs_shm::engine {

using shm::Point;

// ---- looking ------------------------------------------------------------------------------------

shm::KeyIndex::Standing KeyLook::operator()(std::uint32_t slot) const {
  using enum shm::KeyIndex::Standing;
  if (slot >= store_.slots()) return kPasses;
  const JobRecord& job = store_.job(slot);
  const Control found(job.control.load_seq_cst());
  if (found.state() == kSlotFree || !is_unique(job) || key_of(job.annex()) != key_) return kPasses;
  if (is_exclusive(found.state())) {
    if (found.state() == kSlotMoving && found.owner() == lane_) return kPasses;
    waits_ = true;
    return found.state() == kSlotFilling ? kComes : kKeepsOut;
  }
  const JobId id = job.id();
  const Uniqueness own{job.annex().uniqueness.get()};
  const std::uint64_t created = job.created_at.get();
  if (job.control.load() != found.word) {
    waits_ = true;
    return kKeepsOut;
  }
  const JobState state =
      found.state() == kSlotWaiting ? JobState::kPending : job_state(found.state());
  seen_.add() = {slot, found.state(), is_terminal(state) && own.minds(state), own.end(created),
                 created};
  if (!wish_.minds(state) || own.end(created) <= now_ || wish_.end(created) <= now_) return kPasses;
  if (wish_.replaces()) {
    rivals_.push_back({slot, found});
    return kPasses;
  }
  clash_ = {id, state};
  return kKeepsOut;
}

std::vector<std::uint32_t> KeyLook::superfluous() const {
  std::vector<std::uint32_t> slots;
  for (unsigned i = 0; i < seen_.size(); ++i) {
    const Seen& one = seen_[i];
    const auto stands_beside = [&one](const Seen& other) {
      // A newcomer's own period counts from the other's creation: the younger one must be minded
      // for as long.
      return other.state != one.state || !is_finished(one.state) || other.slot == one.slot ||
             other.stays < one.stays || other.end < one.end ||
             std::tuple(other.created, other.end, other.stays, other.slot) <
                 std::tuple(one.created, one.end, one.stays, one.slot);
    };
    if (one.end < now_ || !seen_.all_of(stands_beside)) slots.push_back(one.slot);
  }
  return slots;
}

// ---- entering -----------------------------------------------------------------------------------

/// Has the key for the job in the slot, which this lane fills. kMustReplace: it has it, and there
/// are rivals.
Outcome UniqueKeys::claim_key(const NewAnnex& annex, std::uint32_t slot, std::uint64_t now,
                              Rivals& rivals) {
  const shm::KeyIndex::Glance seen = shm::KeyIndex::glance(segment_, annex.key_lo);
  return slots_.keys().insert_alone(annex.key_lo, slot, seen)
             ? Outcome::kOk
             : claim_key_among(annex, slot, now, rivals);
}

Outcome UniqueKeys::claim_key_among(const NewAnnex& annex, std::uint32_t slot, std::uint64_t now,
                                    Rivals& rivals) {
  const UniqueKey key = key_of(annex);
  KeyLook look(store_, key, {annex.uniqueness}, now, owner_);
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    switch (slots_.keys().insert(key.lo, slot, look)) {
      case shm::KeyIndex::Insert::kDone:
        // While the key is ours no other lane enters it, so these slots hold the jobs that were
        // seen.
        if (look.saw_several()) [[unlikely]]
          for (const std::uint32_t other : look.superfluous()) slots_.keys().remove(key.lo, other);
        for (const Rival& rival : look.rivals()) rivals.push_back(rival);
        return look.rivals().empty() ? Outcome::kOk : Outcome::kMustReplace;
      case shm::KeyIndex::Insert::kFull: return Outcome::kNoKeys;
      case shm::KeyIndex::Insert::kBusy: return Outcome::kBusy;
      case shm::KeyIndex::Insert::kDuplicate: break;
    }
    if (!look.waits()) {
      conflicts_.clash = look.clash();
      return Outcome::kClash;
    }
    // Not back before the others are done: else those that wait for us to go would wait again.
    do shm::wait_for_another(looks);
    while (others_come(key, look) && ++looks < kPatience);
  }
  return Outcome::kBusy;
}

/// Whether a job of the key is in the middle of something.
bool UniqueKeys::others_come(UniqueKey key, const KeyLook& look) const {
  look.begin();
  (void)shm::KeyIndex::find(segment_, key.lo, look);
  return look.waits();
}

/// What a claim would meet right now; writes nothing, so kOk promises nothing. For what is refused,
/// or has to replace, anyway.
Outcome UniqueKeys::foresee_clash(const NewAnnex& annex) {
  const UniqueKey key = key_of(annex);
  KeyLook look(store_, key, {annex.uniqueness}, store_.now_ms(), owner_);
  const bool found = shm::KeyIndex::find(segment_, key.lo, look) != kNoIndex;
  if (look.waits()) return Outcome::kOk;
  if (!look.rivals().empty()) return Outcome::kMustReplace;
  if (!found) return Outcome::kOk;
  conflicts_.clash = look.clash();
  return Outcome::kClash;
}

void UniqueKeys::foresee_leavers(std::span<const NewJob> specs, std::uint32_t queue,
                                 std::vector<Leaver>& leavers) {
  for (const NewJob& spec : specs) {
    if (!spec.unique() || !Uniqueness{spec.annex->uniqueness}.replaces()) continue;
    const UniqueKey key = key_of(*spec.annex);
    KeyLook look(store_, key, {spec.annex->uniqueness}, store_.now_ms(), owner_);
    (void)shm::KeyIndex::find(segment_, key.lo, look);
    for (const Rival& rival : look.rivals()) {
      const JobRecord& job = store_.job(rival.slot);
      if (job.queue.get() == queue && rival.found.state() != kSlotActive)
        leavers.push_back({rival.slot, job.tenant.get(), charge(1, job.body_length()),
                           AccountMark(job.account.load()).counts()});
    }
  }
}

void UniqueKeys::ask_for_key(const NewAnnex& annex) {
  shm::KeyIndex::ask_for(segment_, annex.key_lo);
}

shm::KeyIndex::Glance UniqueKeys::ask_for_rival(const NewAnnex& annex) {
  const shm::KeyIndex::Glance seen = shm::KeyIndex::glance(segment_, annex.key_lo);
  if (seen.slot >= store_.slots()) [[likely]]
    return seen;
  const JobRecord& job = store_.job(seen.slot);
  for (const void* part :
       {static_cast<const void*>(&job.control), static_cast<const void*>(&job.created_at),
        static_cast<const void*>(&job.annex().key_hi)})
    __builtin_prefetch(part);
  return seen;
}

/// A new job is not stored, or another gave way to it.
void UniqueKeys::count_conflict(std::uint32_t queue) {
  store_.queue(queue).conflicts.fetch_add(1, Point::kCounterMoved);
}

/// Source: ojs-priority 9.3.
void UniqueKeys::raise_other(const NewAnnex& annex, std::uint32_t queue, std::uint8_t rank,
                             JobId other) {
  count_conflict(queue);
  if (!Uniqueness{annex.uniqueness}.raises() || store_.immutable_priorities()) return;
  std::uint8_t previous = 0;
  JobState found{};
  (void)reprioritize(other, rank, previous, found, true);
}

/// An imported job: one that has not ended needs its key as a new one does, and replaces none; one
/// that has ended only enters it.
Outcome UniqueKeys::claim_past_key(const NewAnnex& annex, bool waits, std::uint32_t slot) {
  const Uniqueness own{annex.uniqueness};
  NewAnnex milder = annex;
  milder.uniqueness = Uniqueness::make(waits ? own.states() : std::uint8_t{0}, OnConflict::kReject,
                                       false, own.period_ms())
                          .word;
  Rivals rivals;
  return claim_key(milder, slot, store_.now_ms(), rivals);
}

/// A dead letter that comes back needs its key as a new job does; this lane holds it. When both
/// this and an enqueue wait for each other, this one gives way.
Outcome UniqueKeys::reclaim_key(std::uint32_t slot, const JobRecord& job) {
  const Uniqueness own{job.annex().uniqueness.get()};
  const UniqueKey key = key_of(job.annex());
  const std::uint64_t now = store_.now_ms();
  if (own.end(job.created_at.get()) <= now) return Outcome::kOk;
  KeyLook look(store_, key,
               Uniqueness::make(own.states(), OnConflict::kReject, false, own.period_ms()), now,
               owner_);
  switch (slots_.keys().stand(key.lo, slot, look)) {
    case shm::KeyIndex::Insert::kDone: return Outcome::kOk;
    case shm::KeyIndex::Insert::kFull: return Outcome::kNoKeys;
    case shm::KeyIndex::Insert::kDuplicate:
    case shm::KeyIndex::Insert::kBusy: break;
  }
  if (look.waits()) return Outcome::kBusy;
  conflicts_.clash = look.clash();
  return Outcome::kClash;
}

// ---- a batch ------------------------------------------------------------------------------------

/// Has the keys of all jobs of a batch, in the order of the keys, so that no two lanes wait for
/// each other.
Outcome UniqueKeys::claim_keys(std::span<const NewJob> specs, std::span<const std::uint32_t> slots,
                               Rivals& rivals) {
  const std::uint64_t now = store_.now_ms();
  Short<std::size_t> order;
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (specs[i].unique()) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return key_of(*specs[i].annex); });
  for (const std::size_t i : order) {
    Rivals own;
    const Outcome outcome = claim_key(*specs[i].annex, slots[i], now, own);
    if (outcome != Outcome::kOk && outcome != Outcome::kMustReplace) {
      conflicts_.at = i;
      return outcome;
    }
    JobRecord& job = store_.job(slots[i]);
    for (Rival& rival : own) {
      if (&rival == &own.front()) rival.by = specs[i].queue;
      if (Uniqueness{specs[i].annex->uniqueness}.on_conflict() ==
              OnConflict::kReplaceExceptSchedule &&
          rival.found.state() == kSlotScheduled) {
        // Its time cannot change before it is ours: that would move it.
        job.due_at.set(store_.job(rival.slot).due_at.get());
        job.scheduled_at.set(store_.job(rival.slot).scheduled_at.get());
      }
    }
    rivals.insert(rivals.end(), own.begin(), own.end());
  }
  // Those at work last, for they cannot be given back to their workers.
  if (rivals.size() > 1)
    std::stable_partition(rivals.begin(), rivals.end(),
                          [](const Rival& rival) { return rival.found.state() != kSlotActive; });
  return Outcome::kOk;
}

// ---- rivals -------------------------------------------------------------------------------------

bool UniqueKeys::is_our_rival(std::uint32_t slot) const {
  const JobRecord& job = store_.job(slot);
  const Control control(job.control.load());
  return is_exclusive(control.state()) && control.owner() == owner_ &&
         (job.signals.load() & kRivalBits) != 0;
}

/// Takes them all, or some: false when one of them has moved on.
bool UniqueKeys::seize_rivals(std::span<Rival> rivals) {
  for (Rival& rival : rivals) {
    JobRecord& job = store_.job(rival.slot);
    const unsigned before = rival.found.state();
    // Names it for a repair until it names itself.
    LaneWord& named = self_.counters[kRivalNamed];
    named.set((std::uint64_t{rival.slot} + 1) << 8 | before, Point::kIntentSet);
    const Control held = rival.found.to(before == kSlotActive ? kSlotSettling : kSlotMoving,
                                        rival.found.ring(), owner_);
    const bool seized = job.control.cas_once(rival.found.word, held.word, Point::kRivalSeized);
    if (seized) {
      job.policy.set(job.flags().with_previous(before).word);
      job.signals.fetch_or(kRival, Point::kRivalMarked);
      if (before == kSlotAvailable && !store_.parked(job))
        count_backlog(store_.queue(job.queue.get()), ~0ULL);
    }
    named.set(0, Point::kIntentSet);
    if (!seized) return false;
  }
  return true;
}

/// The only one, whose time the new job does not take over: false when there is more to it, or it
/// has moved on.
bool UniqueKeys::seize_one_rival(const NewAnnex& annex, std::span<Rival> rivals) {
  const bool moves_time =
      rivals.front().found.state() == kSlotScheduled &&
      Uniqueness{annex.uniqueness}.on_conflict() == OnConflict::kReplaceExceptSchedule;
  return rivals.size() == 1 && !moves_time && seize_rivals(rivals);
}

/// The batch of their successors is committed: from here on they end.
void UniqueKeys::mark_replaced(std::uint32_t slot) {
  store_.job(slot).signals.fetch_or(kReplaced, Point::kRivalMarked);
}

/// Cancels a rival that is replaced, or gives it back. Also for a repair, any number of times.
void UniqueKeys::end_rival(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const Control held(job.control.load());
  const unsigned before = job.flags().previous();
  const bool at_work = held.state() == kSlotSettling;
  if ((job.signals.load() & kReplaced) != 0) {
    if (at_work)
      hold_on<Op::kSettle>(slot, before);
    else
      hold_on<Op::kMove>(slot, before);
    end_cancelled(slot, held, before);
    return;
  }
  if (at_work) {  // its worker has lost it already
    job.signals.fetch_and(~kRivalBits, Point::kRivalMarked);
    (void)set_back(slot, held.word, Setback::kRequeue, nullptr);
    return;
  }
  hold_on(Op::kMove, slot, before);
  job.signals.fetch_and(~kRivalBits, Point::kRivalMarked);
  job.policy.set(job.flags().with_previous(0).word);
  put_back(slot, job, held, before);
}

/// A rival that was seized and does not say so itself.
bool UniqueKeys::find_named_rival(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const std::uint64_t named = self_.counters[kRivalNamed].get();
  if (named >> 8 != std::uint64_t{slot} + 1 || Control(job.control.load()).state() != kSlotMoving)
    return false;
  job.policy.set(job.flags().with_previous(named & 15).word);
  job.signals.fetch_or(kRival, Point::kRivalMarked);
  return true;
}

}  // namespace ojs_shm::engine
