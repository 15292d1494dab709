// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/moves/state.hpp"

namespace ojs_shm::test {

inline constexpr std::uint64_t kNever = ~0ULL;
inline constexpr std::uint8_t kNoJob = 255;
inline constexpr unsigned kMostJobs = 128;     ///< of one history
inline constexpr unsigned kMostProcesses = 6;  ///< the last one drains the queue at the end

enum class Kind : std::uint8_t { kEnqueue, kFetch, kAck, kRequeue, kCancel, kReprioritize, kMend };
enum class Answer : std::uint8_t {
  kPending,  ///< its process was killed inside the call
  kOk,
  kEmpty,
  kLost,
  kNotFound,
  kWrongState,
  kBusy,  ///< gave up, nothing was changed
  kRefused,
};

/// One call: who, what, when, and what it answered. Times are nanoseconds of one clock for all
/// processors.
struct Operation {
  Kind kind = Kind::kEnqueue;
  Answer answer = Answer::kPending;
  std::uint8_t process = 0;
  std::uint8_t job = kNoJob;
  /// of an enqueue; a re-prioritise: the new one; a fetch: the one it reports
  std::uint8_t level = 0;
  std::uint8_t previous = 0;  ///< of a re-prioritise: the level it reports; of a mend: whose death
  /// where its process is at home: its jobs go there, and its fetches look there first
  std::uint8_t line = 0;
  /// what a cancel or a refused change reports
  engine::JobState found = engine::JobState::kAvailable;
  std::uint64_t call = 0, returned = kNever;
};

/// By which the queue chooses among its levels, where it is not the better one that goes first.
struct Rules {
  /// An ageing queue: for each interval that a job has waited its level counts for one less. What
  /// time it is does not matter while no job's age passes an interval. 0: it does not age.
  std::uint64_t now_ms = 0, interval_ms = 0;
  /// of levels that take turns, the next one first; others come after them
  std::vector<std::uint8_t> cycle;
  std::uint8_t lines = 1;  ///< of levels each; a fetch takes from the first that has a job
  bool plain() const { return interval_ms == 0 && cycle.empty(); }
};

struct History {
  std::vector<Operation> operations;
  Rules rules;
  /// by job: the available_at that orders a front lane
  std::array<std::uint64_t, kMostJobs> since{};
};

/// The moment, not before everything this thread did, nor after anything it is going to do.
std::uint64_t stamp();

std::string describe(const Operation& operation, std::uint64_t origin);
/// One line for each call, the earliest first.
std::string print(const History& history);
/// Takes jobs, then single empty fetches and refusals out as long as `wrong` goes on saying so.
/// Leaving a job out of a right history leaves a right one, so what stays wrong was wrong.
History shrink(History history, const std::function<bool(const History&)>& wrong);

}  // namespace ojs_shm::test
