// SPDX-License-Identifier: Apache-2.0
//
// beanstalkd, a job server with priorities and acks in memory, over its text protocol, one request
// at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bench/peers/peer.hpp"
#include "bench/peers/server_process.hpp"

namespace ojs_shm::bench {

class Beanstalkd {
 public:
  static constexpr const char* kName = "beanstalkd";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kBlocking;
  static constexpr Pace kPace = Pace::kServer;

  explicit Beanstalkd(const Plan&)
      : socket_(directory_.path() / "socket"),
        server_({"beanstalkd", "-l", "unix:" + socket_.string()}, socket_) {}

 private:
  class Connection {
   public:
    explicit Connection(const std::filesystem::path& socket) : fd_(connect_to(socket)) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    void send(std::string_view bytes);
    std::string_view read_line();
    void read_body(Body& out);

   private:
    void read_more();
    int fd_;
    std::string buffer_;
    std::size_t used_ = 0;
  };

 public:
  class Producer {
   public:
    explicit Producer(Beanstalkd& peer) : connection_(peer.socket_) {}
    void enqueue(unsigned level, const Body& body);

   private:
    Connection connection_;
  };

  class Worker {
   public:
    explicit Worker(Beanstalkd& peer) : connection_(peer.socket_) {}
    bool poll(Body& out) { return reserve(out, 0); }
    bool receive(Body& out, Patience patience) {
      return reserve(out, static_cast<unsigned>(patience.count() / 1000 + 1));
    }
    void ack();

   private:
    bool reserve(Body& out, unsigned seconds);
    Connection connection_;
    std::string job_;
  };

 private:
  TemporaryDirectory directory_;
  std::filesystem::path socket_;
  ServerProcess server_;
};

}  // namespace ojs_shm::bench
