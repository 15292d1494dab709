// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/http_echo.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <system_error>

namespace ojs_shm::bench {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

asio::awaitable<void> answer(tcp::socket socket) {
  boost::beast::flat_buffer buffer;
  socket.set_option(tcp::no_delay(true));
  for (;;) {
    http::request<http::string_body> request;
    co_await http::async_read(socket, buffer, request, asio::use_awaitable);
    http::response<http::string_body> response(http::status::ok, request.version());
    response.set(http::field::content_type, "application/json");
    response.body() = std::move(request.body());
    response.prepare_payload();
    co_await http::async_write(socket, response, asio::use_awaitable);
  }
}

asio::awaitable<void> accept(tcp::acceptor& acceptor) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    asio::co_spawn(acceptor.get_executor(), answer(std::move(socket)), asio::detached);
  }
}

}  // namespace

HttpEcho::HttpEcho(unsigned core) {
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  port_ = acceptor.local_endpoint().port();
  context.notify_fork(asio::execution_context::fork_prepare);
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ != 0) {
    context.notify_fork(asio::execution_context::fork_parent);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ::sched_setaffinity(0, sizeof one, &one);
  context.notify_fork(asio::execution_context::fork_child);
  asio::co_spawn(context, accept(acceptor), asio::detached);
  context.run();
  ::_exit(1);
}

HttpEcho::~HttpEcho() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace ojs_shm::bench
