// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/shift.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>

#include "tools/gateway/fault.hpp"
#include "tools/gateway/hall.hpp"
#include "tools/gateway/visit.hpp"

namespace ojs_shm::gateway {
namespace {

/// How often a line of waiting fetches looks for jobs of other processes.
constexpr std::chrono::milliseconds kGlance{10};

}  // namespace

Desk Desk::open(Hall& hall, const Segment& segment) {
  return {hall, must(Admin::attach(segment)), must(Proxy::attach(segment)),
          must(Observer::attach(segment))};
}

Shift::Shift(Hall& hall, const Segment& segment)
    : desk_(Desk::open(hall, segment)), timer_(context_) {}

Shift::Place Shift::stand_in_line(Fetcher fetcher) {
  line_.push_back(std::move(fetcher));
  want_poke(true);
  keep_looking();
  return std::prev(line_.end());
}

void Shift::leave_line(Place place) {
  line_.erase(place);
  if (line_.empty()) want_poke(false);
}

void Shift::want_poke(bool wanted) {
  const std::lock_guard lock(poking_);
  wants_poke_ = wanted;
}

void Shift::keep_looking() {
  if (looking_ || line_.empty()) return;
  looking_ = true;
  timer_.expires_after(kGlance);
  timer_.async_wait([this](const boost::system::error_code& failed) {
    looking_ = false;
    if (failed) return;
    serve_line();
    keep_looking();
  });
}

void Shift::serve_line() {
  for (Fetcher& each : line_)
    if (each.look()) each.visit->wake();
}

void Shift::poke() {
  {
    const std::lock_guard lock(poking_);
    if (!wants_poke_) return;
    wants_poke_ = false;
  }
  boost::asio::post(context_, [this] {
    want_poke(!line_.empty());
    serve_line();
  });
}

void Shift::wake_listeners() {
  boost::asio::post(context_, [this] {
    for (Visit* each : listeners_) each->wake();
  });
}

void Shift::watch_room() {
  if (!room_) {
    const int fd = must(desk_.producer().room_fd());
    room_.emplace(context_, ::dup(fd));  // the producer keeps its own
  }
  await_room();
}

void Shift::await_room() {
  if (room_watched_) return;
  room_watched_ = true;
  room_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& failed) {
                      room_watched_ = false;
                      if (failed) return;
                      for (Visit* each : room_seekers_) each->wake();
                      if (!room_seekers_.empty()) await_room();
                    });
}

}  // namespace ojs_shm::gateway
