// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/streams/state_changes.hpp"

#include <charconv>

#include "tools/gateway/replies/json_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

/// The state that an event leads to, and the state before it where only one leads there.
struct Rule {
  std::string_view type;
  State to;
  std::optional<State> from = {};
};
constexpr Rule kRules[] = {
    {"job.enqueued", State::kAvailable},
    {"job.scheduled", State::kScheduled},
    {"job.started", State::kActive, State::kAvailable},
    {"job.completed", State::kCompleted, State::kActive},
    {"job.retrying", State::kRetryable, State::kActive},
    {"job.cancelled", State::kCancelled},
    {"job.discarded", State::kDiscarded},
    {"job.expired", State::kDiscarded},
};

/// When the segment made the id: a UUIDv7 begins with its milliseconds.
std::uint64_t made_at(const std::string& id) {
  const std::string digits = id.substr(0, 8) + id.substr(9, 4);
  std::uint64_t ms = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ms, 16);
  return ms;
}

/// Of a job of which the tape has read no event before.
std::optional<StateChange> first_change(const Observer& observer, const Event& event, State to) {
  const bool accepted = to == State::kAvailable || to == State::kScheduled;
  if (accepted && event.attempt == 0 && made_at(event.job_id) == event.time_ms) return {};
  const auto job = observer.get(event.job_id);
  if (accepted && event.attempt == 0) {
    // Nothing is told of a pending job until it is activated.
    if (job && event.time_ms > job->created_at_ms) return StateChange{State::kPending, to};
    return {};
  }
  if (job && is_terminal(to) && job->state == to) return last_change(*job);
  return StateChange{std::nullopt, to};
}

}  // namespace

std::optional<StateChange> state_change(JobBook& book, const Observer& observer,
                                        const Event& event) {
  if (event.job_id.empty()) return {};
  for (const Rule& rule : kRules) {
    if (rule.type != event.type) continue;
    const std::optional<State> known = book.change_state(event.job_id, rule.to);
    if (known == rule.to) return {};
    if (rule.from) return StateChange{rule.from, rule.to};
    if (known) return StateChange{known, rule.to};
    return first_change(observer, event, rule.to);
  }
  return {};
}

std::string_view dead_letter_event(JobBook& book, const Observer& observer, const Event& event,
                                   const std::optional<StateChange>& change) {
  if (change && change->from == State::kDiscarded && change->to == State::kAvailable)
    return book.change_dead_letter(event.job_id, false) ? "dead_letter.retried" : "";
  if (event.type != "job.discarded") return {};
  const auto job = observer.get(event.job_id);
  const bool is_kept = job && job->state == State::kDiscarded && job->dead_letter;
  book.change_dead_letter(event.job_id, is_kept);
  return is_kept ? "dead_letter.added" : "";
}

bool ends_job(const Event& event) {
  if (event.job_id.empty()) return false;
  for (const Rule& rule : kRules)
    if (rule.type == event.type) return is_terminal(rule.to);
  return false;
}

StateChange last_change(const JobInfo& job) {
  StateChange change{job.previous_state, job.state};
  if (change.from) return change;
  if (job.state == State::kCompleted || job.discard_reason == "failed")
    change.from = State::kActive;
  else if (job.state == State::kDiscarded && job.discard_reason != "total_timeout")
    change.from = job.scheduled_at_ms > job.discarded_at_ms ? State::kScheduled : State::kAvailable;
  return change;
}

std::string print_state_change(const StateChange& change, const std::string& job,
                               const std::string& queue, const KnownJob& known,
                               std::uint64_t time_ms) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("job_id", job);
    writer.text("queue", queue);
    if (!known.type.empty()) writer.text("type", known.type);
    if (change.from) writer.text("from", state_name(*change.from));
    writer.text("to", state_name(change.to));
    writer.text("timestamp", print_timestamp(time_ms));
    if (!known.trace.empty()) writer.value("trace_id", known.trace);
  });
}

}  // namespace ojs_shm::gateway
