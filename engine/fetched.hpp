// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/state.hpp"
#include "engine/uuid.hpp"

// What operations hand out beside their outcome; the outcomes are in actor.hpp.

namespace ojs_shm::engine {

enum class Outcome : std::uint8_t;

/// What a fetch hands out. `body` keeps its capacity from one fetch to the next.
struct Fetched {
  std::uint32_t slot = 0, queue = 0;
  std::uint64_t word = 0;  ///< the control word under which it is held
  JobId id;
  std::uint8_t rank = 0;
  std::uint16_t attempt = 0, max_attempts = 0;
  std::uint32_t type_length = 0, args_length = 0, timeout_ms = 0;
  std::uint64_t created_at = 0, available_at = 0, started_at = 0, deadline = 0;
  std::string* body = nullptr;
};

struct Settled {
  Outcome outcome{};
  JobState state = JobState::kCompleted;
  std::uint32_t delay_ms = 0;
  std::uint64_t due_at = 0;
};

/// Why a held job ends without an ack.
/// What activate() makes available.
enum class Activation : std::uint8_t {
  kPending,  ///< a job that waits for it
  kTimed,    ///< a scheduled or retryable job, before its time
};

enum class Setback : std::uint8_t {
  kNack,
  kRequeue,
  kHolderDeath,
  kLeaseExpiry,
  kExecutionTimeout,
  kDrain
};

}  // namespace ojs_shm::engine
