// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ojs_shm::engine {

/// The eight states of a job. Source: ojs-core 6; moves.hpp says how it comes from one to another.
enum class JobState : std::uint8_t {
  kScheduled = 0,
  kAvailable = 1,
  kPending = 2,
  kActive = 3,
  kCompleted = 4,
  kRetryable = 5,
  kCancelled = 6,
  kDiscarded = 7,
};
inline constexpr std::size_t kJobStates = 8;

/// Where a new job belongs.
constexpr JobState birth_state(bool pending, std::uint64_t due, std::uint64_t created) noexcept {
  if (pending) return JobState::kPending;
  return due > created ? JobState::kScheduled : JobState::kAvailable;
}

/// Finished: only a dead letter ever leaves such a state.
constexpr bool is_terminal(JobState state) noexcept {
  return state == JobState::kCompleted || state == JobState::kCancelled ||
         state == JobState::kDiscarded;
}

/// Whether the job stands against its queue's bound: what still waits for a worker. Source:
/// backpressure 3.
constexpr bool counts_as_depth(JobState state) noexcept {
  return state == JobState::kAvailable || state == JobState::kScheduled ||
         state == JobState::kRetryable || state == JobState::kPending;
}

/// "scheduled", "available", ...; "unknown" for a byte that is no state.
std::string_view name_of(JobState state) noexcept;
std::optional<JobState> job_state_by_name(std::string_view name) noexcept;

}  // namespace ojs_shm::engine
