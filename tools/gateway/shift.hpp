// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <mutex>
#include <optional>

#include "tools/gateway/desk.hpp"

namespace ojs_shm::gateway {

class Visit;

/// One thread of the gateway: its event loop, its handles, and the requests that wait on it. All of
/// it belongs to that thread, but for poke().
class Shift {
 public:
  Shift(Hall& hall, const Segment& segment);

  boost::asio::io_context& context() { return context_; }
  Desk& desk() { return desk_; }

  /// Requests that wait for a job, first come first served: `look` says whether it has got what it
  /// waits for. Jobs of other processes are looked for every few milliseconds.
  struct Fetcher {
    std::function<bool()> look;
    Visit* visit = nullptr;
  };
  using Place = std::list<Fetcher>::iterator;
  Place stand_in_line(Fetcher fetcher);
  void leave_line(Place place);

  /// Visits that wait for room in a queue or for events; each is woken to look itself.
  std::list<Visit*>& room_seekers() { return room_seekers_; }
  std::list<Visit*>& listeners() { return listeners_; }
  /// Watches the producer's descriptor from now on.
  void watch_room();

  /// From any thread: jobs came, or events did.
  void poke();
  void wake_listeners();

 private:
  void serve_line();
  void want_poke(bool wanted);
  void keep_looking();
  void await_room();

  // The loop ends before all that its requests still point at.
  Desk desk_;
  std::list<Fetcher> line_;
  std::list<Visit*> room_seekers_, listeners_;
  std::mutex poking_;
  bool wants_poke_ = false;  ///< a line stands, and has not been told to look
  bool looking_ = false, room_watched_ = false;
  boost::asio::io_context context_{1};
  boost::asio::steady_timer timer_;
  std::optional<boost::asio::posix::stream_descriptor> room_;
};

}  // namespace ojs_shm::gateway
