// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "tests/schedules/explorer.hpp"

namespace ojs_shm::test {

using Part = std::function<void(World&, std::uint32_t)>;

struct Named {
  const char* name;
  Part part;
};

/// The first job of a fiber's own; it has four.
inline unsigned own(std::uint32_t fiber) { return 6 + 4 * fiber; }

/// What is before each of the basic operations (tests/catalogue).
void three_wait(World& world);
/// Nothing waits, but every level was used and is still open.
void all_open(World& world);
/// As all_open, and every ring stands at the end of a full chunk.
void all_at_the_end_of_a_chunk(World& world);

/// The basic operations of tests/catalogue, each as a fiber calls it.
const std::vector<Named>& operations();
const Named& named(std::string_view name);
/// Beside each other, where three wait.
Scenario scenario_of(std::initializer_list<const Named*> parts);

}  // namespace ojs_shm::test
