// SPDX-License-Identifier: Apache-2.0
#include "shm/ring.hpp"

namespace ojs_shm::shm {

// ---- rings --------------------------------------------------------------------------------------

std::uint32_t Rings::make_unindexed() {
  const std::uint32_t rings = segment_.geometry().rings;
  // rings are never given up: most are taken from the left
  for (std::uint32_t looks = 0; looks < rings; ++looks) {
    const std::uint32_t i = next_ring_;
    next_ring_ = i + 1 < rings ? i + 1 : 0;
    RingEnds& ring = segment_.ring(i);
    if (ring.claimed.load() != 0 || !ring.claimed.cas_once(0, chunks_.owner(), Point::kRingMade))
      continue;
    const std::uint32_t c = chunks_.take();
    if (c == kNoIndex) {
      ring.claimed.store(0, Point::kRingMade);
      return kNoIndex;
    }
    const std::uint64_t incarnation = chunks_.renew(c);
    segment_.chunk(c).control.store(
        ChunkControl(ChunkState::kLinking, chunks_.owner(), incarnation).word,
        Point::kChunkLinking);
    // NO CRASH POINT: the ring has no name yet; its claim is what the repair reads
    ring.head.store(Place(c, 0, incarnation).word, Point::kNone);
    // NO CRASH POINT: as above
    ring.tail.store(Place(c, 0, incarnation).word, Point::kNone);
    return i;
  }
  return kNoIndex;
}

[[gnu::noinline]] std::uint32_t Rings::make_named(Half& name, bool closed) {
  const std::uint32_t ring = make_unindexed();
  if (ring == kNoIndex) return kNoIndex;
  const std::uint32_t chunk = Place(segment_.ring(ring).head.load()).chunk();
  const std::uint64_t incarnation = Place(segment_.ring(ring).head.load()).incarnation();
  // A new ring of a set begins closed: its bit is clear, and its first publisher must open it.
  // NO CRASH POINT: the ring has no name yet
  if (closed) segment_.chunk(chunk).cell[0].store(empty_word(incarnation, 1), Point::kNone);
  chunks_.intend(chunk, incarnation);
  std::uint32_t expected = 0;
  if (name.cas(expected, ring + 1, Point::kRingNamed)) {  // PAIR ring-name
    segment_.ring(ring).claimed.store(kNoIndex, Point::kRingMade);
    segment_.chunk(chunk).control.cas_once(
        ChunkControl(ChunkState::kLinking, chunks_.owner(), incarnation).word,
        ChunkControl(ChunkState::kLinked, 0, incarnation).word, Point::kChunkLinked);
    chunks_.intend_nothing();
    return ring;
  }
  chunks_.intend_nothing();
  chunks_.keep_or_free(chunk);  // another lane was first
  segment_.ring(ring).claimed.store(0, Point::kRingMade);
  return expected - 1;
}

[[gnu::noinline]] bool Rings::push_slowly(RingEnds& ring, Hint hint, RingSet* set,
                                          unsigned number) {
  std::uint32_t fresh = kNoIndex;
  // 1. tail names an empty cell: fill it.   2. it is filled: help tail on.
  // 3. it is closed: open the ring first.
  // 4. another incarnation: tail was stale. 5. no cell left: link a chunk that already carries the
  //    hint.
  // Each failure is another lane's success, so that thousands of them in a row mean a damaged
  // ring.
  for (unsigned failures = 0; failures < 20'000; ++failures) {
    const Place tail(ring.tail.load());
    if (tail.cell() == kCellsPerChunk) {
      const Word& next = segment_.chunk(tail.chunk()).next;
      const std::uint64_t link_word = next.load();
      if (ring.tail.load() != tail.word) continue;
      if (!is_empty(link_word)) {
        const Hint to(link_word);
        ring.tail.cas_once(tail.word, Place(to.index(), 0, to.tag()).word, Point::kTailMoved);
        continue;
      }
      if (fresh == kNoIndex && (fresh = chunks_.take()) == kNoIndex) return false;
      if (link(ring, tail, hint, set, number, fresh)) return true;  // 5
      continue;
    }
    Word& cell = segment_.chunk(tail.chunk()).cell[tail.cell()];
    std::uint64_t found = empty_word(tail.incarnation(), 0);
    if (!cell.cas(found, hint.word, Point::kCellFilled)) {  // 1 PAIR cell-publish
      if (!is_empty(found)) {
        ring.tail.cas_once(tail.word, tail.next().word, Point::kTailMoved);  // 2
        continue;
      }
      if (incarnation_of(found) != tail.incarnation() || close_count(found) == 0) continue;  // 4
      if (set != nullptr) open(*set, number);                                                // 3
      if (!cell.cas(found, hint.word, Point::kCellFilled)) continue;
    }
    ring.tail.cas_once(tail.word, tail.next().word, Point::kTailMoved);
    if (fresh != kNoIndex) chunks_.keep_or_free(fresh);
    return true;
  }
  if (fresh != kNoIndex) chunks_.keep_or_free(fresh);
  return false;
}

/// One attempt to link `fresh`, carrying the hint in its first cell, after the full chunk at tail.
bool Rings::link(RingEnds& ring, Place tail, Hint hint, RingSet* set, unsigned number,
                 std::uint32_t& fresh) {
  Word& next = segment_.chunk(tail.chunk()).next;
  std::uint64_t found = next.load();
  if (!is_empty(found) || incarnation_of(found) != tail.incarnation()) return false;
  Chunk& chunk = segment_.chunk(fresh);
  const std::uint64_t incarnation = chunks_.renew(fresh);
  // NO CRASH POINT: the chunk is private until the link is set
  chunk.cell[0].store(hint.word, Point::kNone);
  chunks_.intend(fresh, incarnation);
  const ChunkControl linking(ChunkState::kLinking, chunks_.owner(), incarnation);
  chunk.control.store(linking.word, Point::kChunkLinking);
  if (close_count(found) > 0 && set != nullptr) open(*set, number);
  if (!next.cas(found, Hint(fresh, incarnation).word, Point::kLinkSet)) {  // PAIR link-publish
    chunk.control.store(ChunkControl(ChunkState::kSpare, chunks_.owner(), incarnation).word,
                        Point::kChunkRetired);
    chunks_.intend_nothing();
    return false;
  }
  ring.tail.cas_once(tail.word, Place(fresh, 1, incarnation).word, Point::kTailMoved);
  // The lane that leaves this chunk may have retired it already; then this cas fails.
  chunk.control.cas_once(linking.word, ChunkControl(ChunkState::kLinked, 0, incarnation).word,
                         Point::kChunkLinked);
  chunks_.intend_nothing();
  fresh = kNoIndex;
  return true;
}

[[gnu::noinline]] Peeked Rings::peek_slowly(RingEnds& ring) {
  for (;;) {
    const Place head(ring.head.load());
    const Chunk& chunk = segment_.chunk(head.chunk());
    const Word& cell = head.cell() == kCellsPerChunk ? chunk.next : chunk.cell[head.cell()];
    const std::uint64_t value = cell.load();      // PAIR cell-publish, link-publish
    if (ring.head.load() != head.word) continue;  // the chunk was in this ring all along
    if (head.cell() < kCellsPerChunk || is_empty(value)) return {head.word, value, &cell, &ring};
    leave_chunk(ring, head, Hint(value));
  }
}

/// Moves head into the next chunk; the winner retires the old one.
void Rings::leave_chunk(RingEnds& ring, Place head, Hint next) {
  // tail must never stay behind in a chunk that is about to be recycled: a publisher would spin on
  // it for ever.
  const std::uint64_t tail = ring.tail.load();
  if (Place(tail).chunk() == head.chunk() && Place(tail).incarnation() == head.incarnation())
    ring.tail.cas_once(tail, Place(next.index(), 0, next.tag()).word, Point::kTailMoved);
  chunks_.intend(head.chunk(), head.incarnation());
  if (ring.head.cas_once(head.word, Place(next.index(), 0, next.tag()).word,
                         Point::kHeadChunkLeft)) {
    Word& control = segment_.chunk(head.chunk()).control;
    std::uint64_t found = control.load();
    // Linked, or not yet marked so by its slow linker, or marked by a splicer: exactly one cas
    // takes it.
    while (ChunkControl(found).incarnation() == head.incarnation() &&
           ChunkControl(found).state() != ChunkState::kSpare &&
           ChunkControl(found).state() != ChunkState::kFree) {
      if (control.cas(found,
                      ChunkControl(ChunkState::kSpare, chunks_.owner(), head.incarnation()).word,
                      Point::kChunkRetired)) {
        chunks_.keep_or_free(head.chunk());
        break;
      }
    }
  }
  chunks_.intend_nothing();
}

std::uint32_t Rings::reap(std::uint32_t ring, StillLive live, std::uint32_t most) {
  std::uint32_t left_behind = 0, chunk = Place(segment_.ring(ring).head.load()).chunk();
  for (std::uint32_t passed = 0;; ++passed) {
    const Peeked front = peek(ring);
    if (const std::uint32_t now = Place(front.head).chunk(); now != chunk)
      ++left_behind, chunk = now;
    if (passed == most || front.empty() || live(segment_, front.hint())) return left_behind;
    retire(front);
  }
}

// ---- the index of a set -------------------------------------------------------------------------

[[gnu::noinline]] void Rings::open(RingSet& set, unsigned number) {
  Word& word = set.index[number / 32];
  std::uint64_t found = word.load();
  // Also when the bit is set: the new version defeats a closer that looked before.
  while (!word.cas(found,
                   ((found >> 32) + 1) << 32 | (found & 0xFFFF'FFFFULL) | 1ULL << (number % 32),
                   Point::kIndexOpened)) {}
}

[[gnu::noinline]] void Rings::close(RingSet& set, unsigned number, const Word& seen,
                                    std::uint64_t empty) {
  if (close_count(empty) != 0) return;
  Word& word = set.index[number / 32];
  const std::uint64_t before = word.load();
  const std::uint64_t bit = 1ULL << (number % 32);
  if ((before & bit) == 0) return;
  // Mark the very cell that the next publisher must fill; it will open the index before it fills a
  // marked cell.
  auto& cell = const_cast<Word&>(seen);
  if (!cell.cas_once(empty, empty_word(incarnation_of(empty), 1), Point::kCellClosed)) return;
  word.cas_once(before, before & ~bit, Point::kIndexClosed);
}

}  // namespace ojs_shm::shm
