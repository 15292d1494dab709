// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/shift.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/visit.hpp"
#include "tools/gateway/serving/wire.hpp"

namespace ojs_shm::gateway {
namespace {

/// How often a line looks for jobs of other processes where the segment has no handle left for a
/// descriptor that tells of them, and how long it waits after the descriptor told of a job that
/// none of the line may have.
constexpr std::chrono::milliseconds kGlance{10};
/// How late a connection whose time is over may be closed.
constexpr std::chrono::milliseconds kLateness{200};
/// How long a loop looks for the next request before it sleeps: about what falling asleep and being
/// woken take together.
constexpr std::chrono::microseconds kAwake{50};
/// Before a loop stays awake, so many waits in a row must have been shorter than this, each with
/// the request that ended it.
constexpr std::chrono::microseconds kShort{100};
constexpr unsigned kShortWaits = 8;

}  // namespace

Desk Desk::open(Hall& hall, const Segment& segment) {
  return {hall, must(Admin::attach(segment)), must(Proxy::attach(segment)),
          must(Observer::attach(segment))};
}

Shift::Shift(Hall& hall, const Segment& segment)
    : desk_(Desk::open(hall, segment)),
      timer_(context_),
      wires_timer_(context_),
      ring_timer_(context_) {}

/// A client that sends each request as soon as it has the reply before finds the loop awake. Where
/// the next request does not come in time, as when its client wants this core, the loop sleeps at
/// once the next times.
void Shift::run() {
  using Clock = std::chrono::steady_clock;
  const bool single_core = std::thread::hardware_concurrency() < 2;
  unsigned short_waits = 0;
  while (!context_.stopped()) {
    if (context_.poll() != 0) continue;
    const Clock::time_point begun = Clock::now();
    std::size_t done = 0;
    while (short_waits >= kShortWaits && done == 0 && Clock::now() - begun < kAwake) {
      for (int i = 0; i < 20; ++i) shm::pause_cpu();
      done = context_.poll();
    }
    const bool in_vain = done == 0 && short_waits >= kShortWaits;
    if (done == 0) context_.run_one();
    const bool was_short = !single_core && !in_vain && Clock::now() - begun < kShort;
    short_waits = was_short ? short_waits + 1 : 0;
  }
}

Shift::Place Shift::stand_in_line(Fetcher fetcher) {
  bool anew = false;
  for (const Source& source : fetcher.sources) anew = awaited_[source]++ == 0 || anew;
  line_.push_back(std::move(fetcher));
  wants_poke_.set();
  if (anew) await_wanted();
  await_ring();
  keep_looking();
  return std::prev(line_.end());
}

/// A source for which no request waits any more stays awaited for a while, because the next request
/// often asks for the same.
void Shift::leave_line(Place place) {
  for (const Source& source : place->sources) --awaited_[source];
  line_.erase(place);
  if (line_.empty()) wants_poke_.set(false);
}

/// Awaits jobs of the queues and pools for which a request waits, and no more.
void Shift::await_wanted() {
  std::erase_if(awaited_, [](const auto& each) { return each.second == 0; });
  std::vector<std::string> queues, pools;
  for (const auto& [source, waiting] : awaited_)
    (source.pool ? pools : queues).push_back(source.name);
  const auto fd = desk_.proxy.await_jobs(queues, pools);
  if (fd) find_ring(*fd);
}

void Shift::find_ring(int descriptor) {
  if (!ring_) ring_.emplace(context_, ::dup(descriptor));  // the proxy keeps its own
}

bool Shift::await_end(const std::string& job, Visit& visit) {
  const auto fd = desk_.proxy.await_end(job);
  if (!fd) return false;
  find_ring(*fd);
  end_seekers_.emplace(job, &visit);
  await_ring();
  return true;
}

void Shift::forget_end(const std::string& job, Visit& visit) {
  const auto [begin, end] = end_seekers_.equal_range(job);
  const auto found =
      std::find_if(begin, end, [&](const auto& each) { return each.second == &visit; });
  if (found == end) return;
  end_seekers_.erase(found);
  if (!end_seekers_.contains(job)) desk_.proxy.forget_end(job);
}

/// Whether any job has ended for which a request waits.
bool Shift::serve_ended() {
  if (end_seekers_.empty()) return false;
  bool served = false;
  for (const std::string& job : desk_.proxy.take_ended()) {
    const auto [begin, end] = end_seekers_.equal_range(job);
    for (auto each = begin; each != end; ++each) each->second->wake(), served = true;
    end_seekers_.erase(begin, end);
  }
  return served;
}

Result<WaitingEnqueue> Shift::begin_enqueue(std::span<const JobSpec> jobs,
                                            std::chrono::milliseconds patience, Visit& visit) {
  const auto descriptor = desk_.proxy.descriptor();
  if (descriptor) find_ring(*descriptor);
  auto waiting = descriptor ? desk_.proxy.begin_enqueue(jobs, {.block_timeout = patience},
                                                        reinterpret_cast<std::uintptr_t>(&visit))
                            : desk_.producer().begin(jobs, {.block_timeout = patience});
  if (!waiting) return waiting;
  ++room_seekers_;
  seeks_room_anew_ = descriptor.ok();
  if (descriptor) await_ring();
  return waiting;
}

/// Whether the descriptor may have told of room, or of an enqueue that waited too long: it does a
/// moment after a request began to wait, too.
bool Shift::serve_decided() {
  if (room_seekers_ == 0) return false;
  bool served = std::exchange(seeks_room_anew_, false);
  for (const std::uint64_t tag : desk_.proxy.take_decided())
    reinterpret_cast<Visit*>(tag)->wake(), served = true;
  return served;
}

/// Serves the requests that wait when the descriptor is readable. Queues for which no request waits
/// are given up then, so that another sleeper gets the job; where the line may have none of the
/// jobs, it is read again a little later.
void Shift::await_ring() {
  if (ring_watched_ || !ring_ || (awaited_.empty() && end_seekers_.empty() && room_seekers_ == 0))
    return;
  ring_watched_ = true;
  ring_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& failed) {
                      if (failed) return;
                      eventfd_t count = 0;
                      ::eventfd_read(ring_->native_handle(), &count);
                      bool served = serve_ended();
                      served = serve_decided() || served;
                      served = serve_line() || served || line_.empty();
                      const bool unwanted = std::ranges::any_of(
                          awaited_, [](const auto& each) { return each.second == 0; });
                      if (unwanted) await_wanted();
                      ring_timer_.expires_after(served ? std::chrono::milliseconds(0) : kGlance);
                      ring_timer_.async_wait([this](const boost::system::error_code& ended) {
                        ring_watched_ = false;
                        if (!ended) await_ring();
                      });
                    });
}

Shift::Watched Shift::watch(Wire& wire) {
  wires_.push_back(&wire);
  look_for_expired();
  return std::prev(wires_.end());
}

void Shift::look_for_expired() {
  if (wires_watched_ || wires_.empty()) return;
  wires_watched_ = true;
  wires_timer_.expires_after(kLateness);
  wires_timer_.async_wait([this](const boost::system::error_code& failed) {
    wires_watched_ = false;
    if (failed) return;
    const Wire::Clock::time_point now = Wire::Clock::now();
    for (Wire* each : wires_)
      if (each->has_expired(now)) each->close();
    look_for_expired();
  });
}

void Shift::keep_looking() {
  if (looking_ || line_.empty() || ring_) return;
  looking_ = true;
  timer_.expires_after(kGlance);
  timer_.async_wait([this](const boost::system::error_code& failed) {
    looking_ = false;
    if (failed) return;
    serve_line();
    keep_looking();
  });
}

/// Whether any got what it waits for.
bool Shift::serve_line() {
  bool served = false;
  for (Fetcher& each : line_)
    if (each.look()) each.visit->wake(), served = true;
  return served;
}

void Shift::poke() {
  if (!wants_poke_.get()) return;
  wants_poke_.set(false);
  boost::asio::post(context_, [this] {
    wants_poke_.set(!line_.empty());
    serve_line();
  });
}

void Shift::wake_listeners() {
  boost::asio::post(context_, [this] {
    for (Visit* each : listeners_) each->wake();
  });
}

}  // namespace ojs_shm::gateway
