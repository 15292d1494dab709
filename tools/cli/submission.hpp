// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ojs_shm/observer.hpp>

#include "worker_api/json/envelope.hpp"

namespace ojs_shm::cli {

/// A job as flags describe it; empty where nothing was given.
struct SubmissionFlags {
  std::string type, input, queue, priority, id, delay, at, expires, timeout, lease, retry,
      rate_limit, meta, unique, unique_args, unique_meta, unique_period, unique_states, on_conflict,
      result_ttl, enqueue_ttl, total_timeout, grace_period;
  std::optional<std::uint32_t> priority_age_rate;
  bool pending = false, raise_priority = false;
};

/// The flags as an envelope, held to the same rules as one from a file. Throws shell::Refusal.
Envelope envelope_of(const SubmissionFlags& flags, const Observer& observer);
/// A priority that was given as a name becomes its number. kInvalid: the convention has no such
/// name.
Status settle_priority(Envelope& envelope, const Observer& observer);
/// kInvalid when the job asks for what this version does not do.
Status check_supported(const Envelope& envelope);

}  // namespace ojs_shm::cli
