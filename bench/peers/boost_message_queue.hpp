// SPDX-License-Identifier: Apache-2.0
//
// Boost.Interprocess message_queue: shared memory, real priorities, one lock around everything. A
// process that is killed while it holds the lock stops the queue for good.
#pragma once

#include <unistd.h>

#include <boost/interprocess/ipc/message_queue.hpp>
#include <chrono>
#include <string>

#include "bench/peers/peer.hpp"

namespace ojs_shm::bench {

class BoostMessageQueue {
 public:
  static constexpr const char* kName = "boost_message_queue";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kKernel;
  using Queue = boost::interprocess::message_queue;

  explicit BoostMessageQueue(const Plan& plan)
      : name_("ojs-shm-bench." + std::to_string(::getpid())) {
    Queue::remove(name_.c_str());
    Queue(boost::interprocess::create_only, name_.c_str(), plan.waiting + kMostWaiting,
          sizeof(Body));
  }
  BoostMessageQueue(const BoostMessageQueue&) = delete;
  BoostMessageQueue& operator=(const BoostMessageQueue&) = delete;
  ~BoostMessageQueue() { Queue::remove(name_.c_str()); }

  class Producer {
   public:
    explicit Producer(BoostMessageQueue& peer)
        : queue_(boost::interprocess::open_only, peer.name_.c_str()) {}
    void enqueue(unsigned level, const Body& body) { queue_.send(&body, sizeof body, 255 - level); }

   private:
    Queue queue_;
  };

  class Worker {
   public:
    explicit Worker(BoostMessageQueue& peer)
        : queue_(boost::interprocess::open_only, peer.name_.c_str()) {}
    bool poll(Body& out) { return queue_.try_receive(&out, sizeof out, size_, priority_); }
    bool receive(Body& out, Patience patience) {
      return queue_.timed_receive(&out, sizeof out, size_, priority_,
                                  std::chrono::system_clock::now() + patience);
    }
    void ack() {}

   private:
    Queue queue_;
    Queue::size_type size_ = 0;
    unsigned priority_ = 0;
  };

 private:
  // A backlog costs it a search in a sorted index, so it is kept as short as a saturated run
  // allows.
  static constexpr std::size_t kMostWaiting = 1024;

  std::string name_;
};

}  // namespace ojs_shm::bench
