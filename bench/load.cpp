// SPDX-License-Identifier: Apache-2.0
#include "bench/load.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "bench/stopwatch.hpp"

namespace ojs_shm::bench {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Connection {
  Socket socket;
  Dialogue& dialogue;
  std::string received = {};
  std::uint64_t left = 0;  ///< requests
  std::uint64_t due = 0;   ///< ticks

  void ask(std::uint64_t at) {
    due = at;
    --left;
    std::string_view request = dialogue.next();
    while (!request.empty()) {
      const ssize_t sent = ::send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL);
      if (sent < 0) fail("send");
      request.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  /// Whether the answer is whole now.
  bool hear() {
    char bytes[65'536];
    const ssize_t got = ::recv(socket.fd(), bytes, sizeof bytes, 0);
    if (got <= 0) fail("receive");
    received.append(bytes, static_cast<std::size_t>(got));
    const std::size_t length = dialogue.answer(received);
    received.erase(0, length);
    return length != 0;
  }
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

std::uint16_t free_port() {
  const Socket probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(probe.fd(), any, size) != 0 || ::getsockname(probe.fd(), any, &size) != 0)
    fail("find a port");
  return ntohs(address.sin_port);
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (fd < 0) fail("socket");
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    ::close(fd);
    throw std::system_error(why, std::generic_category(), "connect to " + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

LoadResult drive(std::uint16_t port, Dialogues& dialogues, std::uint64_t requests,
                 double per_second) {
  const Socket poll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<Connection> connections;
  std::deque<std::size_t> idle;
  for (auto& dialogue : dialogues) {
    connections.push_back({Socket(connect_to(port)), *dialogue});
    connections.back().left = requests / dialogues.size();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = idle.size();
    if (::epoll_ctl(poll.fd(), EPOLL_CTL_ADD, connections.back().socket.fd(), &event) != 0)
      fail("epoll");
    idle.push_back(idle.size());
  }
  LoadResult result;
  result.waits_us.reserve(requests);
  const double gap_ticks = per_second == 0 ? 0 : 1e9 / per_second / ns_per_tick();
  const std::uint64_t begun = ticks();
  const auto due_of = [&](std::uint64_t n) {
    return begun + static_cast<std::uint64_t>(static_cast<double>(n) * gap_ticks);
  };
  for (std::uint64_t asked = 0; result.waits_us.size() < requests;) {
    const std::uint64_t now = ticks();
    while (!idle.empty() && asked < requests && (per_second == 0 || due_of(asked) <= now)) {
      connections[idle.front()].ask(per_second == 0 ? now : due_of(asked));
      idle.pop_front();
      ++asked;
    }
    epoll_event events[64];
    // with a pace it looks again and again: a sleep would be late
    const int count =
        ::epoll_wait(poll.fd(), events, std::size(events), per_second == 0 ? 10'000 : 0);
    if (count < 0 && errno != EINTR) fail("epoll");
    if (count == 0 && per_second == 0) throw std::runtime_error("no answer for ten seconds");
    for (int i = 0; i < count; ++i) {
      Connection& connection = connections[events[i].data.u64];
      if (!connection.hear()) continue;
      result.waits_us.push_back(ns_between(connection.due, ticks()) / 1000);
      if (connection.left != 0) idle.push_back(events[i].data.u64);
    }
  }
  result.seconds = ns_between(begun, ticks()) / 1e9;
  return result;
}

}  // namespace ojs_shm::bench
