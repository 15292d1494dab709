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

/// Two jobs of rank 1, one of rank 2 and one of rank 3, whose id was brought, wait; job 5 was
/// cancelled, so that a dead hint stands among them.
void three_wait(World& world);
/// Nothing waits, but every level was used and is still open.
void all_open(World& world);
/// As all_open, and every ring stands at the end of a full chunk.
void all_at_the_end_of_a_chunk(World& world);

/// A new operation joins all tests of pairs by one entry.
const std::vector<Named>& operations();
const Named& named(std::string_view name);
/// Beside each other, where three wait.
Scenario scenario_of(std::initializer_list<const Named*> parts);

}  // namespace ojs_shm::test
