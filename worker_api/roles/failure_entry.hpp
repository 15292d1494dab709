// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/worker.hpp>

#include "engine/tables/job_look.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::internal {

/// What the engine is told of a failure. Its code may decide what becomes of the job, whatever the
/// policy of the job says. `extra` is the job's. Source: ojs-retry 6, 7; ojs-errors 4.5, 4.7.
inline engine::ErrorEntry entry_of(const Failure& failure, std::string_view extra,
                                   std::uint16_t attempt, std::uint64_t now) {
  engine::ErrorEntry entry;
  entry.at_ms = now;
  entry.attempt = attempt;
  entry.code = failure.code;
  entry.type = failure.type.empty() ? failure.code : failure.type;
  entry.message = failure.message;
  // cut off they would not be JSON
  const bool too_long = failure.details.size() > engine::kLongestErrorText;
  entry.details = too_long ? R"({"truncated":true})" : failure.details;
  entry.close_limit_until = failure.rate_limit_until_ms > now ? failure.rate_limit_until_ms : 0;
  if (failure.code == "DISCARD" || failure.code == "FAIL")
    entry.exhaustion = engine::Exhaustion::kDiscard;
  else if (failure.code == "DEAD_LETTER")
    entry.exhaustion = engine::Exhaustion::kDeadLetter;
  const bool final = failure.code == "NON_RETRYABLE_ERROR" || failure.code == "JOB_CANCELLED";
  const bool wanted = failure.code == "RETRY" || (failure.retryable && !final);
  const bool forbidden =
      !extra.empty() && (forbids_retry(extra, entry.type) || forbids_retry(extra, entry.code));
  entry.retryable = entry.exhaustion == engine::Exhaustion::kByPolicy && wanted && !forbidden;
  return entry;
}

}  // namespace ojs_shm::internal
