// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/talk.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/websocket.hpp>

namespace ojs_shm::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;

namespace {

/// How long the client has to say farewell.
constexpr std::chrono::seconds kFarewell{2};

beast::string_view viewed(std::string_view text) { return {text.data(), text.size()}; }

bool offers(const Request& request, std::string_view subprotocol) {
  return std::ranges::any_of(request.headers, [&](const auto& header) {
    return header.first == "sec-websocket-protocol" &&
           http::token_list(viewed(header.second)).exists(viewed(subprotocol));
  });
}

}  // namespace

Talk::Talk(Wire& wire, std::chrono::milliseconds patience)
    : wire_(wire), patience_(patience), stream_(wire) {
  stream_.read_message_max(kLongestMessage);
  stream_.auto_fragment(false);
  stream_.control_callback([this](websocket::frame_type kind, beast::string_view) {
    if (kind == websocket::frame_type::pong) last_pong_ = Clock::now();
  });
}

asio::awaitable<bool> Talk::begin(const Request& request, std::string_view subprotocol) {
  http::request<http::empty_body> knock{http::verb::get, "/", 11};
  for (const auto& [name, value] : request.headers) knock.insert(viewed(name), viewed(value));
  const bool known = offers(request, subprotocol);
  const std::string taken(known ? subprotocol : std::string_view());
  stream_.set_option(
      websocket::stream_base::decorator([taken, id = request.id](websocket::response_type& reply) {
        reply.set(http::field::server, "ojs-shm-gateway");
        reply.set("OJS-Version", "1.0");
        reply.set("X-Request-ID", id);
        if (!taken.empty()) reply.set(http::field::sec_websocket_protocol, taken);
      }));
  beast::error_code failed;
  wire_.expires_after(patience_);
  co_await stream_.async_accept(knock, asio::redirect_error(asio::use_awaitable, failed));
  wire_.expires_never();
  co_return !failed;
}

asio::awaitable<std::optional<std::string>> Talk::hear() {
  std::string message;
  auto room = asio::dynamic_buffer(message);
  beast::error_code failed;
  co_await stream_.async_read(room, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return std::nullopt;
  co_return std::move(message);
}

asio::awaitable<bool> Talk::say(std::string_view text) {
  beast::error_code failed;
  wire_.expires_after(patience_);
  co_await stream_.async_write(asio::buffer(text.data(), text.size()),
                               asio::redirect_error(asio::use_awaitable, failed));
  wire_.expires_never();
  co_return !failed;
}

asio::awaitable<void> Talk::ping() {
  beast::error_code failed;  // hear() tells it
  wire_.expires_after(patience_);
  co_await stream_.async_ping({}, asio::redirect_error(asio::use_awaitable, failed));
  wire_.expires_never();
}

asio::awaitable<void> Talk::end(CloseCode why) {
  beast::error_code ignored;
  wire_.expires_after(kFarewell);
  co_await stream_.async_close(why, asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace ojs_shm::gateway
