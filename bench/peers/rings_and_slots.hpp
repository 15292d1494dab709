// SPDX-License-Identifier: Apache-2.0
//
// The floor of a queue whose jobs have a record of their own: the five rings carry the number of a
// slot, its body lies there, and an ack gives the slot back through a ring of free ones. The worker
// knows which line to ask for only once the number has come, so that two lines travel one after the
// other. No states, no recovery, no ids.
#pragma once

#include "bench/peers/five_rings.hpp"

namespace ojs_shm::bench {

class RingsAndSlots {
 public:
  static constexpr const char* kName = "rings_and_slots";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kShared;

  explicit RingsAndSlots(const Plan&) : shared_(1) {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) shared_->free.try_push(slot);
  }

 private:
  static constexpr std::size_t kSlots = 8192;
  struct alignas(64) Slot {
    Body body;
  };
  struct Shared {
    VyukovRing<std::uint32_t, FiveRings::kCellsPerRing> levels[FiveRings::kRings];
    VyukovRing<std::uint32_t, kSlots> free;
    Slot slots[kSlots];
  };

 public:
  class Producer {
   public:
    explicit Producer(RingsAndSlots& peer) : shared_(&peer.shared_[0]) {}
    void enqueue(unsigned level, const Body& body) {
      std::uint32_t slot = 0;
      for (FullQueueWait wait; !shared_->free.try_pop(slot);) wait();
      shared_->slots[slot].body = body;
      for (FullQueueWait wait; !shared_->levels[level].try_push(slot);) wait();
    }

   private:
    Shared* shared_;
  };

  class Worker {
   public:
    explicit Worker(RingsAndSlots& peer) : shared_(&peer.shared_[0]) {}
    bool poll(Body& out) {
      for (auto& level : shared_->levels) {
        if (!level.try_pop(held_)) continue;
        out = shared_->slots[held_].body;
        return true;
      }
      return false;
    }
    void ack() { shared_->free.try_push(held_); }  // never full: it has room for every slot

   private:
    Shared* shared_;
    std::uint32_t held_ = 0;
  };

 private:
  SharedArray<Shared> shared_;
};

}  // namespace ojs_shm::bench
