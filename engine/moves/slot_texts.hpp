// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/tables/lane_counters.hpp"
#include "engine/tables/store.hpp"
#include "shm/blocks.hpp"

namespace ojs_shm::engine {

/// The blocks that hold the longer texts of slots: bodies, results, errors, reports. Those of one
/// lane, which takes them, and frees them again with the text or the slot.
class SlotTexts {
 public:
  SlotTexts(const Store& store, std::uint32_t lane)
      : store_(store), segment_(store.segment()), lane_(lane), blocks_(segment_, lane) {}

  /// The first block of a text in blocks with that word, or kNoIndex when blocks are short.
  std::uint32_t write(std::uint64_t word, std::string_view bytes) {
    return blocks_.write(word, bytes);
  }

  // ---- of a slot that this lane holds
  void free(std::uint32_t first, std::uint32_t slot, std::uint32_t generation) {
    blocks_.free_chain(first, slot, generation);
  }
  /// Its body, result and errors.
  void free_all(std::uint32_t slot, JobRecord& job);
  /// The text of its last report.
  void free_report(std::uint32_t slot, const JobRecord& job, std::uint64_t signals);

  // ---- of a slot that other lanes write as well, and no lane holds
  /// Of the blocks of one such text; another each time, whichever handle the lane serves.
  std::uint64_t next_made_word(std::uint32_t slot, std::uint32_t generation) {
    LaneWord& made = segment_.lane(lane_).counters[kTextsMade];
    made.set(made.get() + 1, shm::Point::kIntentSet);
    return shm::Blocks::made_word(slot, generation, lane_, static_cast<std::uint32_t>(made.get()));
  }
  /// Whether a lane is writing into blocks with that word, whatever has become of their slot.
  bool is_being_made(std::uint64_t word) const;
  void free_made(std::uint32_t first, std::uint64_t word) { blocks_.free_from_end(first, word); }
  /// Also the blocks to which no other block and no slot leads.
  void free_all_made(std::uint64_t word);

  // ---- after a death
  /// Frees the blocks that were written for a slot in a dead lane's hands and belong to none of its
  /// texts. A result that was written before the end of its job is not the job's.
  void drop_loose(std::uint32_t slot, JobRecord& job);
  /// Frees the blocks of slots that are free or have gone on to another generation.
  void sweep();
  /// Gives back the blocks that this lane has ready for its next texts.
  void close() { blocks_.release(); }

 private:
  const Store& store_;
  shm::Segment& segment_;
  std::uint32_t lane_;
  shm::Blocks blocks_;
};

}  // namespace ojs_shm::engine
