// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <string>

#include "engine/crons/cron_look.hpp"
#include "engine/rules/names.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/unique_key.hpp"
#include "worker_api/roles/registered_workers.hpp"
#include "worker_api/roles/results.hpp"
#include "worker_api/roles/workflow_tree.hpp"

// What callers get of a job: a copy of its snapshot in their words.

namespace ojs_shm::internal {

namespace {

void tell_unique(const engine::NewAnnex& annex, JobInfo& info) {
  info.unique_key = fmt::format("{:016x}{:016x}", annex.key_hi, annex.key_lo);
  info.unique = policy_of(annex.uniqueness);
}

/// What is done is all done, whatever was said of it last.
[[gnu::noinline]] void tell_report(const engine::Snapshot& s, JobInfo& info) {
  info.progress = s.state() == engine::JobState::kCompleted ? 1.0 : *s.fraction;
  info.progress_message = s.report.message;
  info.progress_data = s.report.data;
  info.progress_at_ms = s.report.at_ms;
}

}  // namespace

JobInfo info_of(const engine::Store& store, const engine::Snapshot& s) {
  JobInfo info;
  info.id = engine::to_string(s.id);
  info.queue = store.queue_name(s.queue);
  info.type = s.body.substr(0, s.type_length);
  info.args = s.body.substr(s.type_length, s.args_length);
  info.extra = s.body.substr(
      std::min<std::size_t>(s.body.size(), std::size_t{s.type_length} + s.args_length));
  info.state = static_cast<State>(s.state());
  info.priority = engine::priority_of(store.convention(), engine::rank_of_ring(s.control.ring()));
  if (const unsigned part = s.policy.part(); part != 0 && part < engine::kAgeClasses)
    if (const std::uint64_t rate = store.queue(s.queue).age_class[part].load();
        engine::is_age_class(rate))
      info.priority_age_rate = static_cast<std::uint32_t>(rate - 1);
  info.attempt = s.attempt;
  info.retry = {s.retry.max_attempts,
                s.retry.initial_ms,
                s.retry.max_ms,
                s.retry.coefficient,
                static_cast<RetryBackoff>(s.retry.backoff),
                s.retry.jitter,
                s.retry.dead_letter};
  info.created_at_ms = s.created_at;
  info.enqueued_at_ms = s.available_at;
  // a limit moves a job to a later time than it was given (ojs-rate-limiting 6.2)
  info.scheduled_at_ms = info.state == State::kScheduled ? s.due_at : s.scheduled_at;
  info.expires_at_ms = s.expires_at;
  info.started_at_ms = s.started_at;
  info.timeout_ms = s.timeout_ms, info.lease_ms = s.lease_ms;
  info.enqueue_ttl_s = s.times.enqueue_ttl_s, info.total_timeout_s = s.times.total_timeout_s;
  info.grace_period_s = s.times.grace_s;
  switch (info.state) {
    case State::kCompleted: info.completed_at_ms = s.finished_at; break;
    case State::kCancelled: info.cancelled_at_ms = s.finished_at; break;
    case State::kDiscarded:
      info.discarded_at_ms = s.finished_at;
      info.discard_reason = discard_reason(s);
      if (info.discard_reason == "failed") info.completed_at_ms = s.finished_at;
      break;
    case State::kRetryable: info.next_attempt_at_ms = s.due_at; break;
    default: break;
  }
  info.retry_delay_ms = s.retry_delay_ms;
  if (info.state == State::kActive) info.worker_id = engine::worker_id_of(store, s.worker);
  if (info.state == State::kCancelled && engine::holds_job(s.policy.previous()))
    info.previous_state = static_cast<State>(engine::job_state(s.policy.previous()));
  info.dead_letter = s.policy.has(engine::Policy::kDead);
  if ((s.annex.bits & engine::kUnique) != 0) [[unlikely]]
    tell_unique(s.annex, info);
  if (s.fraction) [[unlikely]]
    tell_report(s, info);
  info.last_checkpoint = s.report.checkpoint;
  info.fence = s.control.tag();
  tell_result(store, s, info);
  for (const engine::ErrorEntry& entry : engine::decode_errors(s.errors))
    info.errors.push_back({entry.attempt, entry.at_ms, std::string(entry.code),
                           std::string(entry.type), std::string(entry.message),
                           std::string(entry.details), entry.retryable});
  if ((s.signals & engine::kOfCron) != 0) [[unlikely]]
    info.cron_name = engine::cron_of(store, s.annex);
  if ((s.signals & engine::kMember) == 0) [[likely]]
    return info;
  const engine::Membership member{s.annex.workflow, s.annex.workflow_generation, s.annex.node};
  if (const auto workflow = engine::workflow_of(store, member))
    info.workflow_id = engine::to_string(*workflow);
  if (info.state == State::kActive) info.parent_results = parent_results(store, member);
  return info;
}

}  // namespace ojs_shm::internal
