// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/streams/tape.hpp"

#include <algorithm>
#include <cmath>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/streams/state_changes.hpp"
#include "worker_api/json/envelope_event.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/event_choice.hpp"

namespace ojs_shm::gateway {
namespace {

using internal::is_among, internal::begins_among;

/// As far as an event says it of itself, without a look at its job.
template <typename Each>
bool passes_by_itself(const EventFilter& filter, const Each& event) {
  return begins_among(filter.types, event.type) && begins_among(filter.sources, event.source) &&
         is_among(filter.queues, event.queue) && is_among(filter.jobs, event.job_id);
}

constexpr std::string_view kStateChanged = "job.state_changed";

/// The same event once more, as another type sees it.
Told under_name(const Told& told, std::string_view suffix, std::string_view type) {
  Told other = told;
  other.id.append(suffix);
  other.type = type;
  other.json = object([&](json::ObjectWriter& writer) {
    for (const json::Member& member : json::members_of(told.json)) {
      if (member.name == "id")
        writer.text("id", other.id);
      else if (member.name == "type")
        writer.text("type", type);
      else
        writer.value(member.name, member.value);
    }
  });
  return other;
}

/// Whose the job is, and the trace that it belongs to.
std::string with_job(const std::string& printed, const Told& told) {
  const std::string more = object([&](json::ObjectWriter& writer) {
    if (!told.tenant.empty()) writer.text("tenant_id", told.tenant);
    if (!told.trace.empty()) writer.value("trace_id", told.trace);
  });
  return object([&](json::ObjectWriter& writer) {
    for (const json::Member& member : json::members_of(printed)) {
      const std::string value(member.value);
      writer.value(member.name, member.name == "data" ? joined(value, more) : value);
    }
  });
}

/// A report in a stream has these at its top, too. Source: ojs-realtime 4.2.
std::string with_report(const std::string& printed, const Event& event) {
  constexpr double kParts = 10'000;
  return joined(printed, object([&](json::ObjectWriter& writer) {
                  writer.text("job_id", event.job_id);
                  // 100 only when all is done
                  writer.number(
                      "progress",
                      static_cast<std::int64_t>(std::lround(event.progress * kParts)) / 100);
                  if (!event.progress_message.empty())
                    writer.text("message", event.progress_message);
                  writer.text("timestamp", print_timestamp(event.time_ms));
                }));
}

std::size_t hash_of(std::string_view id) { return std::hash<std::string_view>()(id); }

}  // namespace

bool EventFilter::lets_pass(const Told& told) const {
  if (told.type == kStateChanged && !state_changes &&
      std::ranges::find(types, kStateChanged) == types.end())
    return false;
  return passes_by_itself(*this, told) && is_among(job_types, told.job_type) &&
         (tenant.empty() || told.tenant == tenant);
}

Told Tape::told_of(const Observer& observer, const Event& event) {
  Told told;
  told.id = event.id;
  told.type = event.type;
  told.source = event.source;
  told.queue = event.queue;
  told.job_id = event.job_id;
  told.job_type = event.job_type;
  told.tenant = event.workflow_tenant;
  if (!event.job_id.empty()) {
    KnownJob job = jobs_.find(observer, event.job_id);
    told.tenant = std::move(job.tenant);
    told.trace = std::move(job.trace);
    if (told.job_type.empty()) told.job_type = std::move(job.type);
  }
  return told;
}

std::string Tape::text_of(const Told& told, Event event) const {
  if (event.fence != 0 && event.worker_id.empty())
    if (auto note = notes_.note_of(event.job_id, event.fence)) event.worker_id = note->worker;
  std::string printed = print_event(event);
  return told.tenant.empty() && told.trace.empty() ? printed : with_job(printed, told);
}

void Tape::take_over() {
  if (!reader_) return;
  Event event;
  while (reader_->next(event)) {
    keep_gap();
    keep_event(event);
  }
  keep_gap();
}

/// With what follows from it behind it, under ids of their own: a listener that comes back goes on
/// behind any of them.
void Tape::keep_event(const Event& event) {
  std::vector<Told> all = {told_of(*observer_, event)};
  all.front().json = text_of(all.front(), event);
  if (event.type == "job.progress") all.front().json = with_report(all.front().json, event);
  const auto change = state_change(jobs_, *observer_, event);
  if (const auto type = dead_letter_event(jobs_, *observer_, event, change); !type.empty())
    all.push_back(under_name(all.front(), "-dead_letter", type));
  if (change) {
    Told changed = all.front();
    changed.id += "-state";
    changed.type = kStateChanged;
    changed.json = print_state_change(*change, event.job_id, event.queue,
                                      jobs_.find(*observer_, event.job_id), event.time_ms);
    all.push_back(std::move(changed));
  }
  all.back().ends_job = ends_job(event);
  for (Told& told : all) keep(std::move(told), event.position);
}

void Tape::keep(Told told, std::uint64_t position) {
  told.position = position_ = position;
  kept_.push_back(std::make_shared<const Told>(std::move(told)));
  if (kept_.size() > kKept) drop_first();
}

void Tape::drop_first() {
  dropped_ = kept_.front()->position;
  remembered_.emplace_back(hash_of(kept_.front()->id), dropped_);
  if (remembered_.size() > kRemembered) remembered_.pop_front();
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
  keep(std::move(gap), position_ + lost);
}

Tape::Place Tape::join(std::string_view after, Gap& gap) {
  const std::lock_guard lock(mutex_);
  if (listeners_++ == 0 && !reader_) {
    auto observer = Observer::attach(segment_);
    if (observer) {
      observer_.emplace(std::move(observer).value());
      // With a history, so that a listener may come back after a pause in which there was none.
      reader_.emplace(observer_->events({.from_start = true}));
      Event event;
      // What was overwritten before there was a listener is no loss of any.
      const bool any = reader_->next(event);
      dropped_ = position_ = reader_lost_ = reader_->lost();
      if (any) keep_event(event);
    }
  }
  take_over();
  gap = {};
  if (after.empty()) return {first_ + kept_.size(), position_};
  for (std::size_t i = kept_.size(); i-- > 0;)
    if (kept_[i]->id == after) return {first_ + i + 1, kept_[i]->position};
  gap.there = true;
  Place place{first_, dropped_};
  // Of the positions that an event had, the last counts: the tape may have begun anew since.
  const auto found =
      std::find_if(remembered_.rbegin(), remembered_.rend(),
                   [of = hash_of(after)](const auto& each) { return each.first == of; });
  if (found == remembered_.rend()) return place;
  // Ids sort by time: what is kept of a quiet handle may be older, and was read before.
  for (const auto& each : kept_) {
    if (each->id > after || each->id.empty()) break;
    ++place.next;
    place.position = each->position;
  }
  gap.lost = place.position - std::min(place.position, found->second);
  return place;
}

void Tape::leave() {
  const std::lock_guard lock(mutex_);
  if (--listeners_ != 0) return;
  while (!kept_.empty()) drop_first();
  jobs_.forget_states();
  reader_.reset();
  observer_.reset();
}

std::vector<std::shared_ptr<const Told>> Tape::read(Place& place, std::size_t most, Gap& gap) {
  const std::lock_guard lock(mutex_);
  gap = {};
  if (first_ > place.next) {
    gap = {true, dropped_ - place.position};
    place = {first_, dropped_};
  }
  std::vector<std::shared_ptr<const Told>> events;
  const std::uint64_t end = first_ + kept_.size();
  for (; place.next < end && events.size() < most; ++place.next)
    events.push_back(kept_[place.next - first_]);
  if (!events.empty()) place.position = events.back()->position;
  return events;
}

Tape::Turn Tape::turn() {
  const std::lock_guard lock(mutex_);
  take_over();
  const std::uint64_t end = first_ + kept_.size();
  return {std::exchange(turned_, end) != end, reader_ && reader_->holds_young()};
}

bool Tape::has_listeners() const {
  const std::lock_guard lock(mutex_);
  return listeners_ != 0;
}

Tape::History Tape::history(const Observer& observer, const EventFilter& filter,
                            std::string_view after, std::size_t skip, std::size_t most) {
  History history;
  std::size_t behind = 0;
  EventReader reader = observer.events({.from_start = true, .settle_ms = 0});
  bool reached = after.empty();
  Event event;
  while (reader.next(event)) {
    const bool is_behind = reached;
    reached = reached || event.id == after;
    if (event.time_ms < filter.since_ms || !passes_by_itself(filter, event)) continue;
    Told told = told_of(observer, event);
    if (!filter.lets_pass(told)) continue;
    ++history.total;
    if (!is_behind || behind++ < skip) continue;
    if (history.events.size() == most) {
      history.more = true;
      continue;
    }
    told.json = text_of(told, event);
    history.events.push_back(std::move(told));
  }
  history.gone = !reached;
  return history;
}

}  // namespace ojs_shm::gateway
