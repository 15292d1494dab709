// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/moves/state.hpp"
#include "engine/rules/uuid.hpp"

// What operations hand out beside their outcome; the outcomes are in actor.hpp.

namespace ojs_shm::engine {

enum class Outcome : std::uint8_t;

/// What a fetch hands out; nothing of it is set before. `body` keeps its capacity from one fetch to
/// the next.
struct Fetched {
  std::uint32_t slot, queue;
  std::uint64_t word;  ///< the control word under which it is held
  JobId id;
  std::uint8_t rank;
  std::uint16_t attempt, max_attempts;
  std::uint32_t type_length, args_length, timeout_ms;
  std::uint64_t created_at, available_at, started_at, deadline;
  std::string* body;
};

/// A job of a batch that is acked.
struct Ack {
  std::uint64_t word;  ///< the control word under which it is held; spent
  std::uint32_t slot;
  bool lost;  ///< afterwards: it was no longer held
};

struct Settled {
  Outcome outcome{};
  JobState state = JobState::kCompleted;
  std::uint32_t delay_ms = 0;
  std::uint64_t due_at = 0;
};

/// What activate() makes available.
enum class Activation : std::uint8_t {
  kPending,  ///< a job that waits for it
  kTimed,    ///< a scheduled or retryable job, before its time
};

/// Why a held job ends without an ack.
enum class Setback : std::uint8_t {
  kNack,
  kRequeue,
  kHolderDeath,
  kLeaseExpiry,
  kExecutionTimeout,
  kTotalTimeout,
  kDrain
};

}  // namespace ojs_shm::engine
