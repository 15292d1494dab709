// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/slot_pool.hpp"

#include <algorithm>
#include <utility>

#include "engine/moves/report.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/unique/unique.hpp"
#include "engine/workflows/workflow_look.hpp"

namespace ojs_shm::engine {

/// Twice as many batches are looked through as such jobs fill, which keeps the ring as short as
/// twice what is there.
[[gnu::noinline]] bool SlotPool::drop(std::uint32_t slot, Control found) {
  if (!end(slot, found)) return false;
  if (++dropped_ % (shm::kCellsPerChunk / 2) == 0) compact();
  return true;
}

/// Calls with each slot that a batch lists and that is still as it was listed.
template <class Each>
void SlotPool::each_listed(std::uint32_t batch, Each each) const {
  for (const Word& cell : segment_.chunk(batch).cell) {
    const std::uint64_t word = cell.load();
    if (shm::is_empty(word)) break;
    const shm::Hint hint(word);
    if (hint.index() >= store_.slots()) continue;
    const Control found(store_.job(hint.index()).control.load());
    if (is_spent(found) && found.tag() == hint.tag()) each(hint.index(), found);
  }
}

/// Lists anew what is still there of the oldest batch, which a death in between puts back.
void SlotPool::compact() {
  const std::uint32_t batch = batches_.take(store_.header().finished_ring);
  if (batch == kNoIndex) return;
  each_listed(batch, [this](std::uint32_t slot, Control found) { list(slot, found); });
  batches_.drop(batch);
}

// ---- texts --------------------------------------------------------------------------------------

std::uint32_t SlotPool::write(std::uint32_t slot, std::uint32_t generation,
                              std::string_view bytes) {
  return write(shm::Blocks::word_of(slot, generation), bytes);
}

[[gnu::noinline]] std::uint32_t SlotPool::write(std::uint64_t word, std::string_view bytes) {
  for (;;) {
    const std::uint32_t block = texts_.write(word, bytes);
    if (block != kNoIndex || !drop_oldest_finished()) return block;
  }
}

// ---- finished jobs ------------------------------------------------------------------------------

/// Puts a finished slot where the oldest are used again first. When there is no chunk, the oldest
/// give theirs and their slots: what is not listed would be out of use for as long as other slots
/// are, and their results short-lived.
void SlotPool::list(std::uint32_t slot, Control settled) {
  if (filling_.batch == kNoIndex) [[unlikely]] {
    filling_.oldest_ms = store_.job(slot).finished_at.get();
    if (!go_on_filling(filling_.oldest_ms)) {
      filling_.batch = batches_.open();
      if (filling_.batch == kNoIndex && drop_oldest_batch()) filling_.batch = batches_.open();
      filling_.count = 0;
      filling_.began_ms = filling_.oldest_ms;
    }
    if (filling_.batch == kNoIndex) return;
    filling_.chunk = &segment_.chunk(filling_.batch);
  }
  shm::Batches::put(*filling_.chunk, filling_.count++, shm::Hint(slot, settled.tag()));
  if (filling_.count == shm::kCellsPerChunk) [[unlikely]]
    flush();
}

/// With a retention time a batch is published whenever its lane rests. While its first is young it
/// is filled further: a trickle of jobs would need a chunk for each, and results would go when
/// chunks are short. Results are kept by so much longer as one may be younger than the first of its
/// batch.
bool SlotPool::go_on_filling(std::uint64_t now) {
  const std::uint32_t filled = std::exchange(flushed_.count, 0);
  if (filled == 0 || now - filling_.began_ms > store_.header().retention_ms / 16 ||
      !batches_.reopen(flushed_.batch))
    return false;
  filling_.batch = flushed_.batch.index();
  filling_.count = filled;
  return true;
}

[[gnu::noinline]] void SlotPool::flush() {
  if (filling_.batch == kNoIndex) return;
  const std::uint32_t ring = store_.header().finished_ring;
  flushed_.batch =
      shm::Hint(filling_.batch, shm::ChunkControl(filling_.chunk->control.load()).incarnation());
  const bool listed =
      filling_.count != 0 && (batches_.close(filling_.batch, ring) ||
                              (drop_oldest_batch() && batches_.close(filling_.batch, ring)));
  if (!listed) batches_.drop(filling_.batch);
  flushed_.count =
      listed && filling_.count < shm::kCellsPerChunk && store_.header().retention_ms != 0
          ? filling_.count
          : 0;
  filling_.batch = kNoIndex;
  filling_.count = 0;
}

void SlotPool::rest() {
  if (store_.header().retention_ms != 0) flush();
}

/// Frees the finished slots that a batch of this lane lists.
[[gnu::noinline]] void SlotPool::drop_batch(std::uint32_t batch) {
  each_listed(batch, [this](std::uint32_t slot, Control found) { (void)end(slot, found); });
  batches_.drop(batch);
}

[[gnu::noinline]] bool SlotPool::drop_oldest_batch() {
  const std::uint32_t batch = batches_.take(store_.header().finished_ring);
  if (batch == kNoIndex) return false;
  drop_batch(batch);
  return true;
}

/// Makes room: the oldest batch, else whatever finished slot still has a text. False when there is
/// none.
bool SlotPool::drop_oldest_finished() {
  if (drop_oldest_batch()) return true;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    JobRecord& job = store_.job(slot);
    const Control found(job.control.load());
    if (!reusable(store_, job, found)) continue;
    if (job.body_block.get() == kNoIndex && job.result_block.get() == kNoIndex &&
        job.errors_block.get() == kNoIndex && !ReportWord(job.signals.load()).has_texts())
      continue;
    if (end(slot, found)) return true;
  }
  return false;
}

std::uint64_t SlotPool::drop_expired(std::uint64_t now) {
  const std::uint64_t retention = store_.header().retention_ms;
  if (retention == 0) return 0;
  for (std::uint32_t left = rings_.longest_search(); left > 0; --left) {
    const shm::Peeked front = rings_.peek(store_.header().finished_ring);
    if (front.empty()) return 0;
    if (!batch_lives(segment_, front.hint())) {  // a young batch may be behind it
      rings_.retire(front);
      continue;
    }
    std::uint64_t youngest = 0;
    each_listed(front.hint().index(), [&](std::uint32_t slot, Control) {
      youngest = std::max(youngest, store_.job(slot).finished_at.get());
    });
    if (youngest != 0 && youngest + retention > now) return youngest + retention;
    // That very one: what is the oldest by now may be young.
    const bool ours = batches_.reopen(front.hint());
    shm::Rings::retire(front);
    if (ours) drop_batch(front.hint().index());
  }
  return 0;
}

void SlotPool::close() {
  flush();
  if (draining_.batch != kNoIndex &&
      !batches_.close(draining_.batch, store_.header().finished_ring))
    batches_.drop(draining_.batch);
  draining_.batch = kNoIndex;
  hints_.flush();
  texts_.close();
}

// ---- after a death ------------------------------------------------------------------------------

void SlotPool::relist(std::uint32_t slot) {
  const JobRecord& job = store_.job(slot);
  const Control control(job.control.load());
  if (kept_for_workflow(store_, job)) return;
  if (is_finished(control.state()) && !job.flags().has(Policy::kDead) &&
      !is_minded(job, control.state()))
    list(slot, control);
}

}  // namespace ojs_shm::engine
