// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/wire.hpp"

namespace ojs_shm::gateway {

/// A WebSocket over the bytes of a connection: messages both ways. hear() may wait while something
/// is said. Source: RFC 6455.
class Talk {
 public:
  using Clock = std::chrono::steady_clock;
  using CloseCode = boost::beast::websocket::close_code;

  /// The longest message that is heard; a longer one ends the talk (1009).
  static constexpr std::size_t kLongestMessage = 4 * 1024;

  /// The client has `patience` to take the handshake's answer, and each message.
  Talk(Wire& wire, std::chrono::milliseconds patience);

  /// Answers the client's handshake, with this subprotocol if it offers that. False: the client is
  /// gone, or was told that it sent none.
  boost::asio::awaitable<bool> begin(const Request& request, std::string_view subprotocol);
  /// The next message; nothing: the talk is over.
  boost::asio::awaitable<std::optional<std::string>> hear();
  /// False: the talk is over.
  boost::asio::awaitable<bool> say(std::string_view text);
  boost::asio::awaitable<void> ping();
  /// When the last answer to a ping was heard; before the first, when the talk began.
  Clock::time_point last_pong() const { return last_pong_; }
  /// Says farewell and waits a moment for the client's; then a hear() that waits gives nothing.
  boost::asio::awaitable<void> end(CloseCode why);
  /// Without a farewell: the client answers no more.
  void break_off() { wire_.close(); }

 private:
  Wire& wire_;
  std::chrono::milliseconds patience_;
  boost::beast::websocket::stream<Wire&> stream_;
  Clock::time_point last_pong_ = Clock::now();
};

/// Beast asks this of a stream behind both farewells. There is nothing to do: the session ends the
/// wire.
template <class Handler>
void async_teardown(boost::beast::role_type, Wire& wire, Handler&& handler) {
  boost::asio::post(
      wire.get_executor(),
      boost::beast::bind_front_handler(std::forward<Handler>(handler), boost::beast::error_code()));
}
/// And this where a time that Beast looks after is over.
inline void beast_close_socket(Wire& wire) { wire.close(); }

}  // namespace ojs_shm::gateway
