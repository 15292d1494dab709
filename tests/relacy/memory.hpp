// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shm/points.hpp"

namespace ojs_shm::test {

/// One access before it is made, for a lane that weakens its order or names its word.
struct MemoryAccess {
  enum class Kind : std::uint8_t { kLoad, kStore, kUpdate } kind;
  const void* word;
  shm::Point point;  ///< of a write through the door; kNone for loads and plain data
  std::memory_order order;
};

/// What runs on the memory model. Everything but `threads` runs alone, on the plain bytes.
struct Play {
  void* begin = nullptr;  ///< the memory that is shared
  std::size_t size = 0;
  std::function<void()> prepare;
  std::vector<std::function<void()>> threads;  ///< two or three
  std::function<std::string()> verdict;        ///< empty: all is well
  std::function<std::memory_order(const MemoryAccess&)> weaken = {};
  std::function<std::string_view(const void*)> name_of = {};
  /// One by one every schedule with up to so many preemptions, each load with the newest value and
  /// with the one before, instead of dice.
  std::optional<unsigned> preemptions = {};
};

struct Played {
  std::uint64_t last = 0;                      ///< number of the last run
  bool complete = false;                       ///< every schedule was played
  std::uint64_t accesses = 0, old_values = 0;  ///< old: loads that did not return the newest value
  std::string failure = {};                    ///< the first wrong verdict
  /// what led to it, from the same run played once more
  std::string history = {};
};

/// Plays runs first, first + 1 and so on, each with a schedule and values of its own: Relacy keeps
/// which values a load may return, dice say which it returns and who goes on. A run with the same
/// number is the same whenever it is played.
Played play(const Play& play, std::uint64_t first, std::uint64_t runs);

}  // namespace ojs_shm::test
