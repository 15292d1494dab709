// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/linearizability/history.hpp"

namespace ojs_shm::test {

inline constexpr unsigned kMostSearchedJobs = 16, kMostSearchedOperations = 64;

enum class Verdict : std::uint8_t { kRight, kWrong, kTooLarge };

/// What of the answers is compared.
struct Strictness {
  /// Also what a re-prioritise tells beside its effect: the level before, the state that made it
  /// refuse, and that a job it left at its level was there to be fetched. These are reads, and
  /// reads are no part of the promised order.
  bool details = false;
};

/// Looks for an order of the calls, each between its call and its return, in which a sequential
/// queue would have given these answers (Wing and Gong's search with Lowe's memory of states).
/// Calls whose process was killed may have happened or not; a kMend call gives back what the dead
/// process held, job by job.
Verdict search(const History& history, const Strictness& strictness = {});

}  // namespace ojs_shm::test
