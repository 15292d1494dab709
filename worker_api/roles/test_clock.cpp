// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/test_clock.hpp"

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

void advance_clock(const Segment& segment, std::uint64_t ms) {
  // NO CRASH POINT: one write, after which the time is another and all that follows is as ever
  segment.attachment()->segment().header().clock_offset_ms.fetch_add(ms, shm::Point::kNone);
  segment.attachment()->ring_doorbell();
}

}  // namespace ojs_shm::internal
