// SPDX-License-Identifier: Apache-2.0
#include "engine/straight/fetch_batch.hpp"

#include "engine/tables/probes.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Picks the best that wait, so many at most. False: there is nothing, or nothing that goes this
/// way.
bool StraightFetch::pick(QueueRecord& queue, unsigned most, Picked& picked,
                         PlainLook::Sight& sight) {
  PlainLook& seen = plain_look_;
  for (unsigned looks = 0; looks < kPlainLooks; ++looks) {
    if (const std::uint64_t flags = queue.flags.load(); flags != seen.flags) [[unlikely]] {
      if (any_but_bound(flags)) return false;
      seen.forget(flags);
    }
    sight = seen.sweep(queue, rings_, store_, most, picked);
    if (sight == PlainLook::Sight::kTooMany) return false;
    if (seen.still_stands(queue, sight)) [[likely]]
      return picked.count != 0;
  }
  return false;
}

/// Claims the best that wait; the words become those of claimed slots.
[[gnu::noinline, gnu::flatten]] bool StraightFetch::claim_best(std::uint32_t q, unsigned most,
                                                               Picked& jobs) {
  set_current_queue(q);
  QueueRecord& queue = *current_.queue;
  if (tellings_.on() || worker_limit() != kNoIndex) [[unlikely]]
    return false;
  for (PlainLook::Sight sight; pick(queue, most, jobs, sight);) {
    intend<Op::kFetchBatch>(q, kNoIndex, *current_.tally);
    Picked::One* to = jobs.all.data();
    const std::uint32_t owner = owner_;
    for (Picked::One& one : std::span(jobs.all).first(jobs.count)) {
      const Control held = Control(one.word).to(kSlotClaimed, owner);
      // It fails when the hint is dead: for ever, so head moves on by itself.
      if (!one.job->control.cas_once(one.word, held.word,
                                     Point::kSlotClaimed)) [[unlikely]]  // PAIR slot-publish
        continue;
      one.word = held.word;
      if (to != &one) [[unlikely]]
        *to = one;
      ++to;
    }
    const auto claimed = static_cast<unsigned>(to - jobs.all.data());
    const unsigned empty = plain_look_.pass_picked(sight);
    jobs.count = claimed;
    if (claimed != 0) [[likely]] {
      count_backlog(queue, 0 - std::uint64_t{claimed});
      plain_look_.fetches += claimed;
      if (empty > kFewPassed || plain_look_.fetches >= kTidyEach) [[unlikely]]
        tidy_passed(queue, empty > kFewPassed);
      return true;
    }
    intend_nothing();
  }
  return false;
}

/// The tallies, the commit, and the words that make the jobs active, which stand in `jobs`.
[[gnu::noinline, gnu::flatten]] void StraightFetch::begin_all(const Picked& jobs,
                                                              std::uint64_t cost,
                                                              std::uint64_t shortest_lease_ms,
                                                              std::uint64_t now) {
  const std::uint32_t q = current_.number;
  QueueTally& mine = *current_.tally;
  mine.out.set_ordered(mine.out.get() + cost, Point::kTallyOut);
  mine.dispatched.set_ordered(mine.dispatched.get() + jobs.count, Point::kCounterMoved);
  commit_batch(kWhole);
  Recorder::Several recorded(recorder_, kSlotAvailable, kSlotActive, now);
  std::uint64_t created = 0, available = 0;  // of the last ones, which are counted together
  unsigned rank = 0, alike = 0;
  const auto count = [&] {
    if (alike != 0)
      waits_.count(q, static_cast<std::uint8_t>(rank), now, created, available, alike);
  };
  for (const Picked::One& one : std::span(jobs.all).first(jobs.count)) {
    JobRecord& job = *one.job;
    const Control active(one.word);
    const std::uint16_t attempt = job.attempt.get();
    intend_at_hand(one.slot, attempt);
    job.attempt.set(static_cast<std::uint16_t>(attempt + 1));
    const std::uint64_t its_creation = job.created_at.get(), since = job.available_at.get();
    const unsigned its_rank = rank_of_ring(active.ring());
    if (its_creation != created || since != available || its_rank != rank) {
      count();
      created = its_creation, available = since, rank = its_rank, alike = 0;
    }
    ++alike;
    OJS_SHM_PROBE6(fetch, job.id_hi.get(), job.id_lo.get(), q, rank, now - std::min(now, since),
                   one.slot);
    recorded.note(one.slot, job.generation.get());
    job.control.store(active.word, Point::kSlotActive);  // PAIR slot-active
  }
  intend_nothing();
  count();
  taken_ += jobs.count;
  note_lease(shortest_lease_ms, now);
  if (current_.queue->attention.load() != 0) [[unlikely]]
    room_made(*current_.queue, q);
  after_dispatch();
}

}  // namespace ojs_shm::engine
