// SPDX-License-Identifier: Apache-2.0
#include "tools/exporter/server.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <utility>

#include "tools/metrics/negotiate.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/signals.hpp"

namespace ojs_shm::exporter {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds kPatience{10};  // for one request, and for the next on a connection
constexpr std::uint32_t kHeaderBytes = 8192;
constexpr unsigned kConnections = 64;

constexpr std::string_view kStartPage =
    "<!doctype html><title>ojs-shm-exporter</title><h1>ojs-shm-exporter</h1>"
    "<p><a href=\"/metrics\">Metrics</a></p>\n";

using Request = http::request<http::empty_body>;
using Reply = http::response<http::string_body>;

struct Server {
  const std::function<metrics::Page()>& collect;
  unsigned connections = 0;
};

Reply reply_to(const Request& request, const Server& server) {
  Reply reply{http::status::ok, request.version()};
  reply.set(http::field::server, "ojs-shm-exporter");
  reply.set(http::field::content_type, "text/plain; charset=utf-8");
  reply.keep_alive(request.keep_alive());
  const std::string_view target(request.target().data(), request.target().size());
  const std::string_view path = target.substr(0, target.find('?'));
  if (path != "/metrics" && path != "/") {
    reply.result(http::status::not_found);
    reply.body() = "there is no such page; the metrics are at /metrics\n";
  } else if (request.method() != http::verb::get && request.method() != http::verb::head) {
    reply.result(http::status::method_not_allowed);
    reply.set(http::field::allow, "GET, HEAD");
    reply.body() = "only GET and HEAD are answered\n";
  } else if (path == "/") {
    reply.set(http::field::content_type, "text/html; charset=utf-8");
    reply.body() = kStartPage;
  } else {
    const auto accept = request[http::field::accept];
    const bool openmetrics = metrics::wants_openmetrics({accept.data(), accept.size()});
    reply.set(http::field::content_type,
              openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8");
    const metrics::Page page = server.collect();
    reply.body() = openmetrics ? page.openmetrics_text() : page.prometheus_text();
  }
  reply.prepare_payload();
  if (request.method() == http::verb::head) reply.body().clear();
  return reply;
}

/// The requests of one connection. A client that is silent for too long, or sends what is no
/// request, is dropped.
asio::awaitable<void> converse(tcp::socket socket, Server& server) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer(kHeaderBytes);
  beast::error_code failed;
  for (bool goes_on = true; goes_on && !failed;) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kHeaderBytes);
    stream.expires_after(kPatience);
    co_await http::async_read(stream, buffer, parser,
                              asio::redirect_error(asio::use_awaitable, failed));
    if (failed) break;

    const Reply reply = reply_to(parser.get(), server);
    goes_on = reply.keep_alive();
    stream.expires_after(kPatience);
    co_await http::async_write(stream, reply, asio::redirect_error(asio::use_awaitable, failed));
  }
  beast::error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
  --server.connections;
}

asio::awaitable<void> accept_all(tcp::acceptor& acceptor, Server& server) {
  asio::steady_timer pause(acceptor.get_executor());
  for (;;) {
    beast::error_code failed;
    tcp::socket socket =
        co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
    if (failed == asio::error::operation_aborted) co_return;
    if (failed) {  // most often descriptors are short for a while
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    if (server.connections == kConnections) continue;  // closes it
    ++server.connections;
    asio::co_spawn(acceptor.get_executor(), converse(std::move(socket), server), asio::detached);
  }
}

[[noreturn]] void cannot_listen(const Address& address, const boost::system::error_code& why) {
  const Code code = why == asio::error::access_denied    ? Code::kPermission
                    : why == asio::error::address_in_use ? Code::kInUse
                                                         : Code::kCannotAttach;
  shell::refuse(code, fmt::format("cannot listen on {}:{}: {}; choose another --listen HOST:PORT",
                                  address.host, address.port, why.message()));
}

tcp::acceptor listen(asio::io_context& context, const Address& address) {
  beast::error_code failed;
  tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, failed);
  if (failed || found.empty()) cannot_listen(address, failed);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) cannot_listen(address, failed);
  return acceptor;
}

}  // namespace

Address parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Address address{std::string(host), 0};
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool whole = read.ec == std::errc{} && read.ptr == port.data() + port.size();
  if (host.empty() || !whole)
    shell::refuse(Code::kInvalid,
                  fmt::format("--listen: '{}' is not HOST:PORT; 127.0.0.1:9464 is one", text));
  return address;
}

void serve(const Address& address, const std::function<metrics::Page()>& collect,
           const std::function<void(const std::string& url)>& ready) {
  asio::io_context context(1);
  // a reader that went away is an error of the write
  std::signal(SIGPIPE, SIG_IGN);
  // It has no file to read again: SIGHUP ends it, as it ends what has lost its terminal.
  const shell::SignalDescriptor signals{SIGTERM, SIGINT, SIGHUP};
  asio::posix::stream_descriptor asked(context, ::dup(signals.fd()));
  asked.async_wait(asio::posix::descriptor_base::wait_read, [&](const beast::error_code& failed) {
    if (failed) return;
    shell::say("ojs-shm-exporter: {}: stopping\n", signals.take().origin);
    context.stop();
  });

  Server server{collect};
  tcp::acceptor acceptor = listen(context, address);
  const bool v6 = acceptor.local_endpoint().protocol() == tcp::v6();
  ready(fmt::format("http://{}{}{}:{}/metrics", v6 ? "[" : "", address.host, v6 ? "]" : "",
                    acceptor.local_endpoint().port()));
  asio::co_spawn(context, accept_all(acceptor, server), asio::detached);
  context.run();
}

}  // namespace ojs_shm::exporter
