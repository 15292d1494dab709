// SPDX-License-Identifier: Apache-2.0
//
// Streams of one job, which end with it: its events, and how far it is.
#include "tools/gateway/streams/job_streams.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/streams/state_changes.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::uint64_t ended_at(const JobInfo& job) {
  return std::max({job.completed_at_ms, job.discarded_at_ms, job.cancelled_at_ms});
}

std::string tell_change(Desk& desk, const JobInfo& job) { return piece_of(end_of(desk, job)); }

/// Source: ojs-progress 7.2.
std::string_view name_of_end(State state) {
  return state == State::kCompleted   ? "completed"
         : state == State::kCancelled ? "cancelled"
                                      : "failed";
}

/// A job that is gone has taken along how far it came.
std::string print_end(State state, const JobInfo* job, std::string_view at) {
  return object([&](json::ObjectWriter& writer) {
    if (state == State::kCompleted)
      writer.number("progress", 1.0);
    else if (job != nullptr && job->progress >= 0)
      writer.number("progress", std::min(job->progress, 1.0));
    else
      writer.value("progress", "null");
    writer.text("state", state_name(state));
    writer.text("updated_at", at);
  });
}

std::string tell_progress_end(Desk&, const JobInfo& job) {
  return piece_of(id_of_end(job.id), name_of_end(job.state),
                  print_end(job.state, &job, print_timestamp(ended_at(job))));
}

std::string_view member_of(std::string_view object, std::string_view name) {
  for (const json::Member& member : json::members_of(object))
    if (member.name == name) return member.value;
  return {};
}

/// Of the event as it is printed; an event knows ten-thousandths.
std::string print_progress(const Told& told) {
  constexpr double kParts = 10'000, kPercent = 100;
  const std::string_view data = member_of(told.json, "data");
  const double percent = json::number_of(member_of(data, "progress_percent")).value_or(0);
  return object([&](json::ObjectWriter& writer) {
    writer.number("progress", std::round(percent / kPercent * kParts) / kParts);
    if (const auto message = member_of(data, "progress_message"); !message.empty())
      writer.value("message", message);
    const std::string_view reported = member_of(data, "data");
    writer.value("data", reported.empty() ? "null" : reported);
    writer.value("updated_at", member_of(told.json, "time"));
  });
}

std::string tell_progress(Desk& desk, const Told& told) {
  if (told.type == "job.progress") return piece_of(told.id, "progress", print_progress(told));
  const State state = told.type == "job.completed"   ? State::kCompleted
                      : told.type == "job.cancelled" ? State::kCancelled
                                                     : State::kDiscarded;
  const auto job = desk.observer.get(told.job_id);
  const auto at = json::string_of(member_of(told.json, "time")).value_or("");
  return piece_of(told.id, name_of_end(state), print_end(state, job ? &*job : nullptr, at));
}

}  // namespace

Told end_of(Desk& desk, const JobInfo& job) {
  const KnownJob known = desk.hall.tape().jobs().find(desk.observer, job.id);
  Told told;
  told.id = id_of_end(job.id);
  told.type = "job.state_changed";
  told.queue = job.queue;
  told.job_id = job.id;
  told.job_type = job.type;
  told.tenant = known.tenant;
  told.json = print_state_change(last_change(job), job.id, job.queue, known, ended_at(job));
  return told;
}

JobStream events_of_job(std::string job, const EventFilter& filter) {
  Told change;
  change.type = "job.state_changed";
  const bool wants_change =
      EventFilter{.types = filter.types, .state_changes = true}.lets_pass(change);
  JobStream stream{.job = std::move(job),
                   .tell = [](Desk&, const Told& told) { return piece_of(told); },
                   .tell_end = [](Desk&, const JobInfo&) { return std::string(); }};
  if (wants_change) stream.tell_end = &tell_change;
  return stream;
}

JobStream progress_of_job(std::string job) {
  return {.job = std::move(job), .tell = &tell_progress, .tell_end = &tell_progress_end};
}

}  // namespace ojs_shm::gateway
