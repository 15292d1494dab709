// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ojs_shm/segment.hpp>

namespace ojs_shm::internal {

/// Moves the segment's clock on, for every process that is attached. For tests of programs: leases
/// and due times of a segment in use end early.
void advance_clock(const Segment& segment, std::uint64_t ms);

}  // namespace ojs_shm::internal
