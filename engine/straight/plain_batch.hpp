// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "engine/straight/straight_way.hpp"
#include "engine/tables/probes.hpp"

// A batch of plain jobs (plain.cpp says what those are), by the protocol of batch.cpp and without
// its lists: all slots are filled, one store of the lane's intent commits them, and then they are
// published in order. The tallies are charged once, the clock is read once, and lanes are woken
// until no more sleeps.

namespace ojs_shm::engine {

/// Jobs has for each place `rank(i)`, kNoIndex when that job goes another way, `job(i)` and
/// `form(i)`, and is told `made(i, id)`; after kAside that means nothing.
template <class Jobs>
Straight StraightEnqueue::enqueue_batch_plain(std::uint32_t q, std::size_t count, Jobs& jobs) {
  if (count > kPlainBatch || count == 0 || tellings_.on()) return Straight::kAside;
  set_current_queue(q);
  QueueRecord& queue = *current_.queue;
  QueueTally& mine = *current_.tally;
  const std::uint64_t flags = queue.flags.load();
  if (any_option(flags)) [[unlikely]]
    return Straight::kAside;
  meet_nothing();
  std::array<Filled, kPlainBatch> all;
  const std::uint64_t most = std::min<std::uint64_t>(kInlineBytes, store_.max_body());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t rank = jobs.rank(i);
    if (rank == kNoIndex) [[unlikely]]
      return Straight::kAside;
    const std::uint64_t size = jobs.job(i).size();
    all[i].number = normal_ring(rank);
    all[i].ring = shm::Rings::find(queue.rings, all[i].number);
    if (size > most || all[i].ring == kNoIndex) [[unlikely]]
      return Straight::kAside;
    bytes += size;
  }

  // 1. The slots, filled in private. Until the commit a death frees them.
  intend<Op::kBatch>(q, kNoIndex, mine);
  const std::uint64_t now = store_.now_ms();
  for (std::size_t i = 0; i < count; ++i) {
    Filled& one = all[i];
    one.slot = slots_.take(one.word, one.number);
    if (one.slot == kNoIndex) [[unlikely]] {
      while (i-- > 0) slots_.free(all[i].slot, Control(all[i].word));
      intend_nothing();
      return Straight::kAside;
    }
    one.job = &store_.job(one.slot);
    JobId id;
    fill<true>(jobs.job(i), jobs.form(i), one.slot, *one.job, now, id, place_in_batch(i));
    jobs.made(i, id);
    OJS_SHM_PROBE4(enqueue, id.hi, id.lo, q, rank_of_ring(one.number));
  }

  // 2. The counts, and the commit.
  mine.in.set_ordered(mine.in.get() + charge(count, bytes), shm::Point::kTallyIn);
  mine.enqueued.set_ordered(mine.enqueued.get() + count, shm::Point::kCounterMoved);
  commit_batch(kWhole);

  // 3. The publication, in order; a death leaves the rest to the repair (finish_batch).
  publish_all({all.data(), count}, now);
  if (const std::uint64_t now_flags = queue.flags.load_seq_cst(); now_flags != flags) [[unlikely]]
    settings_moved(queue, flags, now_flags);
  intend_nothing();
  for (std::size_t i = 0; i < count && bell_.wake_one(queue, q); ++i) {}
  return Straight::kDone;
}

}  // namespace ojs_shm::engine
