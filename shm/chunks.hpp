// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "shm/bits.hpp"
#include "shm/layout.hpp"
#include "shm/magazine.hpp"
#include "shm/segment.hpp"

// Rings and batches consist of chunks: 14 cells, a link to the next chunk, and a control word that
// says whose the chunk is and counts its lives.

namespace ojs_shm::shm {

/// 62..39 index  38..3 tag  2..0 kind; bit 63 is clear.
struct Hint {
  std::uint64_t word = 0;
  using IndexBits = Field<39, 24>;
  using TagBits = Field<3, 36>;
  using KindBits = Field<0, 3>;
  /// 0 first the state, then the hint  1 first the hint
  /// 2, 3 the same of a hint that leads to a line of jobs
  enum Kind : unsigned { kStateFirst = 0, kHintFirst = 1, kLine = 2, kLineFirst = 3 };

  constexpr explicit Hint(std::uint64_t w) : word(w) {}
  constexpr Hint(std::uint32_t index, std::uint64_t tag, Kind kind = kStateFirst)
      : word(IndexBits::put(index) | TagBits::put(tag) | KindBits::put(kind)) {}
  constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(IndexBits::get(word)); }
  constexpr std::uint64_t tag() const { return TagBits::get(word); }
  constexpr bool plain() const { return KindBits::get(word) == kStateFirst; }
  constexpr bool hint_first() const { return KindBits::get(word) == kHintFirst; }
  /// Whether it was published before what it leads to had its tag.
  constexpr bool ahead() const { return (KindBits::get(word) & kHintFirst) != 0; }
  constexpr bool leads_to_line() const { return (KindBits::get(word) & kLine) != 0; }
};

/// Empty cell or absent link: 63 set  62..48 close count  35..0 incarnation.
constexpr std::uint64_t empty_word(std::uint64_t incarnation, std::uint64_t closed) {
  return 1ULL << 63 | Field<48, 15>::put(closed) | Field<0, 36>::put(incarnation);
}
constexpr bool is_empty(std::uint64_t word) { return (word >> 63) != 0; }
constexpr std::uint64_t close_count(std::uint64_t word) { return Field<48, 15>::get(word); }
constexpr std::uint64_t incarnation_of(std::uint64_t word) { return Field<0, 36>::get(word); }

enum class ChunkState : unsigned {
  kFree = 0,
  kSpare = 1,     ///< held privately by a lane
  kLinking = 2,   ///< about to be linked, or linked, by its owner
  kLinked = 3,    ///< in a ring
  kBatch = 4,     ///< filled or drained privately by a lane
  kBatched = 5,   ///< a batch that stands in a ring as one hint
  kDropping = 6,  ///< being spliced out by its owner
};
struct ChunkControl {
  std::uint64_t word = 0;
  constexpr explicit ChunkControl(std::uint64_t w) : word(w) {}
  constexpr ChunkControl(ChunkState state, std::uint32_t owner, std::uint64_t incarnation)
      : word(Field<60, 4>::put(static_cast<std::uint64_t>(state)) | Field<36, 14>::put(owner) |
             Field<0, 36>::put(incarnation)) {}
  constexpr ChunkState state() const { return static_cast<ChunkState>(Field<60, 4>::get(word)); }
  constexpr std::uint32_t owner() const {
    return static_cast<std::uint32_t>(Field<36, 14>::get(word));
  }
  constexpr std::uint64_t incarnation() const { return Field<0, 36>::get(word); }
};

/// The chunks of one lane: it takes them from those that are free, keeps a few, and gives them
/// back. One thread.
class Chunks {
 public:
  Chunks(Segment& segment, std::uint32_t lane)
      : segment_(segment),
        lane_(lane),
        hints_(segment.chunk_map(), segment.geometry().chunks, lane) {}

  /// A chunk owned by this lane, its cells still those of its last life; kNoIndex: none is free.
  std::uint32_t take();
  /// Ends the life of a chunk that this lane owns: kept for the next take(), or given to everyone.
  void keep_or_free(std::uint32_t chunk);
  /// Begins another life of a chunk that this lane owns, with empty cells; its control word says so
  /// later. Private: no lane trusts a chunk before it is linked. Returns the new incarnation.
  std::uint64_t renew(std::uint32_t chunk);
  /// Says which chunk this lane is about to link or to leave: to its repair, and to a lane that
  /// collects leaks.
  void intend(std::uint32_t chunk, std::uint64_t incarnation);
  void intend_nothing();
  /// Ends the ownership over one chunk: it is in a ring, or free.
  void settle(std::uint32_t chunk, ChunkControl found, bool reachable);
  /// Gives all spare chunks and hints back.
  void release();

  /// The incarnation of each chunk that says it is linked, ~0 for every other chunk.
  std::vector<std::uint64_t> linked() const;
  /// About: of many, only every so many are looked at.
  std::uint32_t in_use() const;

  Segment& segment() const { return segment_; }
  std::uint32_t lane() const { return lane_; }
  std::uint32_t owner() const { return lane_ + 1; }  ///< as a control word names this lane

 private:
  bool seize(std::uint32_t chunk);

  Segment& segment_;
  std::uint32_t lane_;
  Magazine hints_;
  std::array<std::uint32_t, 4> spare_{};
  unsigned spares_ = 0;
};

}  // namespace ojs_shm::shm
