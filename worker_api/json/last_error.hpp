// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/job.hpp>

namespace ojs_shm {

/// What is told as the error of a job that ended though no attempt of it had failed: "cancelled",
/// "expired", "enqueue_ttl_expired", "total_timeout" or "dropped".
inline JobError error_without_attempt(std::string_view reason, std::uint16_t attempt,
                                      std::uint64_t at_ms) {
  const std::string_view message =
      reason == "cancelled"             ? "the job was cancelled"
      : reason == "expired"             ? "the job expired before it began"
      : reason == "dropped"             ? "the job was dropped"
      : reason == "enqueue_ttl_expired" ? "the job did not begin within its enqueue_ttl"
      : reason == "total_timeout"       ? "the job was not done within its total timeout"
                                        : "the job was discarded";
  return {.attempt = attempt,
          .occurred_at_ms = at_ms,
          .code = std::string(reason),
          .type = {},
          .message = std::string(message),
          .details = {},
          .retryable = false};
}

/// By what the job failed, or its last attempt did; nothing if it completed or never failed.
inline std::optional<JobError> last_error_of(const JobInfo& job) {
  if (job.state == State::kCompleted) return {};
  if (!job.discard_reason.empty() && job.discard_reason != "failed")
    return error_without_attempt(job.discard_reason, job.attempt, job.discarded_at_ms);
  if (job.errors.empty()) return {};
  return job.errors.back();
}

/// Whether an attempt of it has begun that was neither taken back from its holder nor left
/// uncounted.
/// Source: ojs-core 5.3, 6.3.
inline bool has_started(const JobInfo& job) {
  if (job.state == State::kScheduled) return false;
  if (job.state != State::kAvailable) return true;
  if (job.attempt == 0 || job.errors.empty() || job.errors.back().attempt != job.attempt)
    return false;
  const std::string_view why = job.errors.back().code;
  return why != "visibility_timeout" && why != "holder_died" && why != "worker_death";
}

}  // namespace ojs_shm
