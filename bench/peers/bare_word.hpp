// SPDX-License-Identifier: Apache-2.0
//
// The physical limit of a hand-over, put in the form of a queue for one job: a body and one word
// that says it is there. Polling it costs one transfer of a cache line, parking on it one futex
// wake. Nothing can be faster than this.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstdint>

#include "bench/peers/peer.hpp"
#include "bench/shared_array.hpp"
#include "bench/stopwatch.hpp"
#include "shm/atomics.hpp"

namespace ojs_shm::bench {

class BareWord {
 public:
  static constexpr const char* kName = "bare_word";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kShared;

  explicit BareWord(const Plan&) : box_(1) {}

 private:
  struct Box {
    alignas(64) std::atomic<std::uint32_t> full{
        0};  // 64 bytes apart, so that word and body arrive as one pair of lines
    alignas(64) Body body;
    alignas(128) std::atomic<std::uint32_t> sleepers{0};
  };
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "the kernel waits on four bytes");

  static long futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value,
                    const timespec* timeout) {
    return ::syscall(SYS_futex, &word, what, value, timeout, nullptr, 0);
  }

 public:
  class Producer {
   public:
    explicit Producer(BareWord& peer) : box_(*peer.box_) {}
    void enqueue(unsigned, const Body& body) {
      while (box_.full.load(std::memory_order_acquire) != 0) pause_briefly();
      box_.body = body;
      box_.full.store(
          1, std::memory_order_seq_cst);  // PAIR bare-word: ordered before the look at sleepers
      if (box_.sleepers.load(std::memory_order_seq_cst) != 0)
        futex(box_.full, FUTEX_WAKE, INT_MAX, nullptr);
    }

   private:
    Box& box_;
  };

  class Worker {
   public:
    explicit Worker(BareWord& peer) : box_(*peer.box_) {}
    bool poll(Body& out) {
      if (box_.full.load(std::memory_order_acquire) == 0) return false;  // PAIR bare-word
      out = box_.body;
      return true;
    }
    bool receive(Body& out, Patience patience) {
      if (poll(out)) return true;
      const timespec timeout{patience.count() / 1000, patience.count() % 1000 * 1'000'000};
      box_.sleepers.store(1, std::memory_order_seq_cst);
      futex(box_.full, FUTEX_WAIT, 0, &timeout);
      box_.sleepers.store(0, std::memory_order_relaxed);
      return poll(out);
    }
    void ack() { box_.full.store(0, std::memory_order_release); }

   private:
    Box& box_;
  };

 private:
  SharedArray<Box> box_;
};

}  // namespace ojs_shm::bench
