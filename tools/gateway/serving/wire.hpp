// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ojs_shm::gateway {

using Socket = boost::asio::generic::stream_protocol::socket;

/// The bytes of one connection, as they are or through TLS: a stream for Asio and Beast, which need
/// not know which. It stays where it was made.
class Wire {
 public:
  using Plain = Socket;
  using Clock = std::chrono::steady_clock;
  using executor_type = Plain::executor_type;

  /// Through TLS when there is a context.
  Wire(Socket socket, const std::shared_ptr<boost::asio::ssl::context>& context);
  Wire(const Wire&) = delete;

  executor_type get_executor() { return plain_.get_executor(); }
  /// The reads and writes to come have that long. It is the shift that looks, a few times a second,
  /// and closes the connection: a timer for each of them would cost a tenth of a short request.
  void expires_after(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  void expires_never() { deadline_ = Clock::time_point::max(); }
  bool has_expired(Clock::time_point now) const { return now >= deadline_; }

  /// Before the first byte is read or written: TLS's handshake. False when it failed.
  boost::asio::awaitable<bool> greet(std::chrono::milliseconds patience);
  /// Behind the last byte that is written: TLS's close_notify, and the end of what is sent.
  boost::asio::awaitable<void> part();
  /// Behind part(): takes what the client still sends, until it ends or its time is over. A close
  /// before would be told to it by a reset, which may overtake the last reply.
  boost::asio::awaitable<void> hear_out(std::chrono::milliseconds patience);
  /// Breaks off what is read or written; part() may follow.
  void break_off();
  void close();

  /// Tells when the client has sent something, or has closed its end.
  template <class Handler>
  void watch(Handler&& handler) {
    plain_.async_wait(Socket::wait_read, std::forward<Handler>(handler));
  }
  /// Where the client is; empty: on this machine, behind a Unix socket.
  std::string client_address() const;
  /// The client will send nothing more, as far as the kernel knows.
  bool client_has_closed();

  /// As many of the bytes as the kernel takes at once, so that a short reply needs no round through
  /// the loop; none through TLS.
  template <class Buffers>
  std::size_t write_now(const Buffers& buffers) {
    boost::system::error_code failed;  // async_write_some meets it again
    return tls_ ? 0 : plain_.write_some(buffers, failed);
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return plain_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return plain_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  Plain plain_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::unique_ptr<boost::asio::ssl::stream<Plain&>> tls_;
};

}  // namespace ojs_shm::gateway
