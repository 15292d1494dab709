// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::json {

/// The members of an envelope that say how long something may last, but for times of day: timeouts,
/// leases, and what ojs-timeouts 6 adds to them. 0 is: nothing was said.
class TimeoutFields {
 public:
  /// Takes one of them. True: the client's own words must stay with the job.
  bool take(const Member& member, Complaint& complaint);
  /// Complains of values that contradict each other.
  void check(Complaint& complaint) const;

  std::uint32_t timeout_ms() const { return timeout_ms_.value_or(0); }
  /// Heartbeats renew a lease, so the shorter of `visibility_timeout` and `heartbeat_timeout` ends
  /// a silence.
  std::uint32_t lease_ms() const;
  std::uint32_t enqueue_ttl_s() const { return enqueue_ttl_s_.value_or(0); }
  std::uint32_t total_timeout_s() const { return total_timeout_s_.value_or(0); }
  std::uint32_t grace_period_s() const { return grace_period_s_.value_or(0); }

 private:
  using Slot = std::optional<std::uint32_t>;
  static void take_seconds(const Member& member, std::int64_t least, std::int64_t most, Slot& slot,
                           Complaint& complaint);

  Slot timeout_ms_, lease_ms_;
  Slot enqueue_ttl_s_, total_timeout_s_, grace_period_s_, heartbeat_timeout_s_;
};

}  // namespace ojs_shm::json
