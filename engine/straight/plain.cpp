// SPDX-License-Identifier: Apache-2.0
#include "engine/straight/plain.hpp"

#include <array>

#include "engine/fetch/look.hpp"
#include "engine/straight/take.hpp"
#include "engine/tables/probes.hpp"

// The straight way of a plain job: enqueue, fetch, ack, read from top to bottom.
//
// A job is plain when it asks for nothing special: no id, limit or tenant of its own, due at
// once, never expiring, short enough for its slot. A queue is plain while the option bits of its
// word `flags` are zero, but for a bound: no ageing, weights, shards, tenants, pool's count, limit
// or pause. Enqueue and fetch test that word, an ack the `signals` of its job. What they meet that
// is not plain (a bound that is near, a level without a ring, a job that was given back, a pool
// that is used up) they leave alone and say kAside: then nothing has happened, and the caller takes
// the general way (enqueue.cpp, fetch.cpp), which does everything and knows every error.
//
// Both ways make the same writes in the same order under the same names, so a death on either
// leaves the same, and repairer.cpp need not know which it was:
//
//   enqueue  slot free -> filling | the record | intent | tallies | slot -> available | hint
//            of a unique job the entry of its key behind the record
//   fetch    look, look again | intent | slot available -> claimed | head | tallies
//            | slot -> active
//   ack      intent | slot active -> settling | tally | slot -> completed | its place in a batch
//
// Two switches belong to the segment and not to a queue: whether events are told, and whether there
// are limits. They are read where the general way reads them.

namespace ojs_shm::engine {

using shm::Point;

// ---- enqueue ------------------------------------------------------------------------------------

Straight StraightEnqueue::enqueue_plain(const PlainJob& spec, const JobForm& form, JobId& id) {
  Outcome outcome = Outcome::kOk;
  return put_straight<Put::kAlone>(spec, form, nullptr, id, outcome);
}

Straight StraightEnqueue::enqueue_under_bound(const PlainJob& spec, const JobForm& form,
                                              JobId& id) {
  Outcome outcome = Outcome::kOk;
  return put_straight<Put::kUnderBound>(spec, form, nullptr, id, outcome);
}

/// What keeps it out is told as the general way tells it.
Straight StraightEnqueue::enqueue_unique(const NewJob& spec, JobId& id, Outcome& outcome) {
  if (!spec.straight_but_unique() || limiting()) return Straight::kAside;
  const NewAnnex& annex = *spec.annex;
  ask_for_key(annex);
  return Uniqueness{annex.uniqueness}.replaces()
             ? replace_straight(PlainJob::of(spec), JobForm(spec), annex, id, outcome)
             : put_straight<Put::kUnderKey>(PlainJob::of(spec), JobForm(spec), &annex, id, outcome);
}

template <StraightEnqueue::Put kPut>
OJS_SHM_INLINE Straight StraightEnqueue::put_straight(const PlainJob& spec, const JobForm& form,
                                                      const NewAnnex* annex, JobId& id,
                                                      Outcome& outcome) {
  constexpr bool kKeyed = kPut == Put::kUnderKey, kBounds = kPut == Put::kUnderBound;
  constexpr std::uint64_t kOptions = kBounds ? kBounded : 0;
  set_current_queue(spec.queue);
  QueueRecord& queue = *current_.queue;
  QueueTally& mine = *current_.tally;
  const std::uint64_t flags = queue.flags.load();
  const unsigned number = normal_ring(spec.rank);
  const std::uint32_t ring = shm::Rings::find(queue.rings, number);
  const std::uint64_t size = spec.size();
  if (any_option(flags ^ kOptions) || ring == kNoIndex || size > store_.max_body()) [[unlikely]]
    return Straight::kAside;
  meet_nothing();
  if constexpr (kBounds)
    if (!admit_far(queue, mine, current_.number, flags, charge(1, size))) return Straight::kAside;

  // 1. A slot, filled in private: a death frees it.
  std::uint64_t filling = 0;
  const std::uint32_t slot = slots_.take(filling);
  if (slot == kNoIndex) [[unlikely]] {
    if constexpr (kBounds) give_room_back(size);
    return Straight::kAside;
  }
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  shm::KeyIndex::Glance seen;
  if constexpr (kKeyed) seen = ask_for_rival(*annex);
  fill<true>(spec, form, slot, job, now, id);
  if constexpr (kKeyed) {
    write_key(*annex, job);
    const bool others =
        seen.slot != kNoIndex || !slots_.keys().insert_alone(annex->key_lo, slot, seen);
    if (others) [[unlikely]] {
      const Straight end = claim_straight(*annex, spec.rank, slot, Control(filling), now, outcome);
      if (outcome != Outcome::kOk) return end;
    }
  }
  const std::uint32_t generation = job.generation.get();

  // 2. The counts and the publication, which a death undoes or finishes together.
  if constexpr (kBounds) {
    intend_further(Op::kEnqueue, current_.number, slot);
  } else {
    intend<Op::kEnqueue>(current_.number, slot, mine);
    mine.in.set_ordered(mine.in.get() + charge(1, size), Point::kTallyIn);
  }
  mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
  const Control published = Control(filling).to(kSlotAvailable, number, 0);
  intend_word(published);
  job.control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
  const shm::Hint hint(slot, published.tag());
  if (!rings_.push(ring, hint, &queue.rings, number) &&
      !hint_or_undo(mine, ring, slot, published, size)) [[unlikely]]
    return Straight::kAside;

  recorder_.note(slot, generation, kSlotFree, kSlotAvailable, now);

  // A bound that was set meanwhile has not seen our charge.
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();

  OJS_SHM_PROBE4(enqueue, id.hi, id.lo, current_.number, spec.rank);
  // 3. Listeners are told, and a sleeper is woken.
  if (tellings_.on()) [[unlikely]]
    tell_birth(current_.number, spec.rank, form, id, Control(filling));
  bell_.wake_one(queue, current_.number);
  return Straight::kDone;
}

/// By value, so that the usual way keeps none of it in memory.
[[gnu::noinline]] void StraightEnqueue::tell_birth(std::uint32_t queue, std::uint8_t rank,
                                                   const JobForm& form, JobId id, Control filling) {
  const Policy policy{static_cast<std::uint32_t>(form.policy >> 32)};
  tellings_.born({id.hi >> 16, 0, queue, policy.max_attempts(), rank, true}, id, filling);
}

/// Of a key that has other entries, and replaces none of their jobs. Kept out, nothing is stored.
[[gnu::noinline]] Straight StraightEnqueue::claim_straight(const NewAnnex& annex, std::uint8_t rank,
                                                           std::uint32_t slot, Control filling,
                                                           std::uint64_t now, Outcome& outcome) {
  Rivals none;
  outcome = claim_key_among(annex, slot, now, none);
  if (outcome == Outcome::kOk) return Straight::kDone;
  slots_.free(slot, filling);
  if (outcome == Outcome::kNoKeys) return Straight::kAside;
  if (outcome == Outcome::kClash) raise_other(annex, current_.number, rank, conflicts_.clash.id);
  return Straight::kDone;
}

// ---- fetch --------------------------------------------------------------------------------------

Straight StraightFetch::fetch_plain(std::uint32_t q, std::uint32_t lease_ms, bool lease_owned,
                                    Fetched& out) {
  set_current_queue(q);
  QueueRecord& queue = *current_.queue;
  QueueTally& mine = *current_.tally;
  PlainLook& seen = plain_look_;
  for (unsigned looks = 0; looks < kPlainLooks; ++looks) {
    if (const std::uint64_t flags = queue.flags.load(); flags != seen.flags) [[unlikely]] {
      if (any_but_bound(flags)) return Straight::kAside;
      seen.forget(flags);
    }
    if (worker_limit() != kNoIndex) [[unlikely]]
      return Straight::kAside;
    const PlainLook::Sight sight = seen.find(queue, rings_);
    if (sight == PlainLook::Sight::kHint) [[likely]] {
      const PlainLook::Known& found = seen.rings[seen.at];
      const shm::Hint hint = found.head.hint();
      if (!hint.plain() || found.number % 2 == 0) [[unlikely]]
        return Straight::kAside;
      prefetch<kLinesTaken>(store_.job(hint.index()));
    } else if (sight == PlainLook::Sight::kTooMany) {
      return Straight::kAside;
    }
    if (!seen.stands(queue, sight)) [[unlikely]]
      continue;
    if (sight != PlainLook::Sight::kHint) return found_nothing(queue, q);

    // 3. The claim. It fails when the hint is dead: for ever, so head moves on by itself.
    PlainLook::Known& found = seen.rings[seen.at];
    const shm::Hint hint = found.head.hint();
    if (hint.index() >= store_.slots()) [[unlikely]]
      return Straight::kAside;
    JobRecord& job = store_.job(hint.index());
    intend<Op::kFetch>(q, hint.index(), mine);
    const Control available(kSlotAvailable, found.number, 0, hint.tag());
    const Control claimed = available.to(kSlotClaimed, owner_);
    const bool ours = job.control.cas_once(available.word, claimed.word,
                                           Point::kSlotClaimed);  // PAIR slot-publish
    shm::Rings::retire(found.head);
    prefetch_behind(found.head);
    shm::Rings::step(found.head);
    if (!ours) [[unlikely]] {
      intend_nothing();
      continue;
    }
    const std::uint64_t now = store_.now_ms();
    count_backlog(queue, ~0ULL);
    const std::uint64_t expires = job.expires_at.get();
    if ((expires != 0 && expires <= now) || limiting()) [[unlikely]]
      if (const Outcome end = end_of_claim(q, hint.index(), claimed, now); end != Outcome::kOk) {
        if (end == Outcome::kEmpty) return Straight::kEmpty;
        continue;
      }

    // 4. The record, then the control word that makes the job active.
    intend_attempt(job.attempt.get());
    out.slot = hint.index();
    out.queue = q;
    take(job, claimed, mine, lease_ms, lease_owned, now, out);
    found.served = true;
    if (seen.at > kFewPassed || ++seen.fetches == kTidyEach) [[unlikely]]
      tidy_passed(queue, seen.at > kFewPassed);
    after_dispatch();
    return Straight::kDone;
  }
  return Straight::kAside;
}

/// Closes rings that were open but empty: all when there were many, else those that have had no job
/// since the last time.
[[gnu::noinline]] void StraightFetch::tidy_passed(QueueRecord& queue, bool all) {
  PlainLook& seen = plain_look_;
  seen.fetches = 0;
  for (unsigned i = 0; i < seen.at; ++i) {
    PlainLook::Known& passed = seen.rings[i];
    if (!passed.served || all)
      shm::Rings::close(queue.rings, passed.number, *passed.head.cell, passed.head.value);
    passed.served = false;
  }
}

Straight StraightFetch::found_nothing(QueueRecord& queue, std::uint32_t q) {
  slots_.rest_after(100);
  if ((queue.attention.load() & Attention::kWarned) != 0) [[unlikely]]
    look_for_calm(queue, q);
  return Straight::kEmpty;
}

/// Of a job that was claimed after its time, or while there are limits: kOk when it may begin.
[[gnu::noinline]] Outcome StraightFetch::end_of_claim(std::uint32_t q, std::uint32_t slot,
                                                      Control claimed, std::uint64_t now) {
  JobRecord& job = store_.job(slot);
  if (const std::uint64_t expires = job.expires_at.get(); expires != 0 && expires <= now) {
    end_expired(slot, job, hold_claimed(slot, claimed), now);
    return Outcome::kLost;
  }
  if (!limiting()) return Outcome::kOk;
  switch (pass_limits(q, slot, job, claimed, now)) {
    case Passage::kGateClosed: return Outcome::kEmpty;
    case Passage::kHeldBack: return Outcome::kLost;
    case Passage::kPasses: break;
  }
  return Outcome::kOk;
}

// ---- ack ----------------------------------------------------------------------------------------

Outcome StraightAck::ack_at(std::uint32_t slot, std::uint64_t& word, std::string_view result,
                            std::uint64_t now) {
  JobRecord& job = store_.job(slot);
  const Control active(word);
  const std::uint32_t q = job.queue.get();
  set_current_queue(q);
  QueueTally& mine = *current_.tally;
  intend<Op::kSettle>(q, slot, mine);
  const Control held = active.to(kSlotSettling, owner_);
  if (active.state() != kSlotActive || !job.control.cas_once(word, held.word, Point::kSlotSettling))
      [[unlikely]] {
    intend_nothing();
    return Outcome::kLost;
  }
  if (!result.empty() && !keep_result(slot, word, result)) [[unlikely]]
    return Outcome::kNoBlocks;
  job.finished_at.set(now);
  mine.completed.set_ordered(mine.completed.get() + 1, Point::kCounterMoved);
  // not its id, which lies in a line that an ack does not touch
  OJS_SHM_PROBE3(ack, slot, q, now - job.started_at.get());
  waits_.count_run(q, rank_of_ring(active.ring()), now, job.started_at.get());
  finish(slot, job, held);
  return Outcome::kOk;
}

[[gnu::flatten]] Outcome StraightAck::ack(std::uint32_t slot, std::uint64_t& word,
                                          std::string_view result) {
  if (result.size() > store_.max_body()) [[unlikely]]
    return Outcome::kTooLarge;
  return ack_at(slot, word, result, store_.now_ms());
}

}  // namespace ojs_shm::engine
