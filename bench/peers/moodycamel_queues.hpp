// SPDX-License-Identifier: Apache-2.0
//
// moodycamel::ConcurrentQueue, one for each priority, polled in order. In-process only: two
// threads, not two processes; and FIFO only for each producer.
#pragma once

#include <concurrentqueue/concurrentqueue.h>

#include <array>
#include <vector>

#include "bench/peers/peer.hpp"
#include "bench/stopwatch.hpp"

namespace ojs_shm::bench {

class MoodycamelQueues {
 public:
  static constexpr const char* kName = "moodycamel";
  static constexpr bool kInProcess = true;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kShared;
  using Queue = moodycamel::ConcurrentQueue<Body>;

  explicit MoodycamelQueues(const Plan& plan) {
    // Room set aside for each producer's own sub-queue, so that nothing is allocated in the timed
    // part.
    const std::size_t room = plan.waiting + 4096;
    for (unsigned i = 0; i < plan.levels; ++i) queues_.emplace_back(room, kMostProducers, 0);
  }

  class Producer {
   public:
    explicit Producer(MoodycamelQueues& peer) : peer_(peer) {
      for (Queue& queue : peer.queues_) tokens_.emplace_back(queue);
    }
    void enqueue(unsigned level, const Body& body) {
      // Its blocks may all stand in another producer's sub-queue for ever: then, rarely, it
      // allocates.
      unsigned patience = 10'000;
      for (FullQueueWait wait; !peer_.queues_[level].try_enqueue(tokens_[level], body); wait())
        if (--patience == 0) {
          peer_.queues_[level].enqueue(tokens_[level], body);
          return;
        }
    }

   private:
    MoodycamelQueues& peer_;
    std::vector<moodycamel::ProducerToken> tokens_;
  };

  class Worker {
   public:
    explicit Worker(MoodycamelQueues& peer) : peer_(peer) {
      for (Queue& queue : peer.queues_) tokens_.emplace_back(queue);
    }
    bool poll(Body& out) {
      for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (peer_.queues_[i].try_dequeue(tokens_[i], out)) return true;
      }
      return false;
    }
    void ack() {}

   private:
    MoodycamelQueues& peer_;
    std::vector<moodycamel::ConsumerToken> tokens_;
  };

 private:
  static constexpr std::size_t kMostProducers = 2;

  std::vector<Queue> queues_;
};

}  // namespace ojs_shm::bench
