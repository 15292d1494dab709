// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shm/ring.hpp"
#include "shm/segment.hpp"

// Whether a hint can still lead to what it named; once it cannot, it never can.

namespace ojs_shm::engine {

/// Of a queue's ring: to a job, or to a flow.
bool any_lives(const shm::Segment& segment, shm::Hint hint);
/// To its job.
bool hint_lives(const shm::Segment& segment, shm::Hint hint);
bool timer_lives(const shm::Segment& segment, shm::Hint hint);
bool batch_lives(const shm::Segment& segment, shm::Hint hint);
bool ticket_lives(const shm::Segment& segment, shm::Hint hint);

}  // namespace ojs_shm::engine
