// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <ojs_shm/segment.hpp>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {

/// The broker's seat of a segment that is still to be made: it is never supervised, no keeper
/// either, while this is held.
inline shm::LockFile take_seat(const SegmentName& where) {
  shm::LockFile seat;
  EXPECT_EQ(seat.open(internal::path_of(where), true, 0660, {}), "");
  EXPECT_TRUE(seat.try_lock(shm::kBrokerSeat));
  return seat;
}

}  // namespace ojs_shm::test
