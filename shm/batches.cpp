// SPDX-License-Identifier: Apache-2.0
#include "shm/batches.hpp"

namespace ojs_shm::shm {

[[gnu::noinline]] std::uint32_t Batches::open() {
  const std::uint32_t c = chunks_.take();
  if (c == kNoIndex) return kNoIndex;
  const std::uint64_t incarnation = chunks_.renew(c);
  chunks_.segment().chunk(c).control.store(
      ChunkControl(ChunkState::kBatch, chunks_.owner(), incarnation).word, Point::kBatchOpened);
  return c;
}

[[gnu::noinline]] bool Batches::close(std::uint32_t c, std::uint32_t ring) {
  Chunk& chunk = chunks_.segment().chunk(c);
  Lane& lane = chunks_.segment().lane(chunks_.lane());
  const std::uint64_t incarnation = ChunkControl(chunk.control.load()).incarnation();
  lane.batch_intent.set(Hint(c, incarnation).word | 1, Point::kIntentSet);
  chunk.control.store(ChunkControl(ChunkState::kBatched, 0, incarnation).word, Point::kBatchClosed);
  // Without a chunk for its hint it is ours again, unless a lane took it by a hint of before.
  const bool done =
      rings_.push(ring, Hint(c, incarnation), nullptr, 0) || !seize(Hint(c, incarnation));
  lane.batch_intent.set(0, Point::kIntentCleared);
  return done;
}

/// Takes a batch that stands in a ring.
bool Batches::seize(Hint batch) {
  return chunks_.segment()
      .chunk(batch.index())
      .control.cas_once(ChunkControl(ChunkState::kBatched, 0, batch.tag()).word,
                        ChunkControl(ChunkState::kBatch, chunks_.owner(), batch.tag()).word,
                        Point::kBatchTaken);
}

[[gnu::noinline]] std::uint32_t Batches::take(std::uint32_t ring) {
  for (std::uint32_t left = rings_.longest_search(); left > 0; --left) {
    const Peeked front = rings_.peek(ring);
    if (front.empty()) return kNoIndex;
    const bool mine = seize(front.hint());
    Rings::retire(front);
    if (mine) return front.hint().index();
  }
  return kNoIndex;
}

/// A doubled hint is harmless; without a chunk for the hint the batch goes, and a scan finds its
/// slots.
void Batches::repair(std::uint32_t ring, std::span<const std::uint32_t> kept) {
  Lane& lane = chunks_.segment().lane(chunks_.lane());
  if (const std::uint64_t word = lane.batch_intent.get(); word != 0) {
    const Hint batch(word & ~7ULL);
    const ChunkControl batched(ChunkState::kBatched, 0, batch.tag());
    if (chunks_.segment().chunk(batch.index()).control.load() == batched.word &&
        !rings_.push(ring, batch, nullptr, 0))
      chunks_.settle(batch.index(), batched, false);
    lane.batch_intent.set(0, Point::kIntentCleared);
  }
  for (const std::uint32_t batch : kept)
    if (!close(batch, ring)) drop(batch);
}

}  // namespace ojs_shm::shm
