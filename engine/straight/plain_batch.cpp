// SPDX-License-Identifier: Apache-2.0
#include "engine/straight/plain_batch.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// One of a batch that is committed, or all of it.
OJS_SHM_INLINE void StraightEnqueue::publish_filled(const Filled& one, shm::RingSet& rings,
                                                    shm::Rings::PushRun& run) {
  const Control published = Control(one.word).to(kSlotAvailable);
  one.job->control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
  if (!rings_.push_next(run, one.ring, shm::Hint(one.slot, published.tag()), &rings, one.number) &&
      !push_hint(rings, one.ring, one.slot, published)) [[unlikely]]
    announce_lost_hint();
}

// Not inlined, as its like in fetch_batch.cpp and ack_batch.cpp: what its caller has in registers
// would crowd its loop.
/// Those of a batch that is committed.
[[gnu::noinline, gnu::flatten]] void StraightEnqueue::publish_all(std::span<const Filled> batch,
                                                                  std::uint64_t now) {
  shm::RingSet& rings = current_.queue->rings;
  std::array<shm::Rings::PushRun, 8> runs;  // by level
  Recorder::Several recorded(recorder_, kSlotFree, kSlotAvailable, now);
  for (const Filled& one : batch) {
    recorded.note(one.slot, one.job->generation.get());
    publish_filled(one, rings, runs[rank_of_ring(one.number) % runs.size()]);
  }
  for (shm::Rings::PushRun& run : runs) rings_.end_run(run);
}

namespace {

struct GivenJobs {
  std::span<const NewJob> jobs;
  std::span<JobId> ids;
  std::uint32_t rank(std::size_t i) const {
    return jobs[i].straight() && jobs[i].queue == jobs.front().queue ? jobs[i].rank : kNoIndex;
  }
  PlainJob job(std::size_t i) const { return PlainJob::of(jobs[i]); }
  JobForm form(std::size_t i) const { return JobForm(jobs[i]); }
  void made(std::size_t i, JobId id) const { ids[i] = id; }
};

}  // namespace

Straight StraightEnqueue::enqueue_batch_plain(std::span<const NewJob> jobs, std::span<JobId> ids) {
  GivenJobs given{jobs, ids};
  return enqueue_batch_plain(jobs.front().queue, jobs.size(), given);
}

// ---- a replacement ------------------------------------------------------------------------------

/// A batch of one, whose commit decides over the job that has its key as well (unique.cpp).
Straight StraightEnqueue::replace_straight(const PlainJob& spec, const JobForm& form,
                                           const NewAnnex& annex, JobId& id, Outcome& outcome) {
  set_current_queue(spec.queue);
  QueueRecord& queue = *current_.queue;
  QueueTally& mine = *current_.tally;
  const std::uint64_t flags = queue.flags.load();
  const unsigned number = normal_ring(spec.rank);
  const std::uint64_t size = spec.size();
  if (any_option(flags) || tellings_.on() || size > store_.max_body() ||
      shm::Rings::find(queue.rings, number) == kNoIndex) [[unlikely]]
    return Straight::kAside;
  meet_nothing();

  // 1. The slot, filled in private. Until the commit a death frees it.
  intend<Op::kBatch>(current_.number, kNoIndex, mine);
  Control filling;
  const std::uint32_t slot = slots_.take(filling.word, number);
  if (slot == kNoIndex) [[unlikely]] {
    intend_nothing();
    return Straight::kAside;
  }
  const shm::KeyIndex::Glance seen = ask_for_rival(annex);
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  fill<true>(spec, form, slot, job, now, id);
  write_key(annex, job);

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
  const Filled one{&job, filling.word, slot, shm::Rings::find(queue.rings, number), number};
  shm::Rings::PushRun run;
  recorder_.note(slot, job.generation.get(), kSlotFree, kSlotAvailable, now);
  publish_filled(one, queue.rings, run);
  rings_.end_run(run);
  OJS_SHM_PROBE4(enqueue, id.hi, id.lo, current_.number, spec.rank);
  if (met) mark_replaced(rivals.front().slot);
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  if (met) {
    end_rival(rivals.front().slot);
    queue.conflicts.fetch_add(1, Point::kCounterMoved);
  }
  bell_.wake_one(queue, current_.number);
  return Straight::kDone;
}

}  // namespace ojs_shm::engine
