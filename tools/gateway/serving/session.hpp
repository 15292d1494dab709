// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/shift.hpp"
#include "tools/gateway/serving/talk.hpp"
#include "tools/gateway/serving/visit.hpp"
#include "tools/gateway/serving/wire.hpp"
#include "tools/gateway/streams/stream_count.hpp"

namespace ojs_shm::gateway {

class RequestParser;
class Server;
struct Route;

/// One connection: its requests one after the other, also those that were sent ahead. A client that
/// is too slow with a request or with taking its reply is dropped.
class Session final : public Visit {
 public:
  Session(Socket socket, Server& server, Shift& shift);
  ~Session() override;
  Session(const Session&) = delete;

  boost::asio::awaitable<void> converse();
  /// The gateway closes: what is being answered is answered, and nothing more.
  void close_soon();
  /// Time is up.
  void close_now();

  bool over() const override { return gone_ || closing_; }
  bool closing() const override { return closing_; }
  boost::asio::awaitable<void> sleep(std::chrono::milliseconds time) override;
  void wake() override { timer_.cancel(); }
  boost::asio::awaitable<void> begin_stream() override;
  boost::asio::awaitable<void> send(std::string_view text) override;
  boost::asio::awaitable<void> begin_talk(const Request& request,
                                          std::string_view subprotocol) override;
  Talk* talk() override { return talk_ && !gone_ ? &*talk_ : nullptr; }
  Shift& shift() override { return shift_; }

 private:
  /// False when the connection ends.
  boost::asio::awaitable<bool> serve_one();
  /// Until the parser has the whole head, and of the body what came with it.
  boost::asio::awaitable<bool> read_head(RequestParser& parser);
  boost::asio::awaitable<bool> read_body(RequestParser& parser);
  /// Answers what the parser did not take.
  std::optional<Fault> fault_of(boost::beast::error_code failed, const RequestParser& parser) const;
  boost::asio::awaitable<void> refuse(RequestParser& parser, const Fault& fault);
  /// The route, when the request may have it. Throws a Fault.
  const Route& admitted(Request& request);
  boost::asio::awaitable<Reply> answer_slowly(const Route& route, const Request& request);
  /// A place for one more stream of this client. Throws a Fault.
  StreamCount::Place stream_place(const Request& request);
  /// Into head_: the reply but its body.
  void print_head(const Reply& reply, const Request& request, bool keep_alive);
  /// As much of the reply as the kernel takes at once; the rest is in `unsent_`, as long as the
  /// reply lives.
  void write_now(const Reply& reply, const Request& request, bool keep_alive);
  boost::asio::awaitable<bool> write_rest();
  void watch_for_end();

  Server& server_;
  Shift& shift_;
  Wire stream_;
  std::optional<Talk> talk_;
  Shift::Watched watched_;
  boost::asio::steady_timer timer_;   ///< of a sleep
  boost::asio::steady_timer glance_;  ///< until the client's end is looked for again
  boost::beast::flat_buffer buffer_;
  std::string head_;  ///< of the reply that is written
  std::array<boost::asio::const_buffer, 2> unsent_;
  std::string request_id_;
  /// what a watcher of the connection may find gone
  std::shared_ptr<Session*> self_;
  bool gone_ = false, closing_ = false, idle_ = false, watching_ = false, streaming_ = false;
  bool sleeping_ = false;
  /// of the request that is answered: it wants no body, or does not know pieces (HTTP/1.0)
  bool head_alone_ = false, knows_chunks_ = true;
  bool sends_on_ = false;  ///< the client may still be sending what is not read
};

}  // namespace ojs_shm::gateway
