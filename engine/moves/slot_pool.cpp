// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/slot_pool.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/moves/report.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/patience.hpp"
#include "engine/tables/prefetch.hpp"
#include "engine/unique/unique.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

SlotPool::SlotPool(const Store& store, shm::Rings& rings, std::uint32_t lane)
    : store_(store),
      segment_(store.segment()),
      rings_(rings),
      batches_(rings),
      owner_(lane + 1),
      hints_(segment_.slot_map(), segment_.geometry().slots, lane * 31),
      keys_(segment_),
      texts_(store, lane) {}

// ---- a new job ----------------------------------------------------------------------------------

/// Moves a free or finished slot into this lane's hands.
bool SlotPool::seize(std::uint32_t slot, JobRecord& job, Control found, std::uint64_t& filling,
                     unsigned ring) {
  const Control last = found.tag() > shm::kLastFirstTag ? Control() : found;  // fences never fall
  const Control held = last.to(kSlotFilling, ring, owner_);
  if (!job.control.cas_once(found.word, held.word, Point::kSlotFilling)) return false;
  filling = held.word;
  if (found.state() != kSlotFree) recycle(slot, job);
  return true;
}

/// Ends the former life of a finished slot.
void SlotPool::recycle(std::uint32_t slot, JobRecord& job) {
  if (job.has_texts()) [[unlikely]]
    texts_.free_all(slot, job);
  if (job.flags().has(Policy::kForeignId)) [[unlikely]]
    forget_id(slot, job);
  if (const std::uint64_t signals = job.signals.load();
      (signals & (kUnique | ReportWord::kTexts)) != 0) [[unlikely]]
    forget_more(slot, job, signals);
}

/// The unique key, and the texts of the last report.
[[gnu::noinline]] void SlotPool::forget_more(std::uint32_t slot, JobRecord& job,
                                             std::uint64_t signals) {
  if ((signals & kUnique) != 0) {
    keys_.remove(job.annex().key_lo.get(), slot);
    ask_for_next_key();
  }
  texts_.free_report(slot, job, signals);
}

/// Of the slot that is used again next, whose job probably has a key as well: its line of the index
/// comes from far.
void SlotPool::ask_for_next_key() const {
  if (draining_.batch == kNoIndex || draining_.done == shm::kCellsPerChunk) return;
  // relaxed: for prefetching only
  const JobRecord& next =
      store_.job(shm::Hint(draining_.chunk->cell[draining_.done].load_relaxed()).index());
  if (is_unique(next)) shm::KeyIndex::ask_for(segment_, next.annex().key_lo.get());
}

[[gnu::noinline]] void SlotPool::forget_id(std::uint32_t slot, const JobRecord& job) {
  keys_.remove(hash_id(job.id()), slot);
}

std::uint32_t SlotPool::take(std::uint64_t& filling, unsigned ring) {
  constexpr unsigned kSlotsAhead = 4;  // slots whose memory is asked for before it is needed
  // 1. A slot that was never used.
  for (std::uint32_t i = hints_.take(); i != kNoIndex; i = hints_.take()) {
    prefetch<kLinesFilled>(store_.job(i + kSlotsAhead));  // hints come in the order of slots
    JobRecord& job = store_.job(i);
    const Control found(job.control.load());
    if (found.state() == kSlotFree && seize(i, job, found, filling, ring)) [[likely]]
      return i;
  }
  // 2. The slot that has been finished for the longest time.
  for (;;) {
    if (draining_.batch == kNoIndex) [[unlikely]] {
      draining_.batch = batches_.take(store_.header().finished_ring);
      draining_.done = 0;
      if (draining_.batch == kNoIndex) break;
      draining_.chunk = &segment_.chunk(draining_.batch);
      draining_.behind = &segment_.chunk(rings_.peek(store_.header().finished_ring).hint().index());
      shm::prefetch_for_write(&draining_.behind->cell);
    }
    const shm::Chunk& batch = *draining_.chunk;
    while (draining_.done < shm::kCellsPerChunk) [[likely]] {
        const unsigned ahead = draining_.done + kSlotsAhead;
        const Word& cell = ahead < shm::kCellsPerChunk
                               ? batch.cell[ahead]
                               : draining_.behind->cell[ahead - shm::kCellsPerChunk];
        // relaxed: for prefetching only
        prefetch<kLinesFilled>(store_.job(shm::Hint(cell.load_relaxed()).index()));
        const std::uint64_t word = batch.cell[draining_.done++].load();
        if (shm::is_empty(word)) [[unlikely]]
          break;
        const shm::Hint hint(word);
        if (hint.index() >= store_.slots()) [[unlikely]]
          continue;
        JobRecord& job = store_.job(hint.index());
        const Control found(job.control.load());
        if (is_spent(found) && found.tag() == hint.tag() &&
            seize(hint.index(), job, found, filling, ring)) [[likely]]
          return hint.index();
      }
    batches_.drop(draining_.batch);
    draining_.batch = kNoIndex;
  }
  return scan(filling, ring);
}

/// The hints are gone: asks every slot. Free ones first, then finished ones, dead letters last.
[[gnu::noinline]] std::uint32_t SlotPool::scan(std::uint64_t& filling, unsigned ring) {
  std::uint32_t best = kNoIndex;
  Control best_control;
  std::uint64_t best_age = ~0ULL;
  for (std::uint32_t i = 0; i < store_.slots(); ++i) {
    const JobRecord& job = store_.job(i);
    const Control found(job.control.load());
    if (found.state() == kSlotFree) {
      if (seize(i, store_.job(i), found, filling, ring)) return i;
      continue;
    }
    if (!reusable(store_, job, found)) continue;
    const std::uint64_t age =
        job.finished_at.get() +
        (job.flags().has(Policy::kDead) || is_minded(job, found.state()) ? 1ULL << 62 : 0);
    if (age < best_age) best = i, best_age = age, best_control = found;
  }
  if (best == kNoIndex) return kNoIndex;
  return seize(best, store_.job(best), best_control, filling, ring) ? best : scan(filling, ring);
}

[[gnu::noinline]] void SlotPool::free(std::uint32_t slot, Control held) {
  JobRecord& job = store_.job(slot);
  texts_.free_all(slot, job);
  if (job.flags().has(Policy::kForeignId)) forget_id(slot, job);
  forget_more(slot, job, job.signals.load());
  // NO CRASH POINT: the slot is held exclusively
  job.signals.store(0, Point::kNone);
  job.policy.set(0);
  job.generation.set(job.generation.get() + 1);
  job.control.store(held.to(kSlotFree, 0, 0).word, Point::kSlotFreed);
  hints_.give(slot);
}

bool SlotPool::end(std::uint32_t slot, Control found) {
  std::uint64_t held = 0;
  if (!seize(slot, store_.job(slot), found, held)) return false;
  free(slot, Control(held));
  return true;
}

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

/// Of several that bring it at once one gets in. kDuplicate also when another is in the middle of
/// bringing it for a long time: whether there will be such a job is open then.
[[gnu::noinline]] Outcome SlotPool::add_id(JobId id, std::uint32_t slot) {
  const CarriesId look(store_, id);
  const std::uint64_t hash = hash_id(id);
  const auto is_taken = [&] {
    const std::uint32_t other = find_job(store_, id);
    return other != kNoIndex && other != slot;
  };
  for (unsigned looks = 0; looks < look.patience() && !is_taken(); ++looks) {
    switch (keys_.insert(hash, slot, look)) {
      case shm::KeyIndex::Insert::kDone: return Outcome::kOk;
      case shm::KeyIndex::Insert::kFull: return Outcome::kNoKeys;
      case shm::KeyIndex::Insert::kBusy: return Outcome::kDuplicate;
      case shm::KeyIndex::Insert::kDuplicate: break;
    }
    // Not back before the other lane is done: else it would wait for us again.
    do shm::wait_for_another(looks);
    while (shm::KeyIndex::find(segment_, hash, look) != kNoIndex && !is_taken() &&
           ++looks < look.patience());
  }
  return Outcome::kDuplicate;
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

void SlotPool::sweep() {
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    if (Control(store_.job(slot).control.load()).state() == kSlotFree) hints_.give(slot);
  hints_.flush();
  keys_.sweep(CarriesId(store_, {}));
}

}  // namespace ojs_shm::engine
