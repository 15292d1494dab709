// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/moves/slot_texts.hpp"
#include "engine/tables/new_job.hpp"
#include "engine/tables/store.hpp"
#include "shm/batches.hpp"
#include "shm/key_index.hpp"
#include "shm/magazine.hpp"

namespace ojs_shm::engine {

/// The slots of one lane's jobs with what hangs on them, their texts and client-supplied ids. It
/// hands out a slot for a new job, takes finished ones back, and lists them fourteen at a time in
/// the ring of finished batches, where the slot that has been finished for the longest time is used
/// again first.
class SlotPool {
 public:
  SlotPool(const Store& store, shm::Rings& rings, std::uint32_t lane);

  // ---- a new job
  /// A slot in this lane's hands; its control word, with that ring, into `filling`. kNoIndex: each
  /// slot has a job.
  std::uint32_t take(std::uint64_t& filling, unsigned ring = 0);
  /// Ends a slot that this lane holds.
  void free(std::uint32_t slot, Control held);
  /// Ends a job that is over, with all that is kept of it; false when its slot is not as it was
  /// found. What such jobs leave in the ring of finished batches goes with the next ones.
  bool drop(std::uint32_t slot, Control found);
  /// Enters an id that the client supplied.
  Outcome add_id(JobId id, std::uint32_t slot);
  shm::KeyIndex& keys() { return keys_; }

  // ---- texts
  /// The first block, or kNoIndex; when blocks are short, the texts of the oldest finished jobs go.
  std::uint32_t write(std::uint32_t slot, std::uint32_t generation, std::string_view bytes);
  /// The same in blocks with that word: see SlotTexts::next_made_word().
  std::uint32_t write(std::uint64_t word, std::string_view bytes);
  SlotTexts& texts() { return texts_; }

  // ---- finished jobs
  /// Puts a finished slot where the oldest are used again first.
  void list(std::uint32_t slot, Control settled);
  /// Before sleeping: with a retention time, publishes what this lane has listed, so that it is
  /// dropped in time. Else a batch stays here until it is full, so that a trickle of jobs needs no
  /// chunk for each; a scan finds its slots.
  void rest();
  /// The same, if the first has been kept back for so long.
  void rest_after(std::uint64_t ms) {
    if (filling_.count != 0 && store_.now_ms() - filling_.oldest_ms > ms) rest();
  }
  /// False when nothing is listed.
  bool drop_oldest_batch();
  /// Frees batches that are older than the retention time; the time of the next one, 0 for never.
  std::uint64_t drop_expired(std::uint64_t now);
  /// Gives everything back.
  void close();

  // ---- after a death
  /// Lists a slot if it is finished. Twice does no harm: the second is dead once the first has been
  /// used.
  void relist(std::uint32_t slot);
  /// Hints at all free slots again, and ids of jobs that are there alone.
  void sweep();

 private:
  /// The batch in which this lane lists, not yet for other lanes.
  struct Filling {
    std::uint32_t batch = kNoIndex, count = 0;
    shm::Chunk* chunk = nullptr;
    std::uint64_t oldest_ms = 0, began_ms = 0;
  };
  /// The batch whose slots this lane uses again, and perhaps the next.
  struct Draining {
    std::uint32_t batch = kNoIndex, done = 0;
    const shm::Chunk *chunk = nullptr, *behind = nullptr;
  };
  /// That of the last flush; count 0: it is not filled further.
  struct Flushed {
    shm::Hint batch{0};
    std::uint32_t count = 0;
  };
  std::uint32_t scan(std::uint64_t& filling, unsigned ring);
  bool end(std::uint32_t slot, Control found);
  template <class Each>
  void each_listed(std::uint32_t batch, Each each) const;
  void compact();
  bool seize(std::uint32_t slot, JobRecord& job, Control found, std::uint64_t& filling,
             unsigned ring = 0);
  void recycle(std::uint32_t slot, JobRecord& job);
  void forget_id(std::uint32_t slot, const JobRecord& job);
  void forget_more(std::uint32_t slot, JobRecord& job, std::uint64_t signals);
  void ask_for_next_key() const;
  bool go_on_filling(std::uint64_t now);
  void flush();
  void drop_batch(std::uint32_t batch);
  bool drop_oldest_finished();

  const Store& store_;
  shm::Segment& segment_;
  shm::Rings& rings_;
  shm::Batches batches_;
  std::uint32_t owner_;
  shm::Magazine hints_;
  shm::KeyIndex keys_;
  SlotTexts texts_;
  Filling filling_;
  Draining draining_;
  Flushed flushed_;
  std::uint32_t dropped_ = 0;
};

}  // namespace ojs_shm::engine
