// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "engine/probes.hpp"
#include "engine/straight_way.hpp"

// A batch of plain jobs (plain.cpp says what those are), by the protocol of batch.cpp and without
// its lists: all slots are filled, one store of the lane's intent commits them, and then they are
// published in order. The tallies are charged once, the clock is read once, and lanes are woken until
// no more sleeps.

namespace ojs_shm::engine {

using shm::Point;

/// One of a batch that is committed.
OJS_SHM_INLINE void StraightWay::publish_straight(QueueRecord& queue, std::uint32_t slot,
                                                  Control filling, std::uint64_t now,
                                                  shm::Rings::PushRun& run) {
  const unsigned number = filling.ring();
  const Control published = filling.to(kSlotAvailable, number, 0);
  JobRecord& job = store_.job(slot);
  recorder_.note(slot, job.generation.get(), kSlotFree, kSlotAvailable, now);
  job.control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
  const shm::Hint hint(slot, published.tag());
  const std::uint32_t ring = shm::Rings::find(queue.rings, number);
  if (!rings_.push_next(run, ring, hint, &queue.rings, number) &&
      !push_hint(queue.rings, ring, slot, published)) [[unlikely]]
    announce_lost_hint();
}

/// `each` calls back with the job of that place and its form.
template <class Each>
OJS_SHM_INLINE Straight StraightWay::put_batch_straight(std::uint32_t q, std::size_t count,
                                                        Each&& each, std::span<JobId> ids) {
  if (count > kPlainBatch || count == 0 || tellings_.on()) return Straight::kAside;
  come_near(q);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  const std::uint64_t flags = queue.flags.load();
  if (any_option(flags)) [[unlikely]]
    return Straight::kAside;
  meet_nothing();
  std::uint64_t cost = 0;
  bool straight = true;
  for (std::size_t i = 0; i < count; ++i)
    each(i, [&](const PlainJob& spec, const JobForm&) {
      const std::uint64_t size = spec.size();
      straight = straight && size <= kInlineBytes && size <= store_.max_body() &&
                 shm::Rings::find(queue.rings, normal_ring(spec.rank)) != kNoIndex;
      cost += charge(1, size);
    });
  if (!straight) [[unlikely]]
    return Straight::kAside;

  // 1. The slots, filled in private. Until the commit a death frees them.
  intend<Op::kBatch>(near_.number, kNoIndex, mine);
  const std::uint64_t now = store_.now_ms();
  std::array<std::uint32_t, kPlainBatch> slots;
  std::array<std::uint64_t, kPlainBatch> words;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t filling = 0;
    slots[i] = slots_.take(filling);
    if (slots[i] == kNoIndex) [[unlikely]] {
      while (i-- > 0) slots_.free(slots[i], Control(words[i]));
      intend_nothing();
      return Straight::kAside;
    }
    JobRecord& job = store_.job(slots[i]);
    each(i, [&](const PlainJob& spec, const JobForm& form) {
      fill<true>(spec, form, slots[i], job, now, ids[i]);
      words[i] = Control(filling).to(kSlotFilling, normal_ring(spec.rank), owner_).word;
    });
    // NO CRASH POINT: the slot is held exclusively
    job.signals.store(place_in_batch(i), Point::kNone);
    job.control.store(words[i], Point::kSlotFilling);
  }

  // 2. The counts, and the commit.
  mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
  mine.enqueued.set_ordered(mine.enqueued.get() + count, Point::kCounterMoved);
  commit_batch(kWhole);

  // 3. The publication, in order; a death leaves the rest to the repair (finish_batch).
  PushRuns runs;
  for (std::size_t i = 0; i < count; ++i) {
    const Control filling(words[i]);
    publish_straight(queue, slots[i], filling, now,
                     runs[rank_of_ring(filling.ring()) % runs.size()]);
    OJS_SHM_PROBE4(enqueue, ids[i].hi, ids[i].lo, near_.number, rank_of_ring(filling.ring()));
  }
  for (shm::Rings::PushRun& run : runs) rings_.end_run(run);
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  for (std::size_t i = 0; i < count && bell_.wake_one(queue, q); ++i) {}
  return Straight::kDone;
}

Straight StraightWay::enqueue_batch_plain(std::span<const NewJob> specs, std::span<JobId> ids) {
  if (specs.empty() || !std::ranges::all_of(specs, &NewJob::straight)) return Straight::kAside;
  return put_batch_straight(
      specs.front().queue, specs.size(),
      [&](std::size_t i, auto&& use) { use(PlainJob::of(specs[i]), JobForm(specs[i])); }, ids);
}

Straight StraightWay::enqueue_batch_plain(std::span<const FormedJob> jobs, std::span<JobId> ids) {
  if (jobs.empty()) return Straight::kAside;
  return put_batch_straight(
      jobs.front().job.queue, jobs.size(),
      [&](std::size_t i, auto&& use) { use(jobs[i].job, jobs[i].form); }, ids);
}

Straight StraightWay::enqueue_batch_plain(const PlainJob& kind, const JobForm& form,
                                          std::span<const ArgsAndRank> jobs, std::span<JobId> ids) {
  return put_batch_straight(
      kind.queue, jobs.size(),
      [&](std::size_t i, auto&& use) {
        use(PlainJob{kind.type, jobs[i].args, {}, kind.queue, jobs[i].rank}, form);
      },
      ids);
}

// ---- a replacement ------------------------------------------------------------------------------

/// A batch of one, whose commit decides over the job that has its key as well (unique.cpp).
Straight StraightWay::replace_straight(const PlainJob& spec, const JobForm& form,
                                       const NewAnnex& annex, JobId& id, Outcome& outcome) {
  come_near(spec.queue);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  const std::uint64_t flags = queue.flags.load();
  const unsigned number = normal_ring(spec.rank);
  const std::uint64_t size = spec.size();
  if (any_option(flags) || tellings_.on() || size > store_.max_body() ||
      shm::Rings::find(queue.rings, number) == kNoIndex) [[unlikely]]
    return Straight::kAside;
  meet_nothing();

  // 1. The slot, filled in private. Until the commit a death frees it.
  intend<Op::kBatch>(near_.number, kNoIndex, mine);
  std::uint64_t taken = 0;
  const std::uint32_t slot = slots_.take(taken);
  if (slot == kNoIndex) [[unlikely]] {
    intend_nothing();
    return Straight::kAside;
  }
  const shm::KeyIndex::Glance seen = ask_for_rival(annex);
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  fill<true>(spec, form, slot, job, now, id);
  write_key(annex, job);
  const Control filling = Control(taken).to(kSlotFilling, number, owner_);
  job.control.store(filling.word, Point::kSlotFilling);

  // 2. The key, and the job that has it.
  Rivals rivals;
  const bool others =
      seen.slot != kNoIndex || !slots_.keys().insert_alone(annex.key_lo, slot, seen);
  outcome = others ? claim_key_among(annex, slot, now, rivals) : Outcome::kOk;
  const bool met = outcome == Outcome::kMustReplace;
  if (met) outcome = seize_one_rival(annex, rivals) ? Outcome::kOk : Outcome::kRivalMoved;
  if (outcome != Outcome::kOk) [[unlikely]] {
    slots_.free(slot, filling);
    intend_nothing();
    return outcome == Outcome::kBusy ? Straight::kDone : Straight::kAside;
  }

  // 3. The counts, the commit, and what follows from it.
  mine.in.set_ordered(mine.in.get() + charge(1, size), Point::kTallyIn);
  mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
  commit_batch(kWhole);
  shm::Rings::PushRun run;
  publish_straight(queue, slot, filling, now, run);
  rings_.end_run(run);
  OJS_SHM_PROBE4(enqueue, id.hi, id.lo, near_.number, spec.rank);
  if (met) mark_replaced(rivals.front().slot);
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  if (met) {
    end_rival(rivals.front().slot);
    queue.conflicts.fetch_add(1, Point::kCounterMoved);
  }
  bell_.wake_one(queue, near_.number);
  return Straight::kDone;
}

}  // namespace ojs_shm::engine
