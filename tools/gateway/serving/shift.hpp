// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <compare>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shm/atomics.hpp"
#include "tools/gateway/serving/desk.hpp"

namespace ojs_shm::gateway {

class Visit;
class Wire;

/// One thread of the gateway: its event loop, its handles, and the requests that wait on it. All of
/// it belongs to that thread, but for poke().
class Shift {
 public:
  Shift(Hall& hall, const Segment& segment);

  boost::asio::io_context& context() { return context_; }
  /// On the thread of the shift, until its context is stopped.
  void run();
  Desk& desk() { return desk_; }

  /// Whose jobs a request waits for: a queue's, or those of all queues of a pool.
  struct Source {
    bool pool = false;
    std::string name;
    auto operator<=>(const Source&) const = default;
  };
  /// Requests that wait for a job, first come first served: `look` says whether it has got what it
  /// waits for.
  struct Fetcher {
    std::function<bool()> look;
    Visit* visit = nullptr;
    std::vector<Source> sources = {};
  };
  using Place = std::list<Fetcher>::iterator;
  Place stand_in_line(Fetcher fetcher);
  void leave_line(Place place);

  /// From here on the wire is closed when its time is over, until it leaves.
  using Watched = std::list<Wire*>::iterator;
  Watched watch(Wire& wire);
  void leave(Watched wire) { wires_.erase(wire); }

  /// Visits that wait for events; each is woken to look itself.
  std::list<Visit*>& listeners() { return listeners_; }
  /// Wakes the visit when what it waits with is decided, until leave_room(). Without has_ring() the
  /// visit looks for itself.
  Result<WaitingEnqueue> begin_enqueue(std::span<const JobSpec> jobs,
                                       std::chrono::milliseconds patience, Visit& visit);
  void leave_room() { --room_seekers_; }
  bool has_ring() const { return ring_.has_value(); }
  /// Wakes the visit when the job has ended. False: nothing tells of that, because the segment has
  /// no handle left.
  bool await_end(const std::string& job, Visit& visit);
  void forget_end(const std::string& job, Visit& visit);

  /// From any thread: jobs came, or events did.
  void poke();
  void wake_listeners();

 private:
  bool serve_line();
  bool serve_ended();
  bool serve_decided();
  void find_ring(int descriptor);
  void await_wanted();
  void await_ring();
  void look_for_expired();
  void keep_looking();

  // The loop ends before all that its requests still point at.
  Desk desk_;
  std::list<Fetcher> line_;
  std::list<Visit*> listeners_;
  std::size_t room_seekers_ = 0;
  std::multimap<std::string, Visit*> end_seekers_;  ///< by job
  std::list<Wire*> wires_;
  shm::LocalFlag wants_poke_;  ///< a line stands, and has not been told to look
  bool looking_ = false, seeks_room_anew_ = false, wires_watched_ = false, ring_watched_ = false;
  std::map<Source, std::size_t> awaited_;  ///< how many in the line wait for each
  boost::asio::io_context context_{1};
  boost::asio::steady_timer timer_, wires_timer_, ring_timer_;
  std::optional<boost::asio::posix::stream_descriptor> ring_;
};

}  // namespace ojs_shm::gateway
