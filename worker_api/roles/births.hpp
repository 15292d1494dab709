// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/tables/store.hpp"

namespace ojs_shm::internal {

/// The id of each slot's job and when it was created, as earlier walks over all slots have read
/// them. They never change for a job, and stand in another cache line than its state, its queue and
/// its generation: what a walk costs is the lines that it reads.
class Births {
 public:
  struct Birth {
    std::uint64_t created_at = 0;  ///< 0: no job is known
    engine::JobId id;
    std::uint32_t generation = 0;
  };

  /// Serves one walk at a time. A walk beside it remembers nothing and reads the slots.
  class Walk {
   public:
    Walk(Births& births, std::uint32_t slots) : lock_(births.mutex_, std::try_to_lock) {
      if (!lock_.owns_lock()) return;
      births.known_.resize(slots);
      known_ = births.known_.data();
    }

    bool knows_some(std::uint32_t slot) const {
      return known_ != nullptr && known_[slot].created_at != 0;
    }
    /// Nothing, when another job than the known one is in the slot.
    const Birth* find(std::uint32_t slot, std::uint32_t generation) const {
      return knows_some(slot) && known_[slot].generation == generation ? &known_[slot] : nullptr;
    }
    void remember(std::uint32_t slot, const Birth& birth) {
      if (known_ != nullptr) known_[slot] = birth;
    }

   private:
    std::unique_lock<std::mutex> lock_;
    Birth* known_ = nullptr;
  };

 private:
  std::mutex mutex_;
  std::vector<Birth> known_;
};

}  // namespace ojs_shm::internal
