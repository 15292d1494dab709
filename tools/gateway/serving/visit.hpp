// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <string_view>

namespace ojs_shm::gateway {

class Shift;
class Talk;
struct Request;

/// The connection of a request that waits, streams or talks: sleeps that end early when the client
/// goes or the gateway closes, pieces of a stream, and a WebSocket.
class Visit {
 public:
  virtual ~Visit() = default;
  /// True once the client is gone, or the gateway is closing.
  virtual bool over() const = 0;
  virtual bool closing() const = 0;
  /// Until that long has passed, wake() or over().
  virtual boost::asio::awaitable<void> sleep(std::chrono::milliseconds time) = 0;
  virtual void wake() = 0;
  /// Sends the head of an event stream, once.
  virtual boost::asio::awaitable<void> begin_stream() = 0;
  virtual boost::asio::awaitable<void> send(std::string_view text) = 0;
  /// Makes a WebSocket of the connection, once, unless the client is gone, or is told why it gets
  /// none. Throws a Fault.
  virtual boost::asio::awaitable<void> begin_talk(const Request& request,
                                                  std::string_view subprotocol) = 0;
  /// nullptr: the connection is no WebSocket, or its client is gone.
  virtual Talk* talk() = 0;
  /// What waits on the thread of this connection.
  virtual Shift& shift() = 0;
};

}  // namespace ojs_shm::gateway
