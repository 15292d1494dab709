// SPDX-License-Identifier: Apache-2.0
#include "engine/state.hpp"

namespace ojs_shm::engine {
namespace {

constexpr std::array<std::string_view, kJobStates> kStateNames = {
    "scheduled", "available", "pending",   "active",
    "completed", "retryable", "cancelled", "discarded",
};

constexpr std::array<std::string_view, kEvents> kEventNames = {
    "push",
    "push_scheduled",
    "push_pending",
    "due",
    "activate",
    "fetch",
    "ack",
    "nack_retry",
    "nack_discard",
    "requeue",
    "execution_timeout",
    "execution_timeout_exhausted",
    "lease_expiry",
    "lease_expiry_exhausted",
    "holder_death",
    "holder_death_exhausted",
    "beat",
    "reprioritize",
    "cancel",
    "expire",
    "dead_letter_retry",
};
static_assert(static_cast<std::size_t>(Event::kDeadLetterRetry) + 1 == kEvents,
              "every event has a name");

}  // namespace

std::string_view name_of(JobState state) noexcept {
  const auto index = static_cast<std::size_t>(state);
  return index < kJobStates ? kStateNames[index] : "unknown";
}

std::optional<JobState> job_state_by_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kJobStates; ++i) {
    if (kStateNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

std::string_view name_of(Event event) noexcept {
  const auto index = static_cast<std::size_t>(event);
  return index < kEvents ? kEventNames[index] : "unknown";
}

}  // namespace ojs_shm::engine
