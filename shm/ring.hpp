// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shm/bits.hpp"
#include "shm/chunks.hpp"
#include "shm/control.hpp"
#include "shm/layout.hpp"
#include "shm/segment.hpp"

// A ring is a first-in-first-out sequence of hints, stored in pooled chunks of 14 cells. A hint
// says "slot i, if its tag is still t"; the slot's control word is the truth, so a hint may be
// stale or doubled, and nothing is consumed by looking at it.
//
// Publishing: 1. fill the cell at tail with one cas; 2. move tail (anyone may); 3. after the last
// cell, link a chunk whose first cell is already filled. Consuming: 1. read the cell at head; 2.
// check that head has not moved; 3. claim the slot elsewhere; 4. move head past it (anyone may).
//
// A cell is filled at most once in each incarnation of its chunk, and in order: so an empty cell at
// head proves that the ring was empty at that instant. A slow publisher cannot hit a recycled chunk
// because the expected value of its cas names the incarnation.

namespace ojs_shm::shm {

/// A place in a ring: 63..40 chunk  39..36 cell  35..0 incarnation.
struct Place {
  std::uint64_t word = 0;
  constexpr explicit Place(std::uint64_t w) : word(w) {}
  constexpr Place(std::uint32_t chunk, unsigned cell, std::uint64_t incarnation)
      : word(Field<40, 24>::put(chunk) | Field<36, 4>::put(cell) | Field<0, 36>::put(incarnation)) {
  }
  constexpr std::uint32_t chunk() const {
    return static_cast<std::uint32_t>(Field<40, 24>::get(word));
  }
  constexpr unsigned cell() const {
    const auto c = static_cast<unsigned>(Field<36, 4>::get(word));
    return c <= kCellsPerChunk ? c : kCellsPerChunk;
  }
  constexpr std::uint64_t incarnation() const { return Field<0, 36>::get(word); }
  /// Without the cell.
  constexpr std::uint64_t chunk_word() const { return Field<36, 4>::with(word, 0); }
  /// Of a place at least so many before the end of its chunk.
  constexpr Place next(unsigned cells = 1) const {
    return Place(word + (std::uint64_t{cells} << 36));
  }
};

/// What stands at the head of a ring.
struct Peeked {
  std::uint64_t head = 0;   ///< for retire()
  std::uint64_t value = 0;  ///< a hint, or the empty word that proves emptiness
  const Word* cell = nullptr;
  RingEnds* ends = nullptr;
  bool empty() const { return is_empty(value); }
  Hint hint() const { return Hint(value); }
};

/// Tells whether a hint can still lead anywhere. Must be stable: once false, for ever false.
using StillLive = bool (*)(const Segment& segment, Hint hint);

/// The ring operations of one lane. One thread.
class Rings {
 public:
  Rings(Segment& segment, std::uint32_t lane) : segment_(segment), chunks_(segment, lane) {}
  ~Rings() = default;

  /// The ring with that number, made if need be; kNoIndex when rings or chunks are exhausted.
  OJS_SHM_INLINE std::uint32_t ensure(RingSet& set, unsigned number) {
    const std::uint32_t known = set.ring[number].load();
    if (known == 0) [[unlikely]]
      return make_named(set.ring[number], true);
    return known - 1;
  }
  /// A ring of no set: never closed, always open. For the segment's own rings, made before anyone
  /// attaches.
  std::uint32_t make_unindexed();
  /// The ring of that name, which stands in no set, made if need be. `name` must be among the roots
  /// of a repair.
  OJS_SHM_INLINE std::uint32_t ensure_unindexed(Half& name) {
    const std::uint32_t known = name.load();
    return known == 0 ? make_named(name, false) : known - 1;
  }
  static std::uint32_t find(const RingSet& set, unsigned number) {
    return set.ring[number].load() - 1;
  }

  /// Publishes a hint; the cas on the cell (or on the link) is the linearization point. False: no
  /// chunk to be had.
  [[nodiscard]] OJS_SHM_INLINE bool push(std::uint32_t ring, Hint hint, RingSet* set,
                                         unsigned number) {
    RingEnds& ends = segment_.ring(ring);
    const Place tail(ends.tail.load());
    if (fill(tail, hint)) [[likely]] {
      ends.tail.cas_once(tail.word, tail.next().word, Point::kTailMoved);
      return true;
    }
    return push_slowly(ends, hint, set, number);
  }
  /// Where the hints of one call stand in a ring. The ring's tail is moved behind them at once, by
  /// end_run(); until then, and if that never comes, other lanes move it.
  struct PushRun {
    std::uint32_t ring = kNoIndex;
    Place from{0};
    unsigned hints = 0, left = 0;  ///< left: cells of the chunk
    Word* cell = nullptr;          ///< the next
    std::uint64_t empty = 0;       ///< what stands there
  };
  /// As push(), of the next of several.
  [[nodiscard]] OJS_SHM_INLINE bool push_next(PushRun& run, std::uint32_t ring, Hint hint,
                                              RingSet* set, unsigned number) {
    if (run.ring == ring && run.left != 0 &&
        run.cell->cas_once(run.empty, hint.word, Point::kCellFilled))
        [[likely]] {  // PAIR cell-publish
      ++run.cell, ++run.hints, --run.left;
      return true;
    }
    end_run(run);
    RingEnds& ends = segment_.ring(ring);
    const Place tail(ends.tail.load());
    if (!fill(tail, hint)) return push_slowly(ends, hint, set, number);
    run = {ring,
           tail,
           1,
           kCellsPerChunk - tail.cell() - 1,
           &segment_.chunk(tail.chunk()).cell[tail.cell()] + 1,
           empty_word(tail.incarnation(), 0)};
    return true;
  }
  OJS_SHM_INLINE void end_run(PushRun& run) {
    if (run.ring == kNoIndex) return;
    segment_.ring(run.ring).tail.cas_once(run.from.word, run.from.next(run.hints).word,
                                          Point::kTailMoved);
    run.ring = kNoIndex;
  }
  /// Looks; consumes nothing.
  OJS_SHM_INLINE Peeked peek(std::uint32_t ring) { return peek_at(segment_.ring(ring)); }
  /// Looks again at the ring of a look before.
  OJS_SHM_INLINE void peek_again(Peeked& seen) {
    if (seen.ends->head.load() == seen.head) [[likely]] {
      seen.value = seen.cell->load();  // PAIR cell-publish
      // behind the last cell stands the link to the next chunk, which is not a hint
      const bool in_cells = seen.empty() || Place(seen.head).cell() < kCellsPerChunk;
      if (seen.ends->head.load() == seen.head && in_cells) [[likely]]
        return;
    }
    seen = peek_at(*seen.ends);
  }
  /// Moves head past a hint that is dead or taken, or past several in a row. Failure means that
  /// another lane did it before.
  OJS_SHM_INLINE static void retire(const Peeked& peeked, unsigned hints = 1) {
    peeked.ends->head.cas_once(peeked.head, Place(peeked.head).next(hints).word, Point::kHeadMoved);
  }
  /// Has the place behind those that were retired in `seen`, unless their chunk ends there.
  OJS_SHM_INLINE static void step(Peeked& seen, unsigned hints = 1) {
    const Place head(seen.head);
    if (head.cell() + hints >= kCellsPerChunk) return;
    seen.head = head.next(hints).word;
    seen.cell += hints;
  }
  /// Moves head past the dead hints at the front, `most` of them. Returns how many chunks it left.
  std::uint32_t reap(std::uint32_t ring, StillLive live, std::uint32_t most);

  // The index of a set. I1: a ring with a published live hint has its bit set; so a clear bit
  // proves emptiness.
  static void open(RingSet& set, unsigned number);
  /// One attempt to clear the bit of a ring whose first cell was seen empty; optional housekeeping.
  static void close(RingSet& set, unsigned number, const Word& cell, std::uint64_t empty);

  /// Settles each chunk and ring that a former life of this lane left; before anything else is done
  /// under its name. `sets` are all ring sets, `roots` all unindexed rings. Returns the batches
  /// that it kept, for Batches::repair().
  std::vector<std::uint32_t> repair(const std::vector<RingSet*>& sets,
                                    const std::vector<std::uint32_t>& roots);

  /// Visits every cell from head to tail without changing anything; stops early when it meets a
  /// recycled chunk.
  static void walk(
      const Segment& segment, std::uint32_t ring,
      const std::function<void(std::uint32_t chunk, unsigned cell, std::uint64_t value)>& visit);
  /// Frees the chunks that are in no ring. The rings are listed after the chunks: a lane that links
  /// a chunk has named its ring before, so a ring made meanwhile loses none. Returns how many.
  std::uint32_t collect_leaks(std::vector<std::uint64_t> linked, const std::vector<RingSet*>& sets,
                              const std::vector<std::uint32_t>& roots);
  /// Whether a splice of this lane has left some since it collected them last.
  bool has_leaks() const { return segment_.lane(chunks_.lane()).leaks.get() != 0; }

  /// A search that passes more cells than this goes in circles, in a segment that a process has
  /// damaged.
  std::uint32_t longest_search() const { return segment_.geometry().chunks * kCellsPerChunk * 2; }
  Chunks& chunks() { return chunks_; }

 private:
  OJS_SHM_INLINE bool fill(Place at, Hint hint) {
    return at.cell() < kCellsPerChunk && segment_.chunk(at.chunk())
                                             .cell[at.cell()]
                                             .cas_once(empty_word(at.incarnation(), 0), hint.word,
                                                       Point::kCellFilled);  // PAIR cell-publish
  }
  OJS_SHM_INLINE Peeked peek_at(RingEnds& ends) {
    const Place head(ends.head.load());
    if (head.cell() < kCellsPerChunk) [[likely]] {
      const Word& cell = segment_.chunk(head.chunk()).cell[head.cell()];
      const std::uint64_t value = cell.load();       // PAIR cell-publish
      if (ends.head.load() == head.word) [[likely]]  // the chunk was in this ring all along
        return {head.word, value, &cell, &ends};
    }
    const Peeked found = peek_slowly(ends);
    // word by word, so that all of it may stay in registers
    return {found.head, found.value, found.cell, found.ends};
  }
  std::uint32_t make_named(Half& name, bool closed);
  bool push_slowly(RingEnds& ring, Hint hint, RingSet* set, unsigned number);
  Peeked peek_slowly(RingEnds& ring);
  bool link(RingEnds& ring, Place tail, Hint hint, RingSet* set, unsigned number,
            std::uint32_t& fresh);
  void leave_chunk(RingEnds& ring, Place head, Hint next);

  Segment& segment_;
  Chunks chunks_;
  std::uint32_t next_ring_ = 0;  ///< where the search for an unused one goes on
};

}  // namespace ojs_shm::shm
