// SPDX-License-Identifier: Apache-2.0
//
// POSIX message queues: the kernel keeps the messages, so no SIGKILL wedges them. A system call for
// each message.
#pragma once

#include <fcntl.h>
#include <mqueue.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

#include "bench/peers/peer.hpp"

namespace ojs_shm::bench {

class PosixMq {
 public:
  static constexpr const char* kName = "posix_mq";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kKernel;

  explicit PosixMq(const Plan& plan) : name_("/ojs-shm-bench." + std::to_string(::getpid())) {
    ::mq_unlink(name_.c_str());
    mq_attr shape{};
    shape.mq_msgsize = sizeof(Body);
    // Without privileges the kernel allows only the small number of /proc/sys/fs/mqueue/msg_max,
    // often 10.
    const rlimit wanted{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_MSGQUEUE, &wanted);
    for (const long most : {static_cast<long>(plan.waiting + kMostWaiting), 10L}) {
      shape.mq_maxmsg = most;
      const mqd_t queue = ::mq_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &shape);
      if (queue < 0) continue;
      ::mq_close(queue);
      if (static_cast<std::size_t>(most) > plan.waiting) return;
      ::mq_unlink(name_.c_str());
      throw std::runtime_error(
          "not on this machine: the kernel gives this user queues of at most " +
          std::to_string(most) + " messages");
    }
    throw std::system_error(errno, std::generic_category(), "mq_open " + name_);
  }
  PosixMq(const PosixMq&) = delete;
  PosixMq& operator=(const PosixMq&) = delete;
  ~PosixMq() { ::mq_unlink(name_.c_str()); }

 private:
  class Handle {
   public:
    Handle(const std::string& name, int flags) : queue_(::mq_open(name.c_str(), flags)) {
      if (queue_ < 0) throw std::system_error(errno, std::generic_category(), "mq_open " + name);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { ::mq_close(queue_); }
    mqd_t get() const { return queue_; }

   private:
    mqd_t queue_;
  };

 public:
  class Producer {
   public:
    explicit Producer(PosixMq& peer) : queue_(peer.name_, O_WRONLY) {}
    void enqueue(unsigned level, const Body& body) {
      if (::mq_send(queue_.get(), body.bytes, sizeof body, 255 - level) != 0) {
        throw std::system_error(errno, std::generic_category(), "mq_send");
      }
    }

   private:
    Handle queue_;
  };

  class Worker {
   public:
    explicit Worker(PosixMq& peer)
        : queue_(peer.name_, O_RDONLY), look_(peer.name_, O_RDONLY | O_NONBLOCK) {}
    bool poll(Body& out) { return took(::mq_receive(look_.get(), out.bytes, sizeof out, nullptr)); }
    bool receive(Body& out, Patience patience) {
      timespec until{};
      ::clock_gettime(CLOCK_REALTIME, &until);
      const auto ns = until.tv_nsec + std::chrono::nanoseconds(patience).count();
      until.tv_sec += ns / 1'000'000'000;
      until.tv_nsec = ns % 1'000'000'000;
      return took(::mq_timedreceive(queue_.get(), out.bytes, sizeof out, nullptr, &until));
    }
    void ack() {}

   private:
    static bool took(ssize_t got) {
      if (got == sizeof(Body)) return true;
      if (errno == EAGAIN || errno == ETIMEDOUT) return false;
      throw std::system_error(errno, std::generic_category(), "mq_receive");
    }
    Handle queue_;
    Handle look_;
  };

 private:
  static constexpr std::size_t kMostWaiting = 1024;

  std::string name_;
};

}  // namespace ojs_shm::bench
