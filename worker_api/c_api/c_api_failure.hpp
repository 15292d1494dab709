// SPDX-License-Identifier: Apache-2.0
#pragma once

// A failed attempt as the C ABI tells of it, and what became of its job.

#include <cstdint>

#include "worker_api/c_api/c_api_structs.hpp"

namespace ojs_shm::c_api {

/// The views point into the caller's texts.
inline Failure failure_of(const ojs_shm_failure* given) {
  Failure failure;
  if (given == nullptr) return failure;
  const ojs_shm_failure read = read_struct(given, "failure");
  known_flags(read.flags, OJS_SHM_FAILURE_NOT_RETRYABLE, "failure.flags");
  failure.code = text_or(read.code, failure.code);
  failure.message = text_or(read.message);
  failure.type = text_or(read.type);
  failure.details = json_text_or_none(text_or(read.details, read.details_size), "failure.details");
  failure.retryable = (read.flags & OJS_SHM_FAILURE_NOT_RETRYABLE) == 0;
  failure.rate_limit_until_ms = read.rate_limit_until_ms;
  return failure;
}

/// Fills `outcome`, if there is one, with what `nack` yields.
template <class Nack>
int nacked(Record& record, ojs_shm_nack_outcome* outcome, const Nack& nack) {
  if (outcome != nullptr) given_size(outcome, "outcome");
  const Result<NackOutcome> became = nack();
  if (!became) return record.fail(became.error());
  if (outcome != nullptr) {
    ojs_shm_nack_outcome filled{};
    filled.next_attempt_at_ms = became.value().next_attempt_at_ms;
    filled.retry_delay_ms = became.value().retry_delay_ms;
    filled.state = static_cast<std::uint32_t>(became.value().state);
    write_struct(outcome, filled, "outcome");
  }
  return OJS_SHM_OK;
}

}  // namespace ojs_shm::c_api
