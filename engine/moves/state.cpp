// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/state.hpp"

#include <array>

namespace ojs_shm::engine {
namespace {

constexpr std::array<std::string_view, kJobStates> kStateNames = {
    "scheduled", "available", "pending",   "active",
    "completed", "retryable", "cancelled", "discarded",
};

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

}  // namespace ojs_shm::engine
