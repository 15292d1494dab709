// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/moves/slots.hpp"

namespace ojs_shm::engine {

/// The slots of one lane's jobs, whose finished ones it lists fourteen at a time in the ring of
/// finished batches; the slot that has been finished for the longest time is used again first.
class SlotPool : public Slots {
 public:
  using Slots::Slots;

  /// Ends a job that is over, with all that is kept of it; false when its slot is not as it was
  /// found. What such jobs leave in the ring of finished batches goes with the next ones.
  bool drop(std::uint32_t slot, Control found);

  // ---- texts
  /// The first block, or kNoIndex; when blocks are short, the texts of the oldest finished jobs go.
  std::uint32_t write(std::uint32_t slot, std::uint32_t generation, std::string_view bytes);
  /// The same in blocks with that word: see SlotTexts::next_made_word().
  std::uint32_t write(std::uint64_t word, std::string_view bytes);

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

 private:
  /// The batch in which this lane lists, not yet for other lanes.
  struct Filling {
    std::uint32_t batch = kNoIndex, count = 0;
    shm::Chunk* chunk = nullptr;
    std::uint64_t oldest_ms = 0, began_ms = 0;
  };
  /// That of the last flush; count 0: it is not filled further.
  struct Flushed {
    shm::Hint batch{0};
    std::uint32_t count = 0;
  };
  template <class Each>
  void each_listed(std::uint32_t batch, Each each) const;
  void compact();
  bool go_on_filling(std::uint64_t now);
  void flush();
  void drop_batch(std::uint32_t batch);
  bool drop_oldest_finished();

  Filling filling_;
  Flushed flushed_;
  std::uint32_t dropped_ = 0;
};

}  // namespace ojs_shm::engine
