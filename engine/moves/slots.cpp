// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/slots.hpp"

#include "engine/moves/report.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/patience.hpp"
#include "engine/tables/prefetch.hpp"
#include "engine/unique/unique.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

using shm::Point;

Slots::Slots(const Store& store, shm::Rings& rings, std::uint32_t lane)
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
bool Slots::seize(std::uint32_t slot, JobRecord& job, Control found, std::uint64_t& filling,
                  unsigned ring) {
  const Control last = found.tag() > shm::kLastFirstTag ? Control() : found;  // fences never fall
  const Control held = last.to(kSlotFilling, ring, owner_);
  if (!job.control.cas_once(found.word, held.word, Point::kSlotFilling)) return false;
  filling = held.word;
  if (found.state() != kSlotFree) recycle(slot, job);
  return true;
}

/// Ends the former life of a finished slot.
void Slots::recycle(std::uint32_t slot, JobRecord& job) {
  if (job.has_texts()) [[unlikely]]
    texts_.free_all(slot, job);
  if (job.flags().has(Policy::kForeignId)) [[unlikely]]
    forget_id(slot, job);
  if (const std::uint64_t signals = job.signals.load();
      (signals & (kUnique | ReportWord::kTexts)) != 0) [[unlikely]]
    forget_more(slot, job, signals);
}

/// The unique key, and the texts of the last report.
[[gnu::noinline]] void Slots::forget_more(std::uint32_t slot, JobRecord& job,
                                          std::uint64_t signals) {
  if ((signals & kUnique) != 0) {
    keys_.remove(job.annex().key_lo.get(), slot);
    ask_for_next_key();
  }
  texts_.free_report(slot, job, signals);
}

/// Of the slot that is used again next, whose job probably has a key as well: its line of the index
/// comes from far.
void Slots::ask_for_next_key() const {
  if (draining_.batch == kNoIndex || draining_.done == shm::kCellsPerChunk) return;
  // relaxed: for prefetching only
  const JobRecord& next =
      store_.job(shm::Hint(draining_.chunk->cell[draining_.done].load_relaxed()).index());
  if (is_unique(next)) shm::KeyIndex::ask_for(segment_, next.annex().key_lo.get());
}

[[gnu::noinline]] void Slots::forget_id(std::uint32_t slot, const JobRecord& job) {
  keys_.remove(hash_id(job.id()), slot);
}

std::uint32_t Slots::take(std::uint64_t& filling, unsigned ring) {
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
[[gnu::noinline]] std::uint32_t Slots::scan(std::uint64_t& filling, unsigned ring) {
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

[[gnu::noinline]] void Slots::free(std::uint32_t slot, Control held) {
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

bool Slots::end(std::uint32_t slot, Control found) {
  std::uint64_t held = 0;
  if (!seize(slot, store_.job(slot), found, held)) return false;
  free(slot, Control(held));
  return true;
}

/// Of several that bring it at once one gets in. kDuplicate also when another is in the middle of
/// bringing it for a long time: whether there will be such a job is open then.
[[gnu::noinline]] Outcome Slots::add_id(JobId id, std::uint32_t slot) {
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

void Slots::sweep() {
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    if (Control(store_.job(slot).control.load()).state() == kSlotFree) hints_.give(slot);
  hints_.flush();
  keys_.sweep(CarriesId(store_, {}));
}

}  // namespace ojs_shm::engine
