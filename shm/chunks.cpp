// SPDX-License-Identifier: Apache-2.0
#include "shm/chunks.hpp"

#include <algorithm>

namespace ojs_shm::shm {

[[gnu::noinline]] std::uint32_t Chunks::take() {
  if (spares_ > 0) return spare_[--spares_];
  for (std::uint32_t i = hints_.take(); i != kNoIndex; i = hints_.take())
    if (seize(i)) return i;
  // the hints are gone: ask the truth
  for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i)
    if (seize(i)) return i;
  return kNoIndex;
}

/// Takes a chunk that is free.
bool Chunks::seize(std::uint32_t i) {
  Word& control = segment_.chunk(i).control;
  const ChunkControl found(control.load());
  return found.state() == ChunkState::kFree &&
         control.cas_once(found.word,
                          ChunkControl(ChunkState::kSpare, owner(), found.incarnation()).word,
                          Point::kChunkTaken);
}

[[gnu::noinline]] void Chunks::keep_or_free(std::uint32_t i) {
  Chunk& chunk = segment_.chunk(i);
  const std::uint64_t incarnation = ChunkControl(chunk.control.load()).incarnation();
  if (spares_ < spare_.size()) {
    chunk.control.store(ChunkControl(ChunkState::kSpare, owner(), incarnation).word,
                        Point::kChunkRetired);
    spare_[spares_++] = i;
    return;
  }
  chunk.control.store(ChunkControl(ChunkState::kFree, 0, incarnation).word, Point::kChunkFreed);
  hints_.give(i);
}

std::uint64_t Chunks::renew(std::uint32_t i) {
  Chunk& chunk = segment_.chunk(i);
  const std::uint64_t incarnation =
      (ChunkControl(chunk.control.load()).incarnation() + 1) & Field<0, 36>::kMax;
  const std::uint64_t empty = empty_word(incarnation, 0);
  // First, so that one who copies the chunk sees by it that what he read may be of the next life.
  chunk.control.store(ChunkControl(ChunkState::kSpare, owner(), incarnation).word,
                      Point::kChunkRenewed);  // PAIR chunk-life
  // NO CRASH POINT: the chunk is private until the link is set
  for (Word& cell : chunk.cell) cell.store(empty, Point::kNone);
  // NO CRASH POINT: as above
  chunk.next.store(empty, Point::kNone);
  return incarnation;
}

void Chunks::intend(std::uint32_t chunk, std::uint64_t incarnation) {
  segment_.lane(lane_).chunk_intent.announce(Hint(chunk, incarnation).word | 1, Point::kIntentSet);
}

void Chunks::intend_nothing() {
  segment_.lane(lane_).chunk_intent.announce(0, Point::kIntentCleared);
}

void Chunks::settle(std::uint32_t i, ChunkControl found, bool reachable) {
  Word& control = segment_.chunk(i).control;
  if (reachable) {
    control.cas_once(found.word, ChunkControl(ChunkState::kLinked, 0, found.incarnation()).word,
                     Point::kChunkLinked);
  } else if (control.cas_once(found.word,
                              ChunkControl(ChunkState::kFree, 0, found.incarnation()).word,
                              Point::kChunkFreed)) {
    hints_.give(i);
  }
}

void Chunks::release() {
  while (spares_ > 0) {
    const std::uint32_t i = spare_[--spares_];
    Word& control = segment_.chunk(i).control;
    control.store(
        ChunkControl(ChunkState::kFree, 0, ChunkControl(control.load()).incarnation()).word,
        Point::kChunkFreed);
    hints_.give(i);
  }
  hints_.flush();
}

std::vector<std::uint64_t> Chunks::linked() const {
  std::vector<std::uint64_t> linked(segment_.geometry().chunks, ~0ULL);
  for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i) {
    const ChunkControl found(segment_.chunk(i).control.load());
    if (found.state() == ChunkState::kLinked) linked[i] = found.incarnation();
  }
  return linked;
}

std::uint32_t Chunks::in_use() const {
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

}  // namespace ojs_shm::shm
