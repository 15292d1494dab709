// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/server.hpp"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <csignal>
#include <cstring>

#include "tools/gateway/intake/job_ids.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;

namespace {

/// How long the tape waits for events that it has seen and that are too young to be told; and how
/// often it looks where the segment has no handle left for a descriptor that tells of them.
constexpr std::chrono::milliseconds kTapeTurn{20};
constexpr std::chrono::milliseconds kWatchedLook{1'000};

unsigned shifts_for(unsigned asked) {
  return asked != 0 ? asked : std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
}

[[noreturn]] void cannot_listen(const std::string& where, const beast::error_code& why) {
  const Code code = why == asio::error::access_denied    ? Code::kPermission
                    : why == asio::error::address_in_use ? Code::kInUse
                                                         : Code::kCannotAttach;
  shell::refuse(code, fmt::format("cannot listen on {}: {}; choose another --listen HOST:PORT",
                                  where, why.message()));
}

tcp::acceptor listen_on(asio::io_context& context, const Address& address, bool open) {
  const std::string where = fmt::format("{}:{}", address.host, address.port);
  beast::error_code failed;
  tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, failed);
  if (failed || found.empty()) cannot_listen(where, failed);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  if (!open && !endpoint.address().is_loopback())
    shell::refuse(Code::kPermission,
                  fmt::format("{} can be reached from other machines: give --token-file F, or "
                              "--open to let everyone in",
                              where));
  tcp::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) cannot_listen(where, failed);
  return acceptor;
}

/// A socket's file whose program is gone is replaced.
Local::acceptor listen_on_path(asio::io_context& context, const std::string& path) {
  const Local::endpoint endpoint(path);
  beast::error_code failed;
  struct stat file {};
  if (::lstat(path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) cannot_listen(path, asio::error::address_in_use);
    Local::socket probe(context);
    probe.connect(endpoint, failed);
    if (!failed) cannot_listen(path, asio::error::address_in_use);
    ::unlink(path.c_str());
    failed.clear();
  }
  Local::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) cannot_listen(path, failed);
  return acceptor;
}

void prepare(tcp::socket& socket) {
  beast::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
}
void prepare(Local::socket&) {}

}  // namespace

Server::Server(Hall& hall, Certificate& certificate)
    : hall_(hall),
      certificate_(certificate),
      router_(hall.options().test_hooks),
      back_desk_(Desk::open(hall, hall.segment())),
      tape_timer_(back_context_),
      stats_timer_(back_context_) {
  for (unsigned i = 0; i < shifts_for(hall.options().threads); ++i)
    shifts_.push_back(std::make_unique<Shift>(hall, hall.segment()));
  hall_.jobs_came = [this] {
    for (const auto& shift : shifts_) shift->poke();
  };
  hall_.listeners_came = [this] {
    asio::post(back_context_, [this] {
      if (!tape_turns_) turn_tape();
    });
  };
  hall_.watchers_came = [this] { asio::post(back_context_, [this] { take_stats(); }); };
  take_stats();  // before the first request: what happened is counted from here
  hall_.started_at_ms = back_desk_.now_ms();
}

Server::~Server() = default;

/// When events were told, for as long as there are listeners.
void Server::turn_tape() {
  tape_turns_ = hall_.tape().has_listeners();
  if (!tape_turns_) {
    (void)back_desk_.proxy.await_events(false);  // rests
    events_.reset();
    return;
  }
  if (!events_)
    if (const auto fd = back_desk_.proxy.await_events())
      events_.emplace(back_context_, ::dup(*fd));  // the proxy keeps its own
  const Tape::Turn turn = hall_.tape().turn();
  if (turn.news)
    for (const auto& shift : shifts_) shift->wake_listeners();
  if (events_ && !turn.holds_young) return await_events();
  tape_timer_.expires_after(kTapeTurn);
  tape_timer_.async_wait([this](const beast::error_code& failed) {
    if (!failed) turn_tape();
  });
}

void Server::await_events() {
  events_->async_wait(asio::posix::descriptor_base::wait_read,
                      [this](const beast::error_code& failed) {
                        if (failed) return;
                        eventfd_t count = 0;
                        ::eventfd_read(events_->native_handle(), &count);
                        turn_tape();
                      });
}

/// Now, and again and again: each second while clients watch. Ends the wait that there is.
void Server::take_stats() {
  const auto census = hall_.census(back_desk_.observer);
  const bool watched =
      hall_.stats().add(*census, back_desk_.observer.waits(), census->registered.size());
  if (watched)
    for (const auto& shift : shifts_) shift->wake_listeners();
  stats_timer_.expires_after(watched ? kWatchedLook : std::chrono::milliseconds(StatsLog::kStepMs));
  stats_timer_.async_wait([this](const beast::error_code& failed) {
    if (!failed) take_stats();
  });
}

std::string Server::new_request_id() {
  std::string text;
  text.reserve(40);
  return text.append("req_").append(fresh_id().view());
}

void Server::came(Session& session) {
  const std::lock_guard lock(mutex_);
  sessions_.insert(&session);
  if (closing_)
    asio::post(session.shift().context(), [this, one = &session] {
      const std::lock_guard again(mutex_);
      if (sessions_.contains(one)) one->close_soon();
    });
}

void Server::went(Session& session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(&session);
}

void Server::close_all(bool now) {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  for (Session* each : sessions_)
    asio::post(each->shift().context(), [this, each, now] {
      bool there = false;
      {
        const std::lock_guard again(mutex_);
        there = sessions_.contains(each);
      }
      if (there) now ? each->close_now() : each->close_soon();
    });
}

void Server::take(Socket socket, Shift& shift) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || sessions_.size() >= hall_.options().max_connections) return;  // closes it
  }
  asio::co_spawn(
      shift.context(),
      [this, &shift, socket = std::move(socket)]() mutable -> asio::awaitable<void> {
        Session session(std::move(socket), *this, shift);
        co_await session.converse();
      },
      asio::detached);
}

template <class Acceptor>
asio::awaitable<void> Server::accept_all(Acceptor& acceptor) {
  asio::steady_timer pause(acceptor.get_executor());
  for (;;) {
    Shift& shift = *shifts_[next_shift_++ % shifts_.size()];
    beast::error_code failed;
    typename Acceptor::protocol_type::socket socket(shift.context());
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, failed));
    if (failed == asio::error::operation_aborted || failed == asio::error::bad_descriptor)
      co_return;
    if (failed) {  // most often descriptors are short for a while
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    prepare(socket);
    take(Socket(std::move(socket)), shift);
  }
}

/// What cannot be read changes nothing.
void Server::read_again(const std::string& origin) {
  const auto attempt = [&origin](const std::string& what, const auto& read) {
    try {
      read();
      spdlog::info("{}: the {} is read again", origin, what);
    } catch (const shell::Refusal& refusal) {
      spdlog::error("{}: {}; what was read before stays", origin, refusal.error.message);
    }
  };
  const std::string& tokens = hall_.options().token_file;
  if (certificate_.given()) attempt("certificate", [this] { certificate_.read(); });
  if (!tokens.empty()) attempt("token file", [&] { hall_.tokens().read(tokens); });
  if (!certificate_.given() && tokens.empty())
    spdlog::info("{}: there is no certificate and no token file to read again", origin);
}

template <class Acceptor>
void Server::run(Acceptor& acceptor, const shell::SignalDescriptor& signals,
                 const std::function<void()>& ready) {
  asio::io_context& main = shifts_.front()->context();
  asio::steady_timer deadline(main);
  const auto end = std::chrono::milliseconds(20);
  std::function<void(std::chrono::steady_clock::time_point)> wait_until_empty =
      [&](std::chrono::steady_clock::time_point until) {
        bool empty = false;
        {
          const std::lock_guard lock(mutex_);
          empty = sessions_.empty();
        }
        const auto now = std::chrono::steady_clock::now();
        if (!empty && now >= until) close_all(true);
        if (empty || now >= until + std::chrono::seconds(1)) {
          for (const auto& shift : shifts_) shift->context().stop();
          back_context_.stop();
          return;
        }
        deadline.expires_after(end);
        deadline.async_wait([&, until](const beast::error_code&) { wait_until_empty(until); });
      };
  const auto stop = [&](const std::string& origin) {
    spdlog::info("{}: closing; what has begun is answered, for at most {} s", origin,
                 hall_.options().drain_time.count() / 1000);
    beast::error_code ignored;
    acceptor.close(ignored);
    close_all(false);
    wait_until_empty(std::chrono::steady_clock::now() + hall_.options().drain_time);
  };
  asio::posix::stream_descriptor asked(main, ::dup(signals.fd()));
  const std::function<void()> await_signal = [&] {
    asked.async_wait(asio::posix::descriptor_base::wait_read, [&](const beast::error_code& failed) {
      if (failed) return;
      const auto [signal, origin] = signals.take();
      if (signal == SIGHUP) read_again(origin);
      if (signal == SIGTERM || signal == SIGINT) return stop(origin);
      await_signal();
    });
  };
  await_signal();
  asio::co_spawn(main, accept_all(acceptor), asio::detached);
  ready();

  const auto back_work = asio::make_work_guard(back_context_);
  std::vector<std::thread> threads;
  threads.emplace_back([this] { back_context_.run(); });
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> work;
  for (const auto& shift : shifts_) work.push_back(asio::make_work_guard(shift->context()));
  for (std::size_t i = 1; i < shifts_.size(); ++i)
    threads.emplace_back([this, i] { shifts_[i]->run(); });
  shifts_.front()->run();
  for (std::thread& thread : threads) thread.join();
}

void Server::serve(const Address& address, const shell::SignalDescriptor& signals,
                   const std::function<void(const std::string& url)>& ready) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of the write
  asio::io_context& main = shifts_.front()->context();
  if (address.is_unix()) {
    Local::acceptor acceptor = listen_on_path(main, address.path);
    run(acceptor, signals, [&] { ready("unix:" + address.path); });
    ::unlink(address.path.c_str());
    return;
  }
  const bool open = hall_.options().open || !hall_.tokens().empty();
  hall_.loopback_alone = !open;
  tcp::acceptor acceptor = listen_on(main, address, open);
  const bool v6 = acceptor.local_endpoint().protocol() == tcp::v6();
  const std::string url =
      fmt::format("{}://{}{}{}:{}", certificate_.given() ? "https" : "http", v6 ? "[" : "",
                  address.host, v6 ? "]" : "", acceptor.local_endpoint().port());
  run(acceptor, signals, [&] { ready(url); });
}

}  // namespace ojs_shm::gateway
