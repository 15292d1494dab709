// SPDX-License-Identifier: Apache-2.0
//
// The floor: one bare Vyukov ring for each priority, in shared memory, polled in order. No ack, no
// recovery, no ids.
#pragma once

#include <array>

#include "bench/peers/peer.hpp"
#include "bench/peers/vyukov_ring.hpp"
#include "bench/shared_array.hpp"
#include "bench/stopwatch.hpp"

namespace ojs_shm::bench {

class FiveRings {
 public:
  static constexpr const char* kName = "five_rings";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kShared;
  static constexpr std::size_t kRings = 5;
  static constexpr std::size_t kCellsPerRing = 4096;
  using Ring = VyukovRing<Body, kCellsPerRing>;

  explicit FiveRings(const Plan&) : rings_(kRings) {}

  class Producer {
   public:
    explicit Producer(FiveRings& peer) : rings_(&peer.rings_[0]) {}
    void enqueue(unsigned level, const Body& body) {
      for (FullQueueWait wait; !rings_[level].try_push(body);) wait();
    }

   private:
    Ring* rings_;
  };

  class Worker {
   public:
    explicit Worker(FiveRings& peer) : rings_(&peer.rings_[0]) {}
    bool poll(Body& out) {
      for (std::size_t i = 0; i < kRings; ++i) {
        if (rings_[i].try_pop(out)) return true;
      }
      return false;
    }
    void ack() {}

   private:
    Ring* rings_;
  };

 private:
  SharedArray<Ring> rings_;
};

}  // namespace ojs_shm::bench
