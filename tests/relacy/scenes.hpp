// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/relacy/memory.hpp"
#include "tests/relacy/stage.hpp"

namespace ojs_shm::test {

/// What runs at once, a thread for each part, and what was before.
struct Scene {
  std::string name;
  std::function<void(Stage&)> prepare;
  std::vector<std::function<void(Stage&, std::uint32_t)>> parts;
  bool needs_total_order = false;  ///< of a write and a later load of another word
  /// Stores stand in the total order too, as everywhere but on x86-64: there who waits for room
  /// looks once more, later.
  bool stores_in_total_order = false;
  unsigned rarer = 1;  ///< it is played so many times less than others
};
const std::vector<Scene>& scenes();
/// Those of limits, tenants, pools, rates, events and full queues (policies.cpp), which are among
/// them.
std::vector<Scene> scenes_of_policies();
/// Every two of the operations of tests/schedules.
const std::vector<Scene>& pairs();

/// An order that is too weak, and the scene that must notice.
struct Mutant {
  const char* name;
  const char* scene;
  /// instead of the one it names
  std::function<std::memory_order(const Stage&, const MemoryAccess&)> order;
};
const std::vector<Mutant>& mutants();

inline void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }
inline void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

Play play_of(Stage& stage, const Scene& scene, const Mutant* mutant = nullptr);

}  // namespace ojs_shm::test
