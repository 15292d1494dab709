// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/linearizability/recorder.hpp"

namespace ojs_shm::test {

/// A kind of history that is recorded of the engine.
enum class Theme : std::uint8_t {
  kLongStepped,   ///< enqueues and fetches, one process at a time; for the monitor
  kLongFree,      ///< at once
  kShortStepped,  ///< every call; for the search
  kShortFree,
  kCrashStepped,  ///< and a process killed after a shared write
  kCrashFree,
  kAgingStepped,  ///< every call, on a queue where jobs of several ages wait
  kAgingFree,
  kWeightedStepped,  ///< and on one whose levels take turns
  kWeightedFree,
  kShardedStepped,  ///< and on one of several lines, where one in four also has a process killed
  kShardedFree,
  kCount
};
std::string_view name_of(Theme theme);

struct Tally {
  std::uint64_t histories = 0, operations = 0, kills = 0, empties = 0;
};

/// What was found, to be read by a person.
struct Finding {
  std::string text;
};

/// Records `histories` histories of one theme in a fresh segment; all follows from the seed (in a
/// stepped theme the switches as well). Stops at the first wrong one.
std::optional<Finding> explore(Theme theme, std::uint64_t seed, unsigned histories, Tally& tally);

}  // namespace ojs_shm::test
