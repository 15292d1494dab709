// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/timeout_fields.hpp"

#include <limits>

#include <spdlog/fmt/fmt.h>

namespace ojs_shm::json {
namespace {

constexpr std::uint32_t kMaxMs = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kLongestS = 3'153'600'000;  // a hundred years

}  // namespace

// What was said in whole seconds goes back as it was sent: some clients read `timeout` of a reply
// as milliseconds, so the others do not get it. A duration, or a fraction of `visibility_timeout`,
// goes back in milliseconds alone, since clients of a strict type read no other than an integer.
bool TimeoutFields::take(const Member& member, Complaint& complaint) {
  const auto& [name, value] = member;
  if (name == "timeout_ms" || name == "visibility_timeout_ms") {
    settle(name == "timeout_ms" ? timeout_ms_ : lease_ms_,
           whole_number(name, value, kMaxMs, complaint), name, complaint);
    return false;
  }
  if (name == "timeout" && kind_of(value) != Kind::kString) {  // ojs-core 5.2
    Slot seconds;
    take_seconds(member, 1, kMaxMs / 1000, seconds, complaint);
    if (seconds) settle(timeout_ms_, Slot(*seconds * 1000), name, complaint);
    return true;
  }
  if (name == "timeout" || name == "visibility_timeout") {
    settle(name == "timeout" ? timeout_ms_ : lease_ms_, seconds_or_duration(name, value, complaint),
           name, complaint);
    return integer_of(value).has_value();
  }
  if (name == "enqueue_ttl") take_seconds(member, 1, kLongestS, enqueue_ttl_s_, complaint);
  if (name == "total_timeout") take_seconds(member, 1, kLongestS, total_timeout_s_, complaint);
  if (name == "grace_period") take_seconds(member, 0, kLongestS, grace_period_s_, complaint);
  if (name == "heartbeat_timeout")
    take_seconds(member, 1, kMaxMs / 1000, heartbeat_timeout_s_, complaint);
  return true;
}

/// Source: ojs-timeouts 6, which takes no durations.
void TimeoutFields::take_seconds(const Member& member, std::int64_t least, std::int64_t most,
                                 Slot& slot, Complaint& complaint) {
  const auto seconds = integer_of(member.value);
  if (!seconds || *seconds < least || *seconds > most)
    return complaint.wrong_kind(member.name,
                                fmt::format("a whole number of seconds from {} to {}", least, most),
                                member.value);
  settle(slot, Slot(static_cast<std::uint32_t>(*seconds)), member.name, complaint);
}

void TimeoutFields::check(Complaint& complaint) const {
  if (total_timeout_s_ && std::uint64_t{*total_timeout_s_} * 1000 < timeout_ms())
    complaint.about("total_timeout", "must not be shorter than timeout");
}

std::uint32_t TimeoutFields::lease_ms() const {
  const std::uint32_t heartbeat = heartbeat_timeout_s_.value_or(0) * 1000;
  const std::uint32_t lease = lease_ms_.value_or(0);
  return heartbeat != 0 && (lease == 0 || heartbeat < lease) ? heartbeat : lease;
}

}  // namespace ojs_shm::json
