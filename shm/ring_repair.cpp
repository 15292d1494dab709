// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "shm/chunk_copy.hpp"

// The rare work on rings: walks, and what the dead left behind.

namespace ojs_shm::shm {
namespace {

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
      if (is_empty(copy.next))
        return incarnation_of(copy.next) == at.incarnation() && found(segment_.ring(ring));
      at = Place(Hint(copy.next).index(), 0, Hint(copy.next).tag());
    }
    return false;
  }

  /// Whether head stands in a chunk that was found. It may have passed a link that a splice changed
  /// before our walk came to it; what is behind that link is then reached from head alone.
  bool found(const RingEnds& ring) const {
    const Place head(ring.head.load());
    return head.chunk() < found_.size() && found_[head.chunk()] == head.incarnation();
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

std::vector<std::uint32_t> Rings::repair(const std::vector<RingSet*>& sets,
                                         const std::vector<std::uint32_t>& roots) {
  const std::vector<std::uint32_t> rings = all_rings(sets, roots);
  std::optional<Reachable> known;  // most deaths need no walk
  auto reachable = [&](std::uint32_t chunk, std::uint64_t incarnation) {
    if (!known) known.emplace(segment_, rings);
    return (*known)(chunk, incarnation);
  };
  // 1. The chunk that it was leaving. First of all, for each push of ours says in the same word
  //    what it does.
  if (const std::uint64_t word = segment_.lane(chunks_.lane()).chunk_intent.get(); word != 0) {
    const Hint chunk(word);
    const ChunkControl found(segment_.chunk(chunk.index()).control.load());
    if (found.state() == ChunkState::kLinked && found.incarnation() == chunk.tag() &&
        !reachable(chunk.index(), chunk.tag()))
      chunks_.settle(chunk.index(), found, false);
    chunks_.intend_nothing();
  }
  // 2. Rings that it was packing or making: named rings are finished, unnamed rings go.
  std::vector<bool> named(segment_.geometry().rings, false);
  for (const std::uint32_t ring : rings)
    if (ring < named.size()) named[ring] = true;
  for (std::uint32_t i = 0; i < segment_.geometry().rings; ++i) {
    RingEnds& ring = segment_.ring(i);
    if (ring.splicer.load() == chunks_.owner()) {
      // moves a head on that stands before the link it changed: no lane can follow the old one any
      // more
      (void)peek(i);
      known.reset();
      ring.splicer.cas_once(chunks_.owner(), 0, Point::kSpliceReleased);
    }
    if (ring.claimed.load() == chunks_.owner())
      ring.claimed.cas_once(chunks_.owner(), named[i] ? kNoIndex : 0, Point::kRingMade);
  }
  // 3. Chunks that name it.
  chunks_.release();  // what step 2 kept
  std::vector<std::uint32_t> own_batches;
  for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i) {
    const ChunkControl found(segment_.chunk(i).control.load());
    if (found.owner() != chunks_.owner()) continue;
    if (found.state() == ChunkState::kSpare) chunks_.settle(i, found, false);
    if (found.state() == ChunkState::kLinking || found.state() == ChunkState::kDropping)
      chunks_.settle(i, found, reachable(i, found.incarnation()));
    if (found.state() == ChunkState::kBatch) own_batches.push_back(i);
  }
  return own_batches;
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
    chunks_.settle(i, ChunkControl(ChunkState::kLinked, 0, linked[i]), false);
    ++freed;
  }
  if (has_leaks()) segment_.lane(chunks_.lane()).leaks.set(0, Point::kLeaksCollected);
  return freed;
}

}  // namespace ojs_shm::shm
