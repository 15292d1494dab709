// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tools/gateway/routes/router.hpp"
#include "tools/gateway/serving/address.hpp"
#include "tools/gateway/serving/certificate.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/session.hpp"
#include "tools/gateway/serving/shift.hpp"
#include "tools/shell/signals.hpp"

namespace ojs_shm::gateway {

/// The gateway at work: a constant number of threads, each with an event loop and handles of its
/// own, and one more for requests that walk over the segment.
class Server {
 public:
  /// Throws shell::Refusal when the segment has no handles left.
  Server(Hall& hall, Certificate& certificate);
  ~Server();

  /// Serves until SIGTERM or SIGINT; then answers what has begun, for as long as the options allow.
  /// SIGHUP reads the certificate and the tokens again. `signals` has these three.
  /// `ready` is told the URL once requests are accepted. Throws shell::Refusal when the address
  /// cannot be had.
  void serve(const Address& address, const shell::SignalDescriptor& signals,
             const std::function<void(const std::string& url)>& ready);

  Hall& hall() { return hall_; }
  const Router& router() const { return router_; }
  const Certificate& certificate() const { return certificate_; }
  Desk& back_desk() { return back_desk_; }
  boost::asio::io_context::executor_type back_room() { return back_context_.get_executor(); }
  /// For a program that runs the loops itself.
  Shift& first_shift() { return *shifts_.front(); }
  std::string new_request_id();

  void came(Session& session);
  void went(Session& session);

 private:
  template <class Acceptor>
  boost::asio::awaitable<void> accept_all(Acceptor& acceptor);
  template <class Acceptor>
  void run(Acceptor& acceptor, const shell::SignalDescriptor& signals,
           const std::function<void()>& ready);
  void read_again(const std::string& origin);
  void take(Socket socket, Shift& shift);
  void turn_tape();
  void await_events();
  void take_stats();
  void close_all(bool now);

  Hall& hall_;
  Certificate& certificate_;
  Router router_;
  // Sessions that are left at the end say goodbye here.
  std::mutex mutex_;
  std::set<Session*> sessions_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Shift>> shifts_;
  boost::asio::io_context back_context_{1};
  Desk back_desk_;
  boost::asio::steady_timer tape_timer_;
  bool tape_turns_ = false;  ///< of the back room's thread
  std::optional<boost::asio::posix::stream_descriptor> events_;
  boost::asio::steady_timer stats_timer_;
  std::size_t next_shift_ = 0;
};

}  // namespace ojs_shm::gateway
