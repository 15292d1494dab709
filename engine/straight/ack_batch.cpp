// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/straight/straight_way.hpp"
#include "engine/tables/probes.hpp"

// Acks of several plain jobs of one queue, under one intent:
//
//   intent | each slot active -> settling | tally | commit
//   | each slot -> completed, its place in a batch
//
// A death before the commit is that of a holder at work; after it, the repair ends the slots that
// are left (Repairer::finish_acks). Jobs with options are acked one by one.

namespace ojs_shm::engine {

using shm::Point;

[[gnu::noinline, gnu::flatten]] void StraightAck::ack_batch(std::span<Ack> acks) {
  const std::uint64_t now = store_.now_ms();
  while (!acks.empty()) {
    std::size_t done = tellings_.on() ? 0 : ack_run(acks, now);
    if (done == 0) [[unlikely]] {
      Ack& first = acks.front();
      first.lost = ack_at(first.slot, first.word, {}, now) != Outcome::kOk;
      done = 1;
    }
    acks = acks.subspan(done);
  }
}

/// Of the first of these, as many as go together. Returns how many, with those that were lost.
OJS_SHM_INLINE std::size_t StraightAck::ack_run(std::span<Ack> acks, std::uint64_t now) {
  acks = acks.first(std::min<std::size_t>(acks.size(), kPlainBatch));
  const std::uint32_t q = store_.job(acks.front().slot).queue.get();
  set_current_queue(q);
  QueueTally& mine = *current_.tally;

  // 1. The slots, held; their words become those of settling ones.
  intend<Op::kAckBatch>(q, kNoIndex, mine);
  std::uint64_t signals = 0, started = 0;
  unsigned rank = 0, alike = 0;  // of the last ones, which are counted together
  std::size_t done = 0, lost = 0;
  for (Ack& ack : acks) {
    JobRecord& job = store_.job(ack.slot);
    // Read before it is ours: they have stood since its birth.
    if (job.queue.get() != q || (job.signals.load() & (kMember | kUnique)) != 0) [[unlikely]]
      break;
    ++done;
    const Control active(ack.word), settling = active.to(kSlotSettling, owner_);
    if (active.state() != kSlotActive ||
        !job.control.cas_once(active.word, settling.word, Point::kSlotSettling)) [[unlikely]] {
      ack.lost = true, ++lost;
      continue;
    }
    ack.word = settling.word;
    job.finished_at.set(now);
    signals |= job.signals.load();
    const std::uint64_t its_start = job.started_at.get();
    const unsigned its_rank = rank_of_ring(settling.ring());
    OJS_SHM_PROBE3(ack, ack.slot, q, now - its_start);
    if (its_start != started || its_rank != rank) {
      if (alike != 0) waits_.count_run(q, static_cast<std::uint8_t>(rank), now, started, alike);
      started = its_start, rank = its_rank, alike = 0;
    }
    ++alike;
  }
  acks = acks.first(done);
  if (alike != 0) waits_.count_run(q, static_cast<std::uint8_t>(rank), now, started, alike);
  if (limiting()) [[unlikely]] {
    for (const Ack& ack : acks)
      if (!ack.lost) finish_alone(q, ack.slot, Control(ack.word));
    intend_nothing();
    return done;
  }

  // 2. The tally, and the commit.
  mine.completed.set_ordered(mine.completed.get() + done - lost, Point::kCounterMoved);
  commit_batch(kWhole);

  // 3. The ends.
  Recorder::Several recorded(recorder_, kSlotSettling, kSlotCompleted, now);
  for (const Ack& ack : acks) {
    if (ack.lost) [[unlikely]]
      continue;
    JobRecord& job = store_.job(ack.slot);
    const Control settled = Control(ack.word).to(kSlotCompleted);
    intend_at_hand(ack.slot);
    recorded.note(ack.slot, job.generation.get());
    job.control.store(settled.word, Point::kSlotSettled);  // PAIR slot-settle
    slots_.list(ack.slot, settled);
  }
  intend_nothing();
  if ((signals & kWaited) != 0) [[unlikely]]
    for (const Ack& ack : acks)
      if (!ack.lost) bell_.ring_completion(ack.slot);
  return done;
}

/// One of several that are held, while there are limits.
[[gnu::noinline]] void StraightAck::finish_alone(std::uint32_t q, std::uint32_t slot,
                                                 Control settling) {
  QueueTally& mine = *current_.tally;
  intend<Op::kSettle>(q, slot, mine);
  mine.completed.set_ordered(mine.completed.get() + 1, Point::kCounterMoved);
  finish(slot, store_.job(slot), settling);
}

}  // namespace ojs_shm::engine
