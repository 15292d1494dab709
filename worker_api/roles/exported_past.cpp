// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/exported_past.hpp"

#include "engine/tables/job_look.hpp"

namespace ojs_shm::internal {

void take_times(const JobInfo& from, JobSpec& to) {
  to.timeout_ms = from.timeout_ms, to.lease_ms = from.lease_ms;
  to.enqueue_ttl_s = from.enqueue_ttl_s, to.total_timeout_s = from.total_timeout_s;
  to.grace_period_s = from.grace_period_s;
}

engine::TimeUp time_up_of(std::string_view discard_reason) {
  if (discard_reason == "enqueue_ttl_expired") return engine::TimeUp::kEnqueueTtl;
  if (discard_reason == "total_timeout") return engine::TimeUp::kTotalTimeout;
  return engine::TimeUp::kExpired;
}

std::string encoded(const std::vector<JobError>& errors) {
  std::string text;
  for (const JobError& error : errors)
    text += engine::encode_error({error.occurred_at_ms, error.attempt, error.retryable, error.code,
                                  error.type, error.message, error.details});
  return text;
}

}  // namespace ojs_shm::internal
