// SPDX-License-Identifier: Apache-2.0
#include "shm/ring.hpp"

#include <algorithm>
#include <optional>
#include <utility>

// The rare work on rings: compaction, walks, and what the dead left behind.

namespace ojs_shm::shm {
namespace {

/// A hint that leads nowhere: fills the unused cells of a packed chunk, which must not look empty.
constexpr Hint kTombstone(0xFF'FFFF, 0);

struct ChunkCopy {
  std::uint64_t cell[kCellsPerChunk];
  std::uint64_t next;
};

/// A copy of a chunk, or false when it has begun another life meanwhile.
bool copy_chunk(const Segment& segment, std::uint32_t index, std::uint64_t incarnation,
                ChunkCopy& copy) {
  const Chunk& chunk = segment.chunk(index);
  for (unsigned i = 0; i < kCellsPerChunk; ++i) copy.cell[i] = chunk.cell[i].load();
  copy.next = chunk.next.load();
  return ChunkControl(chunk.control.load()).incarnation() == incarnation;
}

/// Every ring that has a name, and the roots.
std::vector<std::uint32_t> all_rings(const std::vector<RingSet*>& sets,
                                     std::vector<std::uint32_t> rings) {
  for (const RingSet* set : sets)
    for (const Half& name : set->ring)
      if (const std::uint32_t ring = name.load(); ring != 0) rings.push_back(ring - 1);
  return rings;
}

/// Which chunks can be reached from any ring at this moment, with the incarnation under which they
/// were found.
class Reachable {
 public:
  Reachable(const Segment& segment, const std::vector<std::uint32_t>& rings)
      : segment_(segment), found_(segment.geometry().chunks, ~0ULL) {
    for (const std::uint32_t ring : rings) {
      unsigned tries = 0;
      while (!mark(ring) && ++tries < kTries) {}
      whole_ = whole_ && tries < kTries;
    }
  }
  /// Also when we cannot tell: a chunk kept too long is found by collect_leaks(), one given away
  /// too early is not.
  bool operator()(std::uint32_t chunk, std::uint64_t incarnation) const {
    return !whole_ || (chunk < found_.size() && found_[chunk] == incarnation);
  }

 private:
  static constexpr unsigned kTries = 256;

  /// False when a chunk began another life under our walk: head has gone on, and what lies behind
  /// it was not seen.
  bool mark(std::uint32_t ring) {
    Place at(segment_.ring(ring).head.load());
    for (std::uint32_t steps = 0; steps < found_.size(); ++steps) {
      ChunkCopy copy;
      if (at.chunk() >= found_.size() || !copy_chunk(segment_, at.chunk(), at.incarnation(), copy))
        return false;
      found_[at.chunk()] = at.incarnation();
      if (is_empty(copy.next)) return incarnation_of(copy.next) == at.incarnation();
      at = Place(Hint(copy.next).index(), 0, Hint(copy.next).tag());
    }
    return false;
  }

  const Segment& segment_;
  std::vector<std::uint64_t> found_;
  bool whole_ = true;
};

}  // namespace

void Rings::walk(const Segment& segment, std::uint32_t ring,
                 const std::function<void(std::uint32_t, unsigned, std::uint64_t)>& visit) {
  Place at(segment.ring(ring).head.load());
  for (std::uint32_t steps = 0; steps <= segment.geometry().chunks; ++steps) {
    ChunkCopy copy;
    if (!copy_chunk(segment, at.chunk(), at.incarnation(), copy)) return;
    for (unsigned i = at.cell(); i < kCellsPerChunk; ++i) {
      if (is_empty(copy.cell[i])) return;
      visit(at.chunk(), i, copy.cell[i]);
    }
    if (is_empty(copy.next)) return;
    at = Place(Hint(copy.next).index(), 0, Hint(copy.next).tag());
  }
}

std::uint32_t Rings::splice(std::uint32_t ring, StillLive live) {
  Stretch stretch;
  splice(ring, live, stretch);
  return stretch.freed;
}

void Rings::splice(std::uint32_t ring_index, StillLive live, Stretch& stretch) {
  RingEnds& ring = segment_.ring(ring_index);
  const std::uint32_t skip = std::exchange(stretch.skip, 0);
  stretch.more = false;
  if (!ring.splicer.cas_once(0, owner(), Point::kSpliceClaimed)) {
    stretch.refused = true;
    return;
  }
  const std::uint32_t most = std::min(stretch.most, longest_search() / kCellsPerChunk);
  const std::uint32_t left_behind = reap(ring_index, live, most * kCellsPerChunk);
  // others leave chunks behind meanwhile, or one was left to us
  stretch.most -= std::min(stretch.most, left_behind);
  stretch.freed += left_behind;
  const Place head(ring.head.load());
  const Place tail(ring.tail.load());
  std::uint32_t passed = 0;  // chunks between that of head and `pred`, and `pred`
  std::uint32_t pred = head.chunk();
  // Safe only while head stays before its last cell: then no lane has read the link that we change
  // under a head that could follow it. Head only moves forward, so one look after the change
  // decides.
  auto head_stays = [&ring, head] {
    const Place now(ring.head.load_seq_cst());
    return now.chunk() == head.chunk() && now.incarnation() == head.incarnation() &&
           now.cell() < kCellsPerChunk;
  };
  std::uint64_t pred_incarnation = head.incarnation();
  for (std::uint32_t steps = 0; steps < segment_.geometry().chunks && head_stays() &&
                                pred != tail.chunk() && stretch.freed < stretch.enough;
       ++steps) {
    if (stretch.most == 0) {
      stretch.more = true;
      stretch.skip = passed;
      break;
    }
    const std::uint64_t link_word = segment_.chunk(pred).next.load();
    if (is_empty(link_word) ||
        ChunkControl(segment_.chunk(pred).control.load()).incarnation() != pred_incarnation)
      break;
    // A run of full chunks whose live hints fit into one chunk.
    std::vector<Hint> run, kept;
    Hint after(link_word), after_dead = after;
    std::ptrdiff_t dead = 0;  // chunks of it before the first live hint
    while (passed >= skip && after.index() != tail.chunk() && run.size() < 256 &&
           stretch.most > 0) {
      --stretch.most;
      ChunkCopy copy;
      if (!copy_chunk(segment_, after.index(), after.tag(), copy) || is_empty(copy.next)) break;
      std::vector<Hint> mine;
      for (const std::uint64_t value : copy.cell)
        if (!is_empty(value) && live(segment_, Hint(value))) mine.emplace_back(value);
      if (kept.size() + mine.size() > kCellsPerChunk) break;
      run.push_back(after);
      kept.insert(kept.end(), mine.begin(), mine.end());
      after = Hint(copy.next);
      if (kept.empty()) ++dead, after_dead = after;
    }
    if (run.empty() || (run.size() == 1 && !kept.empty())) {  // nothing to gain here: step over it
      const Hint over(link_word);
      if (over.index() == tail.chunk()) break;
      pred = over.index();
      pred_incarnation = over.tag();
      ++passed;
      continue;
    }
    const std::uint32_t fresh = kept.empty() ? kNoIndex : take_chunk();
    // the dead ones need none, and yield one for the living
    if (!kept.empty() && fresh == kNoIndex) {
      if (dead == 0) {
        stretch.refused = true;
        break;
      }
      run.erase(run.begin() + dead, run.end());
      kept.clear();
      after = after_dead;
    }
    std::size_t marked = 0;
    while (
        marked < run.size() &&
        segment_.chunk(run[marked].index())
            .control.cas_once(ChunkControl(ChunkState::kLinked, 0, run[marked].tag()).word,
                              ChunkControl(ChunkState::kDropping, owner(), run[marked].tag()).word,
                              Point::kSpliceMarked))
      ++marked;
    std::uint64_t incarnation = 0;
    std::uint64_t replacement = after.word;
    if (fresh != kNoIndex) {
      incarnation = (ChunkControl(segment_.chunk(fresh).control.load()).incarnation() + 1) &
                    Field<0, 36>::kMax;
      clean(fresh, incarnation);
      for (unsigned i = 0; i < kCellsPerChunk; ++i)
        // NO CRASH POINT: the chunk is private until the link is set
        segment_.chunk(fresh).cell[i].store(i < kept.size() ? kept[i].word : kTombstone.word,
                                            Point::kNone);
      // NO CRASH POINT: as above
      segment_.chunk(fresh).next.store(after.word, Point::kNone);
      intend(fresh, incarnation);
      segment_.chunk(fresh).control.store(
          ChunkControl(ChunkState::kLinking, owner(), incarnation).word, Point::kChunkLinking);
      replacement = Hint(fresh, incarnation).word;
    }
    const bool spliced =
        marked == run.size() && head_stays() &&
        segment_.chunk(pred).next.cas_once(link_word, replacement, Point::kSpliceDone);
    const bool settled = spliced && head_stays();
    // Head came too near: what is ambiguous stays linked, for collect_leaks(). Until this store our
    // marks name it.
    if (spliced && !settled) segment_.lane(lane_).leaks.set(1, Point::kLeaksLeft);
    for (std::size_t i = 0; i < marked; ++i) {
      Word& control = segment_.chunk(run[i].index()).control;
      const std::uint64_t dropping =
          ChunkControl(ChunkState::kDropping, owner(), run[i].tag()).word;
      const auto to = settled ? ChunkControl(ChunkState::kSpare, owner(), run[i].tag())
                              : ChunkControl(ChunkState::kLinked, 0, run[i].tag());
      if (control.cas_once(dropping, to.word, Point::kSpliceMarked) && settled) {
        keep_or_free(run[i].index());
        ++stretch.freed;
      }
    }
    if (fresh != kNoIndex) {
      if (spliced)
        segment_.chunk(fresh).control.cas_once(
            ChunkControl(ChunkState::kLinking, owner(), incarnation).word,
            ChunkControl(ChunkState::kLinked, 0, incarnation).word, Point::kChunkLinked);
      else
        keep_or_free(fresh);
      intend_nothing();
    }
    if (!settled) break;
    if (fresh != kNoIndex) {
      pred = fresh;
      pred_incarnation = incarnation;
      ++passed;
    }
  }
  ring.splicer.store(0, Point::kSpliceReleased);
}

bool Rings::has_middle(std::uint32_t ring) const {
  const Place head(segment_.ring(ring).head.load());
  const Place tail(segment_.ring(ring).tail.load());
  if (head.chunk() == tail.chunk()) return false;
  const std::uint64_t link = segment_.chunk(head.chunk()).next.load();
  return !is_empty(link) && Hint(link).index() != tail.chunk();
}

std::uint32_t Rings::chunks_in_use() const {
  constexpr std::uint32_t kLooks = 4096;
  const std::uint32_t chunks = segment_.geometry().chunks;
  const std::uint32_t stride = std::max(chunks / kLooks, 1U);
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < chunks; i += stride)  // relaxed: a measure
    used += ChunkControl(segment_.chunk(i).control.load_relaxed()).state() != ChunkState::kFree
                ? stride
                : 0;
  return std::min(used, chunks);
}

/// Ends the ownership over one chunk: it is in a ring, or free.
void Rings::settle_chunk(std::uint32_t i, ChunkControl found, bool reachable) {
  Word& control = segment_.chunk(i).control;
  if (reachable) {
    control.cas_once(found.word, ChunkControl(ChunkState::kLinked, 0, found.incarnation()).word,
                     Point::kChunkLinked);
  } else if (control.cas_once(found.word,
                              ChunkControl(ChunkState::kFree, 0, found.incarnation()).word,
                              Point::kChunkFreed)) {
    chunk_hints_.give(i);
  }
}

void Rings::repair(const std::vector<RingSet*>& sets, const std::vector<std::uint32_t>& roots,
                   std::uint32_t batches) {
  const std::vector<std::uint32_t> rings = all_rings(sets, roots);
  std::optional<Reachable> known;  // most deaths need no walk
  auto reachable = [&](std::uint32_t chunk, std::uint64_t incarnation) {
    if (!known) known.emplace(segment_, rings);
    return (*known)(chunk, incarnation);
  };
  // 1. The chunk that it was leaving. First of all, for each push of ours says in the same word
  //    what it does.
  const Lane& lane = segment_.lane(lane_);
  if (const std::uint64_t word = lane.chunk_intent.get(); word != 0) {
    const Hint chunk(word);
    const ChunkControl found(segment_.chunk(chunk.index()).control.load());
    if (found.state() == ChunkState::kLinked && found.incarnation() == chunk.tag() &&
        !reachable(chunk.index(), chunk.tag()))
      settle_chunk(chunk.index(), found, false);
    intend_nothing();
  }
  // 2. Rings that it was packing or making: named ones are finished, the others go.
  std::vector<bool> named(segment_.geometry().rings, false);
  for (const std::uint32_t ring : rings)
    if (ring < named.size()) named[ring] = true;
  for (std::uint32_t i = 0; i < segment_.geometry().rings; ++i) {
    RingEnds& ring = segment_.ring(i);
    if (ring.splicer.load() == owner()) {
      // moves a head on that stands before the link it changed: no lane can follow the old one any
      // more
      (void)peek(i);
      known.reset();
      ring.splicer.cas_once(owner(), 0, Point::kSpliceReleased);
    }
    if (ring.claimed.load() == owner())
      ring.claimed.cas_once(owner(), named[i] ? kNoIndex : 0, Point::kRingMade);
  }
  // 3. Chunks that name it.
  release();  // what step 2 kept
  std::vector<std::uint32_t> own_batches;
  for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i) {
    const ChunkControl found(segment_.chunk(i).control.load());
    if (found.owner() != owner()) continue;
    if (found.state() == ChunkState::kSpare) settle_chunk(i, found, false);
    if (found.state() == ChunkState::kLinking || found.state() == ChunkState::kDropping)
      settle_chunk(i, found, reachable(i, found.incarnation()));
    if (found.state() == ChunkState::kBatch) own_batches.push_back(i);
  }
  // 4. The batch that it was publishing, and those that it kept. A doubled hint is harmless;
  //    without a chunk for the hint
  // the batch goes, and a scan finds its slots.
  if (const std::uint64_t word = lane.batch_intent.get(); word != 0) {
    const Hint batch(word & ~7ULL);
    const ChunkControl batched(ChunkState::kBatched, 0, batch.tag());
    if (segment_.chunk(batch.index()).control.load() == batched.word &&
        !push(batches, batch, nullptr, 0))
      settle_chunk(batch.index(), batched, false);
    segment_.lane(lane_).batch_intent.set(0, Point::kIntentCleared);
  }
  for (const std::uint32_t batch : own_batches)
    if (!close_batch(batch, batches)) keep_or_free(batch);
}

std::vector<std::uint64_t> Rings::linked_chunks() const {
  std::vector<std::uint64_t> linked(segment_.geometry().chunks, ~0ULL);
  for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i) {
    const ChunkControl found(segment_.chunk(i).control.load());
    if (found.state() == ChunkState::kLinked) linked[i] = found.incarnation();
  }
  return linked;
}

std::uint32_t Rings::collect_leaks(std::vector<std::uint64_t> linked,
                                   const std::vector<RingSet*>& sets,
                                   const std::vector<std::uint32_t>& roots) {
  const Reachable reachable(segment_, all_rings(sets, roots));
  // A consumer may be about to follow a link that a splice has changed under it. Once head is past
  // the link it cannot; but it may have been faster.
  for (const std::uint32_t ring : all_rings(sets, roots)) (void)peek(ring);
  const Reachable still_reachable(segment_, all_rings(sets, roots));
  for (std::uint32_t l = 0;
       l < segment_.header().lanes_high.load() && l < segment_.geometry().lanes; ++l)
    if (const std::uint64_t word = segment_.lane(l).chunk_intent.get_ordered();
        word != 0 && Hint(word).index() < linked.size())
      linked[Hint(word).index()] = ~0ULL;  // another lane is about to settle it
  std::uint32_t freed = 0;
  for (std::uint32_t i = 0; i < linked.size(); ++i) {
    if (linked[i] == ~0ULL || reachable(i, linked[i]) || still_reachable(i, linked[i])) continue;
    settle_chunk(i, ChunkControl(ChunkState::kLinked, 0, linked[i]), false);
    ++freed;
  }
  if (has_leaks()) segment_.lane(lane_).leaks.set(0, Point::kLeaksCollected);
  return freed;
}

void Rings::release() {
  while (spares_ > 0) {
    const std::uint32_t i = spare_[--spares_];
    Word& control = segment_.chunk(i).control;
    control.store(
        ChunkControl(ChunkState::kFree, 0, ChunkControl(control.load()).incarnation()).word,
        Point::kChunkFreed);
    chunk_hints_.give(i);
  }
  chunk_hints_.flush();
}

}  // namespace ojs_shm::shm
