// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// What a run sees of the world is the same each time: a clock that moves on by a little with each
// look, random numbers that are none. Each file is mapped between two fences, so that a step
// outside is a crash.
namespace ojs_shm::fuzz {

/// Sets clock and random numbers back; the first thing in a run.
void begin_run();
void advance_clock(std::uint64_t ms);

/// A directory of this process, below TMPDIR, that goes with it.
const std::string& scratch();

}  // namespace ojs_shm::fuzz
