// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: rates, and what is told.
#include <algorithm>
#include <set>
#include <utility>

#include "engine/limits/limit_setter.hpp"
#include "engine/observing/events.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::EventFacts;
using engine::EventKind;
using engine::Outcome;

namespace {
constexpr std::uint32_t kWeeks = 3'600'000'000;  ///< ms
}

void World::rate(Rate kind, std::uint32_t most) {
  engine::LimitSettings settings;
  if (kind == Rate::kThrottle || kind == Rate::kPutsOff)
    settings.throttle = 1, settings.throttle_period_ms = kWeeks,
    settings.burst = most + (kind == Rate::kPutsOff);
  if (kind != Rate::kThrottle)
    settings.rate = most, settings.rate_period_ms = kWeeks,
    settings.sliding = kind == Rate::kSliding;
  if (kind == Rate::kPutsOff) settings.on_limit = engine::OnLimit::kReschedule;
  rate_ = most;
  if (engine::LimitSetter(actor(kJanitor)).define("k", settings) != Outcome::kOk)
    wrong_ += "the rate was refused; ";
}

/// No more than the rate have begun; the others are let go, for a lane that works off what is left.
std::string World::rate_text() {
  if (rate_ == 0) return "";
  std::size_t begun = 0;
  for (const unsigned job : limited_) begun += books_[job].takes.size();
  std::string text =
      begun <= rate_ + given_back_ ? "" : std::to_string(begun) + " began within a period; ";
  if (engine::LimitSetter(actor(kJanitor)).clear("k") != Outcome::kOk)
    text += "the rate was not cleared; ";
  const std::uint64_t later = store_->now_ms() + 2ULL * kWeeks;
  for (std::uint32_t slot = 0; slot < store_->slots(); ++slot)
    actor(kJanitor).tend(slot, store_->job(slot).generation.get(), later);
  return text;
}

void World::tell() {
  tells_ = true;
  actor(kJanitor).tellings().turn(true);
  for (std::uint32_t lane = 0; lane < kFibers; ++lane)
    for (unsigned i = 0; i < 7; ++i) take(lane), give_back(lane);
  forget_fetches();
  forget_empties();
}

/// Of each living lane every event is there, once; and of each job that a lane alive has put in
/// or begun, that. The order in which they come goes by tags, which are too short here.
std::string World::told_text() const {
  if (!tells_) return "";
  std::vector<EventFacts> events;
  engine::EventReader reader(*store_, true);
  std::string text = reader.poll(events, 0) > dead_.size() ? "events are missing; " : "";
  std::set<std::pair<std::uint32_t, std::uint64_t>> numbers;
  for (const EventFacts& event : events)
    if (!numbers.emplace(event.lane, event.sequence).second) text += "an event came twice; ";
  const auto told = [&events](const Books& books, EventKind kind, std::uint32_t by) {
    return std::count_if(events.begin(), events.end(), [&](const EventFacts& event) {
      return event.kind == kind && event.lane == by && event.job == books.id;
    });
  };
  for (const Books& books : books_) {
    if (books.put_returned != 0 && books.put_by < kFibers && !was_dead(books.put_by) &&
        told(books, EventKind::kJobEnqueued, books.put_by) != 1)
      text += "an enqueue was not told once; ";
    for (const Take& take : books.takes)
      if (!was_dead(take.by) && told(books, EventKind::kJobStarted, take.by) == 0)
        text += "a start was not told; ";
  }
  return text;
}

}  // namespace ojs_shm::test
