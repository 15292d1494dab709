// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/tape.hpp"

#include <algorithm>

#include "tools/gateway/json_text.hpp"
#include "worker_api/json/envelope_event.hpp"

namespace ojs_shm::gateway {
namespace {

bool among(const std::vector<std::string>& wanted, const std::string& text) {
  return wanted.empty() || std::ranges::find(wanted, text) != wanted.end();
}

/// "job.*" means every type that begins with "job.".
bool type_among(const std::vector<std::string>& wanted, const std::string& type) {
  if (wanted.empty()) return true;
  return std::ranges::any_of(wanted, [&](const std::string& each) {
    return each == type || each == "*" ||
           (each.ends_with(".*") && type.starts_with(each.substr(0, each.size() - 1)));
  });
}

/// `meta.trace_id` of a job, as JSON; empty: it has none.
std::string trace_of(const JobInfo& job) {
  if (job.extra.find("trace_id") == std::string::npos || !json::check(job.extra)) return {};
  for (const json::Member& member : json::members_of(json::trim(job.extra))) {
    if (member.name != "meta" || json::kind_of(member.value) != json::Kind::kObject) continue;
    for (const json::Member& meta : json::members_of(member.value))
      if (meta.name == "trace_id") return json::compact(meta.value);
  }
  return {};
}

/// The event with the trace of its job in its data, while the job is still there.
Told told_of(const Observer& observer, const Event& event) {
  Told told{event.id, event.type, event.queue, event.job_id, event.job_type, print_event(event)};
  if (event.job_id.empty()) return told;
  const auto job = observer.get(event.job_id);
  const std::string trace = job ? trace_of(*job) : std::string();
  if (trace.empty()) return told;
  const std::string printed = std::move(told.json);
  const std::string more = "{\"trace_id\":" + trace + "}";
  told.json = object([&](json::ObjectWriter& writer) {
    for (const json::Member& member : json::members_of(printed)) {
      const std::string value(member.value);
      writer.value(member.name, member.name == "data" ? joined(value, more) : value);
    }
  });
  return told;
}

}  // namespace

bool EventFilter::lets_pass(const Told& told) const {
  return type_among(types, told.type) && among(queues, told.queue) && among(jobs, told.job_id) &&
         among(job_types, told.job_type);
}

void Tape::take_over() {
  if (!reader_) return;
  Event event;
  while (reader_->next(event)) {
    keep_gap();
    keep(told_of(*observer_, event), 1);
  }
  keep_gap();
}

void Tape::keep(Told told, std::uint64_t weight) {
  told.position = position_ += weight;
  kept_.push_back(std::make_shared<const Told>(std::move(told)));
  if (kept_.size() <= kKept) return;
  dropped_ = kept_.front()->position;
  kept_.pop_front();
  ++first_;
}

/// Events that the segment overwrote since the reader looked last leave a mark in their place.
void Tape::keep_gap() {
  const std::uint64_t lost = reader_->lost() - reader_lost_;
  if (lost == 0) return;
  reader_lost_ += lost;
  Told gap;
  gap.type = "system.gap";
  gap.lost = lost;
  keep(std::move(gap), lost);
}

Tape::Place Tape::join(std::string_view after, bool& gap) {
  const std::lock_guard lock(mutex_);
  if (listeners_++ == 0 && !reader_) {
    auto observer = Observer::attach(segment_);
    if (observer) {
      observer_.emplace(std::move(observer).value());
      // With a history, so that a listener may come back after a pause in which there was none.
      reader_.emplace(observer_->events({.from_start = true}));
      Event event;
      // What was overwritten before there was a listener is no loss of any.
      if (reader_->next(event)) keep(told_of(*observer_, event), 1);
      reader_lost_ = reader_->lost();
    }
  }
  take_over();
  gap = false;
  if (after.empty()) return {first_ + kept_.size(), position_};
  for (std::size_t i = kept_.size(); i-- > 0;)
    if (kept_[i]->id == after) return {first_ + i + 1, kept_[i]->position};
  gap = true;
  return {first_, dropped_};
}

void Tape::leave() {
  const std::lock_guard lock(mutex_);
  if (--listeners_ != 0) return;
  first_ += kept_.size();
  dropped_ = position_;
  kept_.clear();
  reader_.reset();
  observer_.reset();
}

std::vector<std::shared_ptr<const Told>> Tape::read(Place& place, std::size_t most,
                                                    std::uint64_t& lost) {
  const std::lock_guard lock(mutex_);
  lost = 0;
  if (first_ > place.next) {
    lost = dropped_ - place.position;
    place = {first_, dropped_};
  }
  std::vector<std::shared_ptr<const Told>> events;
  const std::uint64_t end = first_ + kept_.size();
  for (; place.next < end && events.size() < most; ++place.next)
    events.push_back(kept_[place.next - first_]);
  if (!events.empty()) place.position = events.back()->position;
  return events;
}

bool Tape::turn() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t before = first_ + kept_.size();
  take_over();
  return first_ + kept_.size() != before;
}

bool Tape::has_listeners() const {
  const std::lock_guard lock(mutex_);
  return listeners_ != 0;
}

Tape::History Tape::history(const Observer& observer, const EventFilter& filter,
                            std::string_view after, std::size_t most) {
  History history;
  EventReader reader = observer.events({.from_start = true, .settle_ms = 0});
  bool reached = after.empty();
  Event event;
  while (!history.more && reader.next(event)) {
    if (!reached) {
      reached = event.id == after;
      continue;
    }
    Told told = told_of(observer, event);
    if (!filter.lets_pass(told)) continue;
    if (history.events.size() == most)
      history.more = true;
    else
      history.events.push_back(std::move(told));
  }
  history.gone = !reached;
  return history;
}

}  // namespace ojs_shm::gateway
