// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/ring.hpp"

namespace ojs_shm::shm {

/// The contents of a chunk, for code that looks at many chunks.
struct ChunkCopy {
  std::uint64_t cell[kCellsPerChunk];
  std::uint64_t next;
};

/// A copy of a chunk, or false when it has begun another life meanwhile.
inline bool copy_chunk(const Segment& segment, std::uint32_t index, std::uint64_t incarnation,
                       ChunkCopy& copy) {
  const Chunk& chunk = segment.chunk(index);
  for (unsigned i = 0; i < kCellsPerChunk; ++i) copy.cell[i] = chunk.cell[i].load();
  copy.next = chunk.next.load();
  return ChunkControl(chunk.control.load()).incarnation() == incarnation;  // PAIR chunk-life
}

}  // namespace ojs_shm::shm
