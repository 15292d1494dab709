// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ojs_shm::engine {

/// The eight states of a job. Source: ojs-core 6; the transitions are those of
/// docs/architecture.md.
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

/// Everything that can happen to a job. Where an event has two outcomes (an attempt is left, or
/// none is) it has two names, so that the table below needs no condition.
enum class Event : std::uint8_t {
  kPush,           ///< enqueued, for now
  kPushScheduled,  ///< enqueued, for a future time
  kPushPending,    ///< enqueued, to wait for activation
  kDue,            ///< the scheduled or retry time has come
  kActivate,
  kFetch,
  kAck,
  kNackRetry,         ///< failed, an attempt is left
  kNackDiscard,       ///< failed for good: exhausted or not retryable
  kRequeue,           ///< given back unworked; the attempt is not counted
  kExecutionTimeout,  ///< ran longer than its timeout; as a nack
  kExecutionTimeoutExhausted,
  kLeaseExpiry,  ///< the holder stopped beating; available at once
  kLeaseExpiryExhausted,
  kHolderDeath,  ///< the holder's process is gone; available at once
  kHolderDeathExhausted,
  kBeat,  ///< a heartbeat or a progress report
  kReprioritize,
  kCancel,
  kExpire,           ///< expires_at has passed before the job ran
  kDeadLetterRetry,  ///< taken back out of the dead letters
};
inline constexpr std::size_t kEvents = 21;

/// One row of the table. A job that does not exist yet has no state to come from.
struct Transition {
  std::optional<JobState> from;
  Event event;
  JobState to;
};

/// The whole life of a job. What is not written here does not happen.
inline constexpr Transition kTransitions[] = {
    {std::nullopt, Event::kPush, JobState::kAvailable},
    {std::nullopt, Event::kPushScheduled, JobState::kScheduled},
    {std::nullopt, Event::kPushPending, JobState::kPending},

    {JobState::kScheduled, Event::kDue, JobState::kAvailable},
    {JobState::kScheduled, Event::kReprioritize, JobState::kScheduled},
    {JobState::kScheduled, Event::kCancel, JobState::kCancelled},
    {JobState::kScheduled, Event::kExpire, JobState::kDiscarded},

    {JobState::kAvailable, Event::kFetch, JobState::kActive},
    {JobState::kAvailable, Event::kReprioritize, JobState::kAvailable},
    {JobState::kAvailable, Event::kCancel, JobState::kCancelled},
    {JobState::kAvailable, Event::kExpire, JobState::kDiscarded},

    {JobState::kPending, Event::kActivate, JobState::kAvailable},
    {JobState::kPending, Event::kCancel, JobState::kCancelled},

    {JobState::kActive, Event::kAck, JobState::kCompleted},
    {JobState::kActive, Event::kNackRetry, JobState::kRetryable},
    {JobState::kActive, Event::kNackDiscard, JobState::kDiscarded},
    {JobState::kActive, Event::kRequeue, JobState::kAvailable},
    {JobState::kActive, Event::kExecutionTimeout, JobState::kRetryable},
    {JobState::kActive, Event::kExecutionTimeoutExhausted, JobState::kDiscarded},
    {JobState::kActive, Event::kLeaseExpiry, JobState::kAvailable},
    {JobState::kActive, Event::kLeaseExpiryExhausted, JobState::kDiscarded},
    {JobState::kActive, Event::kHolderDeath, JobState::kAvailable},
    {JobState::kActive, Event::kHolderDeathExhausted, JobState::kDiscarded},
    {JobState::kActive, Event::kBeat, JobState::kActive},
    {JobState::kActive, Event::kCancel, JobState::kCancelled},

    {JobState::kRetryable, Event::kDue, JobState::kAvailable},
    {JobState::kRetryable, Event::kCancel, JobState::kCancelled},

    {JobState::kDiscarded, Event::kDeadLetterRetry, JobState::kAvailable},
};

namespace detail {

inline constexpr std::uint8_t kNowhere = 0xFF;

// Row 0 is "no job yet", row 1 + s is state s.
using NextStates = std::array<std::array<std::uint8_t, kEvents>, kJobStates + 1>;

constexpr std::size_t row_of(std::optional<JobState> from) {
  return from ? 1 + static_cast<std::size_t>(*from) : 0;
}

consteval NextStates lay_out_transitions() {
  NextStates next{};
  for (auto& row : next) row.fill(kNowhere);
  for (const Transition& transition : kTransitions) {
    std::uint8_t& to = next[row_of(transition.from)][static_cast<std::size_t>(transition.event)];
    if (to != kNowhere) throw "an event leads to two states";
    to = static_cast<std::uint8_t>(transition.to);
  }
  return next;
}
inline constexpr NextStates kNextStates = lay_out_transitions();

}  // namespace detail

/// Where the event leads, or nothing when the state forbids it. One load. Values outside the enums
/// lead nowhere.
constexpr std::optional<JobState> next(std::optional<JobState> from, Event event) noexcept {
  const std::size_t row = detail::row_of(from);
  const std::size_t column = static_cast<std::size_t>(event);
  if (row > kJobStates || column >= kEvents) return std::nullopt;
  const std::uint8_t to = detail::kNextStates[row][column];
  if (to == detail::kNowhere) return std::nullopt;
  return static_cast<JobState>(to);
}

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
/// "push", "fetch", ..., for errors and logs.
std::string_view name_of(Event event) noexcept;

}  // namespace ojs_shm::engine
