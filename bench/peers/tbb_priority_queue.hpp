// SPDX-License-Identifier: Apache-2.0
//
// tbb::concurrent_priority_queue: a heap behind an aggregator. In-process only. A sequence number
// makes it FIFO in a level.
#pragma once

#include <oneapi/tbb/concurrent_priority_queue.h>

#include <cstdint>

#include "bench/peers/peer.hpp"
#include "bench/stopwatch.hpp"

namespace ojs_shm::bench {

class TbbPriorityQueue {
 public:
  static constexpr const char* kName = "tbb_priority_queue";
  static constexpr bool kInProcess = true;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kKernel;

  explicit TbbPriorityQueue(const Plan& plan)
      : most_waiting_(plan.waiting + 1024), queue_(most_waiting_) {}

 private:
  struct Item {
    std::uint64_t rank;  // level, then order of arrival
    Body body;
  };
  struct IsServedLater {
    bool operator()(const Item& a, const Item& b) const { return a.rank > b.rank; }
  };
  using Queue = tbb::concurrent_priority_queue<Item, IsServedLater>;

 public:
  class Producer {
   public:
    explicit Producer(TbbPriorityQueue& peer) : peer_(peer) {}
    void enqueue(unsigned level, const Body& body) {
      for (FullQueueWait wait; peer_.queue_.size() >= peer_.most_waiting_;) wait();
      peer_.queue_.push(Item{std::uint64_t{level} << 48 | sequence_++, body});
    }

   private:
    TbbPriorityQueue& peer_;
    std::uint64_t sequence_ = 0;
  };

  class Worker {
   public:
    explicit Worker(TbbPriorityQueue& peer) : peer_(peer) {}
    bool poll(Body& out) {
      Item item;
      if (!peer_.queue_.try_pop(item)) return false;
      out = item.body;
      return true;
    }
    void ack() {}

   private:
    TbbPriorityQueue& peer_;
  };

 private:
  std::size_t most_waiting_;
  Queue queue_;
};

}  // namespace ojs_shm::bench
