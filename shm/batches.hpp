// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "shm/ring.hpp"

namespace ojs_shm::shm {

/// Batches of hints: a batch is an ordinary chunk that a lane fills privately, and that then stands
/// in a ring as one hint. By the rings of a lane, for its thread.
class Batches {
 public:
  explicit Batches(Rings& rings) : rings_(rings), chunks_(rings.chunks()) {}

  /// A new batch, to be filled; kNoIndex: no chunk is free.
  std::uint32_t open();
  static void put(Chunk& chunk, unsigned cell, Hint hint) {
    chunk.cell[cell].store(hint.word, Point::kBatchWritten);
  }
  /// Puts it into the ring. False: no chunk is free for its hint, and it is open as before.
  bool close(std::uint32_t batch, std::uint32_t ring);
  /// Takes a batch that this lane has closed back into its hands, to fill it further; false when
  /// a lane has taken it. Its hint stays in the ring, or consumers pass it meanwhile; closing the
  /// batch again makes another hint, and the first lane to reach either takes the batch.
  bool reopen(Hint batch) { return seize(batch); }
  /// The oldest batch of `ring`, now owned by this lane, or kNoIndex.
  std::uint32_t take(std::uint32_t ring);
  void drop(std::uint32_t batch) { chunks_.keep_or_free(batch); }
  /// Brings what a former life of this lane left into the ring where it belongs: the batch that it
  /// was closing, and those that it kept, as Rings::repair() has found them.
  void repair(std::uint32_t ring, std::span<const std::uint32_t> kept);

 private:
  bool seize(Hint batch);

  Rings& rings_;
  Chunks& chunks_;
};

}  // namespace ojs_shm::shm
