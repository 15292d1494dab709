// SPDX-License-Identifier: Apache-2.0
// On x86-64 a store is only release: what must be seen before a later load of another word needs a
// read-modify-write between the two (docs/memory_ordering.md).

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Access;

/// How often a producer that put a job into an unbounded queue looked at its flags after its
/// charge; -1 when it did so without a full barrier in between.
int looks_after_the_charge(const JobSpec& spec) {
  QuietSegment s;
  s.put(1);  // the queue has its name, and the level its ring
  const void* flags = s.store().queue(s.store().find_queue("default")).flags.address();
  bool charged = false, barrier = false;
  int looks = 0;
  {
    const AtAccess watching([&](Access access, shm::Point point, const void* word) {
      if (access == Access::kStore && point == shm::Point::kTallyIn)
        charged = true, barrier = false;
      if (access == Access::kRmw) barrier = true;
      if (access == Access::kLoad && word == flags && charged)
        looks = barrier && looks >= 0 ? looks + 1 : -1;
    });
    s.put(spec);
  }
  return looks;
}

TEST(Barriers, a_charge_is_seen_before_the_look_at_the_bounds) {
  JobSpec available = spec_of(1), scheduled = spec_of(1), pending = spec_of(1);
  scheduled.scheduled_at_ms = 1ULL << 42;
  pending.pending = true;
  EXPECT_EQ(looks_after_the_charge(available), 1);
  EXPECT_EQ(looks_after_the_charge(scheduled), 1);
  EXPECT_EQ(looks_after_the_charge(pending), 1);
}

}  // namespace
}  // namespace ojs_shm::test
