// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/actor.hpp"
#include "engine/observing/events.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::internal {

/// This lane among those that sleep until an event is told, or a job ends that is waited for.
///
/// A teller stores its count and then looks for the flag, without a barrier in between, which would
/// cost each event tens of nanoseconds. So a listener may lie down between the two and not be
/// woken; it looks again after kSoonMs, when the count has long left the teller's processor, and
/// sleeps longer only then.
class Listener {
 public:
  struct Wanted {
    bool ends = false, events = false;
    bool empty() const { return !ends && !events; }
  };
  explicit Listener(engine::Actor& actor) : actor_(actor) {}

  /// From now on these. The next look finds news.
  void listen_to(Wanted wanted) {
    wanted_ = wanted;
    events_due_ms_ = 0;
    news_ = !wanted.empty();
  }

  void lie_down() {
    const bool for_events = wanted_.events && events_due_ms_ == 0;
    if (!wanted_.ends && !for_events) return;
    word().fetch_or(bit(), shm::Point::kWaiterSet);  // PAIR listen
    if (for_events)
      actor_.store().header().telling.fetch_or(engine::kListened, shm::Point::kWaiterSet);
  }
  void get_up() {
    if (!wanted_.empty()) word().fetch_and(~bit(), shm::Point::kWaiterCleared);
  }
  /// Whether there is something to be told: each end at once, events together after a rest.
  bool sees_news() {
    bool news = std::exchange(news_, false);
    if (wanted_.ends) {
      const std::uint64_t rung = ends_rung();
      news = std::exchange(ends_rung_, rung) != rung || news;
    }
    if (!wanted_.events) return news;
    const std::uint64_t now = shm::steady_ms();
    if (events_due_ms_ == 0) {
      const std::uint64_t told = engine::events_told(actor_.store());
      if (std::exchange(events_told_, told) != told) events_due_ms_ = now + kRestMs;
    } else if (now >= events_due_ms_) {
      events_due_ms_ = 0;
      rested_ = false;
      news = true;
    }
    return news;
  }
  /// How long it may sleep when it sees no news.
  std::uint64_t patience_ms() {
    if (wanted_.empty()) return kIdleMs;
    if (events_due_ms_ != 0) {
      const std::uint64_t now = shm::steady_ms();
      return now < events_due_ms_ ? events_due_ms_ - now : 1;
    }
    return std::exchange(rested_, true) || !wanted_.events ? kLookMs : kSoonMs;
  }

 private:
  /// An event is told this long after it happened: a reader leaves those of the last 20 ms for
  /// later, by a clock that may lag ten. kLookMs: a lane that died before it woke this one is
  /// repaired by then.
  static constexpr std::uint64_t kRestMs = 30, kSoonMs = 20, kLookMs = 1'000, kIdleMs = 60'000;

  std::uint64_t ends_rung() const {
    std::uint64_t rung = 0;
    for (const shm::Half& bell : actor_.store().segment().header().completions) rung += bell.load();
    return rung;
  }
  shm::Word& word() { return actor_.store().header().listeners[actor_.lane() / 64]; }
  std::uint64_t bit() const { return 1ULL << (actor_.lane() % 64); }

  engine::Actor& actor_;
  Wanted wanted_;
  bool news_ = false, rested_ = false;
  std::uint64_t ends_rung_ = 0, events_told_ = 0,
                events_due_ms_ = 0;  ///< 0: it has told what it saw
};

}  // namespace ojs_shm::internal
