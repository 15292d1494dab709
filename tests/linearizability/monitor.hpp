// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tests/linearizability/history.hpp"

namespace ojs_shm::test {

/// Decides whether a history of enqueues and fetches is one of a priority queue with FIFO levels,
/// in O(n log n) for each level. Every call must have returned; each job is enqueued once and
/// fetched at most once (a second fetch is a finding). Complete: no finding means that an order
/// exists. docs/linearizability.md has the proof. Returns what is wrong, or nothing.
std::optional<std::string> monitor(const History& history);

}  // namespace ojs_shm::test
