// SPDX-License-Identifier: Apache-2.0
//
// ZeroMQ PUSH to PULL over ipc: messages in batches between two background threads. No priorities,
// no acks, and what a killed process held is gone.
#pragma once

#include <zmq.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "bench/peers/peer.hpp"
#include "bench/peers/server_process.hpp"

namespace ojs_shm::bench {

class ZeroMq {
 public:
  static constexpr const char* kName = "zeromq_ipc";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kBlocking;
  static constexpr Pace kPace = Pace::kNetwork;

  explicit ZeroMq(const Plan&) : address_("ipc://" + (directory_.path() / "socket").string()) {}

 private:
  class Socket {
   public:
    explicit Socket(int type) : context_(::zmq_ctx_new()), socket_(::zmq_socket(context_, type)) {}
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() {
      ::zmq_close(socket_);
      ::zmq_ctx_term(context_);
    }
    void* get() const { return socket_; }

    static void check(bool ok, const char* what) {
      if (!ok)
        throw std::runtime_error(std::string("zeromq ") + what + ": " +
                                 ::zmq_strerror(::zmq_errno()));
    }

   private:
    void* context_;
    void* socket_;
  };

 public:
  class Producer {
   public:
    explicit Producer(ZeroMq& peer) : socket_(ZMQ_PUSH) {
      Socket::check(::zmq_connect(socket_.get(), peer.address_.c_str()) == 0, "connect");
    }
    void enqueue(unsigned, const Body& body) {
      Socket::check(::zmq_send(socket_.get(), body.bytes, sizeof body, 0) == sizeof body, "send");
    }

   private:
    Socket socket_;
  };

  class Worker {
   public:
    explicit Worker(ZeroMq& peer) : socket_(ZMQ_PULL) {
      Socket::check(::zmq_bind(socket_.get(), peer.address_.c_str()) == 0, "bind");
    }
    bool poll(Body& out) {
      return took(::zmq_recv(socket_.get(), out.bytes, sizeof out, ZMQ_DONTWAIT));
    }
    bool receive(Body& out, Patience patience) {
      if (patience != patience_) {
        patience_ = patience;
        const int ms = static_cast<int>(patience.count());
        ::zmq_setsockopt(socket_.get(), ZMQ_RCVTIMEO, &ms, sizeof ms);
      }
      return took(::zmq_recv(socket_.get(), out.bytes, sizeof out, 0));
    }
    void ack() {}

   private:
    static bool took(int got) {
      if (got == sizeof(Body)) return true;
      Socket::check(::zmq_errno() == EAGAIN, "receive");
      return false;
    }
    Socket socket_;
    Patience patience_{-1};
  };

 private:
  TemporaryDirectory directory_;
  std::string address_;
};

}  // namespace ojs_shm::bench
