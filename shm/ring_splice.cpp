// SPDX-License-Identifier: Apache-2.0
#include "shm/ring_splice.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "shm/chunk_copy.hpp"

namespace ojs_shm::shm {
namespace {

/// A hint that leads nowhere: fills the unused cells of a packed chunk, which must not look empty.
constexpr Hint kTombstone(0xFF'FFFF, 0);

/// Full chunks in a row whose live hints fit into one chunk.
struct Run {
  explicit Run(Hint first) : after(first), after_dead(first) {}
  bool gains() const { return !chunks.empty() && (chunks.size() > 1 || kept.empty()); }
  /// Without a chunk for the living, those that hold none. False: there are none.
  bool keep_dead() {
    if (dead == 0) return false;
    chunks.erase(chunks.begin() + dead, chunks.end());
    kept.clear();
    after = after_dead;
    return true;
  }

  std::vector<Hint> chunks, kept;
  Hint after;               ///< behind the last
  std::ptrdiff_t dead = 0;  ///< chunks of it before the first live hint
  Hint after_dead;          ///< behind those
};

/// One walk over a ring by the lane that is its splicer.
class Splice {
 public:
  Splice(Chunks& chunks, RingEnds& ring, StillLive live, Stretch& stretch)
      : chunks_(chunks),
        ring_(ring),
        live_(live),
        stretch_(stretch),
        head_(ring.head.load()),
        tail_(ring.tail.load()),
        pred_(head_.chunk(), head_.incarnation()) {}

  /// Goes from the chunk of head to that of tail, and leaves `skip` chunks alone.
  void walk(std::uint32_t skip) {
    for (std::uint32_t steps = 0;
         steps < chunks_.segment().geometry().chunks && head_stays() &&
         pred_.index() != tail_.chunk() && stretch_.freed < stretch_.enough;
         ++steps) {
      if (stretch_.most == 0) {
        stretch_.more = true;
        stretch_.skip = passed_;
        return;
      }
      const std::uint64_t link = chunk(pred_).next.load();
      if (is_empty(link) || ChunkControl(chunk(pred_).control.load()).incarnation() != pred_.tag())
        return;
      Run run{Hint(link)};
      if (passed_ >= skip) gather(run);
      if (run.gains() ? !replace(run, link) : !step_over(Hint(link))) return;
    }
  }

 private:
  Chunk& chunk(Hint hint) const { return chunks_.segment().chunk(hint.index()); }

  /// Safe only while head stays before its last cell: then no lane has read the link that we change
  /// under a head that could follow it. Head only moves forward, so one look after the change
  /// decides.
  bool head_stays() const {
    const Place now(ring_.head.load_seq_cst());
    return now.chunk() == head_.chunk() && now.incarnation() == head_.incarnation() &&
           now.cell() < kCellsPerChunk;
  }

  void gather(Run& run) {
    while (run.after.index() != tail_.chunk() && run.chunks.size() < 256 && stretch_.most > 0) {
      --stretch_.most;
      ChunkCopy copy;
      if (!copy_chunk(chunks_.segment(), run.after.index(), run.after.tag(), copy) ||
          is_empty(copy.next))
        return;
      std::vector<Hint> mine;
      for (const std::uint64_t value : copy.cell)
        if (!is_empty(value) && live_(chunks_.segment(), Hint(value))) mine.emplace_back(value);
      if (run.kept.size() + mine.size() > kCellsPerChunk) return;
      run.chunks.push_back(run.after);
      run.kept.insert(run.kept.end(), mine.begin(), mine.end());
      run.after = Hint(copy.next);
      if (run.kept.empty()) ++run.dead, run.after_dead = run.after;
    }
  }

  bool step_over(Hint next) {
    if (next.index() == tail_.chunk()) return false;
    pred_ = next;
    ++passed_;
    return true;
  }

  /// Puts one chunk, or none, in the place of a run that hangs at `link`. False: the walk ends.
  bool replace(Run& run, std::uint64_t link) {
    const std::uint32_t fresh = run.kept.empty() ? kNoIndex : chunks_.take();
    // the dead ones need none, and yield one for the living
    if (!run.kept.empty() && fresh == kNoIndex && !run.keep_dead()) {
      stretch_.refused = true;
      return false;
    }
    const std::size_t marked = mark(run.chunks);
    const Hint packed = fresh == kNoIndex ? run.after : pack(run, fresh);
    const bool spliced = marked == run.chunks.size() && head_stays() &&
                         chunk(pred_).next.cas_once(link, packed.word, Point::kSpliceDone);
    const bool settled = spliced && head_stays();
    // Head came too near: what is ambiguous stays linked, for collect_leaks(). Until this store our
    // marks name it.
    if (spliced && !settled) chunks_.segment().lane(chunks_.lane()).leaks.set(1, Point::kLeaksLeft);
    unmark(std::span(run.chunks).first(marked), settled);
    if (fresh != kNoIndex) {
      if (spliced)
        chunk(packed).control.cas_once(
            ChunkControl(ChunkState::kLinking, chunks_.owner(), packed.tag()).word,
            ChunkControl(ChunkState::kLinked, 0, packed.tag()).word, Point::kChunkLinked);
      else
        chunks_.keep_or_free(fresh);
      chunks_.intend_nothing();
    }
    if (settled && fresh != kNoIndex) pred_ = packed, ++passed_;
    return settled;
  }

  /// Makes this lane their dropper; returns how many, for other lanes leave chunks too.
  std::size_t mark(std::span<const Hint> chunks) {
    std::size_t marked = 0;
    while (marked < chunks.size() &&
           chunk(chunks[marked])
               .control.cas_once(
                   ChunkControl(ChunkState::kLinked, 0, chunks[marked].tag()).word,
                   ChunkControl(ChunkState::kDropping, chunks_.owner(), chunks[marked].tag()).word,
                   Point::kSpliceMarked))
      ++marked;
    return marked;
  }

  /// Frees what is out of the ring; else it is linked as before.
  void unmark(std::span<const Hint> chunks, bool settled) {
    for (const Hint each : chunks) {
      const auto to = settled ? ChunkControl(ChunkState::kSpare, chunks_.owner(), each.tag())
                              : ChunkControl(ChunkState::kLinked, 0, each.tag());
      if (chunk(each).control.cas_once(
              ChunkControl(ChunkState::kDropping, chunks_.owner(), each.tag()).word, to.word,
              Point::kSpliceMarked) &&
          settled) {
        chunks_.keep_or_free(each.index());
        ++stretch_.freed;
      }
    }
  }

  /// Fills `fresh` with the live hints of a run, and says what leads to it.
  Hint pack(const Run& run, std::uint32_t fresh) {
    Chunk& to = chunks_.segment().chunk(fresh);
    const std::uint64_t incarnation = chunks_.renew(fresh);
    for (unsigned i = 0; i < kCellsPerChunk; ++i)
      // NO CRASH POINT: the chunk is private until the link is set
      to.cell[i].store(i < run.kept.size() ? run.kept[i].word : kTombstone.word, Point::kNone);
    // NO CRASH POINT: as above
    to.next.store(run.after.word, Point::kNone);
    chunks_.intend(fresh, incarnation);
    to.control.store(ChunkControl(ChunkState::kLinking, chunks_.owner(), incarnation).word,
                     Point::kChunkLinking);
    return {fresh, incarnation};
  }

  Chunks& chunks_;
  RingEnds& ring_;
  StillLive live_;
  Stretch& stretch_;
  const Place head_, tail_;
  Hint pred_;                 ///< the chunk whose link comes next
  std::uint32_t passed_ = 0;  ///< chunks between that of head and `pred_`, and `pred_`
};

}  // namespace

std::uint32_t splice(Rings& rings, std::uint32_t ring, StillLive live) {
  Stretch stretch;
  splice(rings, ring, live, stretch);
  return stretch.freed;
}

void splice(Rings& rings, std::uint32_t ring_index, StillLive live, Stretch& stretch) {
  Chunks& chunks = rings.chunks();
  RingEnds& ring = chunks.segment().ring(ring_index);
  const std::uint32_t skip = std::exchange(stretch.skip, 0);
  stretch.more = false;
  if (!ring.splicer.cas_once(0, chunks.owner(), Point::kSpliceClaimed)) {
    stretch.refused = true;
    return;
  }
  const std::uint32_t most = std::min(stretch.most, rings.longest_search() / kCellsPerChunk);
  const std::uint32_t left_behind = rings.reap(ring_index, live, most * kCellsPerChunk);
  // other lanes leave chunks behind meanwhile, or a dead lane left one to us
  stretch.most -= std::min(stretch.most, left_behind);
  stretch.freed += left_behind;
  Splice(chunks, ring, live, stretch).walk(skip);
  ring.splicer.store(0, Point::kSpliceReleased);
}

bool has_middle(const Segment& segment, std::uint32_t ring) {
  const Place head(segment.ring(ring).head.load());
  const Place tail(segment.ring(ring).tail.load());
  if (head.chunk() == tail.chunk()) return false;
  const std::uint64_t link = segment.chunk(head.chunk()).next.load();
  return !is_empty(link) && Hint(link).index() != tail.chunk();
}

}  // namespace ojs_shm::shm
