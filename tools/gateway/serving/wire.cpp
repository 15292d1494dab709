// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/wire.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <vector>

namespace ojs_shm::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

/// How long a client may keep us from saying that the connection ends.
constexpr std::chrono::seconds kFarewell{2};

}  // namespace

Wire::Wire(Socket socket, const std::shared_ptr<asio::ssl::context>& context)
    : plain_(std::move(socket)) {
  beast::error_code ignored;
  plain_.non_blocking(true, ignored);  // for write_now()
  if (context) tls_ = std::make_unique<asio::ssl::stream<Plain&>>(plain_, *context);
}

asio::awaitable<bool> Wire::greet(std::chrono::milliseconds patience) {
  if (!tls_) co_return true;
  expires_after(patience);
  beast::error_code failed;
  co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                 asio::redirect_error(asio::use_awaitable, failed));
  co_return !failed;
}

asio::awaitable<void> Wire::part() {
  beast::error_code ignored;
  if (tls_ && SSL_is_init_finished(tls_->native_handle()) == 1) {
    // As if the client's own close_notify were there already: it is not waited for.
    SSL_set_shutdown(tls_->native_handle(), SSL_RECEIVED_SHUTDOWN);
    expires_after(kFarewell);
    co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
  }
  plain_.shutdown(Socket::shutdown_send, ignored);
}

asio::awaitable<void> Wire::hear_out(std::chrono::milliseconds patience) {
  expires_after(patience);
  std::vector<char> scrap(16 * 1024);
  beast::error_code failed;
  while (!failed)
    co_await plain_.async_read_some(asio::buffer(scrap),
                                    asio::redirect_error(asio::use_awaitable, failed));
}

void Wire::break_off() {
  beast::error_code ignored;
  plain_.cancel(ignored);
}

void Wire::close() {
  beast::error_code ignored;
  plain_.close(ignored);
}

std::string Wire::client_address() const {
  beast::error_code gone;
  const auto end = plain_.remote_endpoint(gone);
  char text[INET6_ADDRSTRLEN] = "";
  if (!gone && end.protocol().family() == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(end.data())->sin_addr, text,
                sizeof text);
  else if (!gone && end.protocol().family() == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(end.data())->sin6_addr, text,
                sizeof text);
  return text;
}

/// Of the kernel, for what lies unread may be requests sent ahead, or records of TLS.
bool Wire::client_has_closed() {
  pollfd look{plain_.native_handle(), POLLRDHUP, 0};
  return ::poll(&look, 1, 0) != 0 &&
         (look.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace ojs_shm::gateway
