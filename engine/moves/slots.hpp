// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/moves/slot_texts.hpp"
#include "engine/tables/new_job.hpp"
#include "engine/tables/store.hpp"
#include "shm/batches.hpp"
#include "shm/key_index.hpp"
#include "shm/magazine.hpp"

namespace ojs_shm::engine {

/// The slots of one lane's jobs with what hangs on them, their texts and client-supplied ids. It
/// hands out a slot for a new job, the one that has been finished for the longest time when none is
/// free, and ends what is left of a job.
class Slots {
 public:
  Slots(const Store& store, shm::Rings& rings, std::uint32_t lane);

  /// A slot in this lane's hands; its control word, with that ring, into `filling`. kNoIndex: each
  /// slot has a job.
  std::uint32_t take(std::uint64_t& filling, unsigned ring = 0);
  /// Ends a slot that this lane holds.
  void free(std::uint32_t slot, Control held);
  /// Enters an id that the client supplied.
  Outcome add_id(JobId id, std::uint32_t slot);
  shm::KeyIndex& keys() { return keys_; }
  SlotTexts& texts() { return texts_; }

  /// After a death: hints at all free slots again, and ids of jobs that are there alone.
  void sweep();

 protected:
  /// Ends a job that is over; false when its slot is not as it was found.
  bool end(std::uint32_t slot, Control found);

  /// The batch whose slots this lane uses again, and perhaps the next.
  struct Draining {
    std::uint32_t batch = kNoIndex, done = 0;
    const shm::Chunk *chunk = nullptr, *behind = nullptr;
  };
  const Store& store_;
  shm::Segment& segment_;
  shm::Rings& rings_;
  shm::Batches batches_;
  std::uint32_t owner_;
  shm::Magazine hints_;
  shm::KeyIndex keys_;
  SlotTexts texts_;
  Draining draining_;

 private:
  std::uint32_t scan(std::uint64_t& filling, unsigned ring);
  bool seize(std::uint32_t slot, JobRecord& job, Control found, std::uint64_t& filling,
             unsigned ring = 0);
  void recycle(std::uint32_t slot, JobRecord& job);
  void forget_id(std::uint32_t slot, const JobRecord& job);
  void forget_more(std::uint32_t slot, JobRecord& job, std::uint64_t signals);
  void ask_for_next_key() const;
};

}  // namespace ojs_shm::engine
