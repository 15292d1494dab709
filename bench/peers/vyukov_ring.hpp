// SPDX-License-Identifier: Apache-2.0
//
// Dmitry Vyukov's bounded queue for many producers and many consumers, the fastest simple thing
// that moves bodies through shared memory, and so the floor that everything else is measured
// against. It is not crash-safe: a process that is killed between taking a ticket and publishing
// its cell stops the ring for good.
//
// The cell of ticket t is t mod capacity. Its `turn` says whose it is:
//   turn == t             free for the producer that holds ticket t
//   turn == t + 1         holds the body of ticket t, for the consumer that holds ticket t
//   turn == t + capacity  free again, for the producer one lap later
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/atomics.hpp"

namespace ojs_shm::bench {

template <class T, std::size_t kCapacity>
class VyukovRing {
  static_assert((kCapacity & (kCapacity - 1)) == 0,
                "a capacity that is a power of two turns the modulo into a mask");

 public:
  VyukovRing() {
    for (std::size_t i = 0; i < kCapacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// False when full.
  bool try_push(const T& value) {
    std::uint64_t ticket = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket & (kCapacity - 1)];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);  // PAIR ring-free
      if (turn == ticket) {
        if (tail_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
          cell.value = value;
          cell.turn.store(ticket + 1, std::memory_order_release);  // PAIR ring-full
          return true;
        }
      } else if (turn < ticket) {
        return false;
      } else {
        ticket = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  /// False when empty.
  bool try_pop(T& out) {
    std::uint64_t ticket = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket & (kCapacity - 1)];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);  // PAIR ring-full
      if (turn == ticket + 1) {
        if (head_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
          out = cell.value;
          cell.turn.store(ticket + kCapacity, std::memory_order_release);  // PAIR ring-free
          return true;
        }
      } else if (turn < ticket + 1) {
        return false;
      } else {
        ticket = head_.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> turn;
    T value;
  };

  // 128 bytes apart: the adjacent-line prefetcher fetches lines in pairs.
  alignas(128) std::atomic<std::uint64_t> tail_{0};
  alignas(128) std::atomic<std::uint64_t> head_{0};
  alignas(128) Cell cells_[kCapacity];
};

}  // namespace ojs_shm::bench
