// SPDX-License-Identifier: Apache-2.0
// Lives of slots: how they are counted when the counts are at their end.

#include "engine/moves/slot_pool.hpp"

#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(SlotPool, no_job_sees_its_fence_fall_at_the_end_of_the_tags) {
  QuietSegment s;
  for (std::uint32_t slot = 0; slot < s.store().slots(); ++slot)
    s.store().job(slot).control.store(
        engine::Control(engine::kSlotFree, 0, 0, shm::kTagMask - 63).word, shm::Point::kNone);
  JobSpec spec = spec_of();
  spec.retry.jitter = false;
  const std::string id = s.put(spec);
  std::uint64_t before = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_EQ(s.take(), id);
    EXPECT_GT(s.job.fence(), before);
    before = s.job.fence();
    EXPECT_TRUE(s.worker.nack(s.job, failure()).ok());
    s.pass(kHour);
  }
}

TEST(SlotPool, a_job_of_long_ago_was_there_when_the_lives_of_its_slot_were_counted_anew) {
  QuietSegment s(few_slots(32));
  const auto pass_on = [&s] {
    const std::string id = s.put();
    EXPECT_EQ(s.take(), id);
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    EXPECT_TRUE(s.admin.drop(id).ok());
    return id;
  };
  for (std::uint32_t slot = 0; slot < s.store().slots(); ++slot)
    s.store().job(slot).generation.set(0xFFFF'FFF0);
  const std::string old = pass_on();
  for (std::uint32_t slot = 0; slot < s.store().slots(); ++slot)
    s.store().job(slot).generation.set(5);
  EXPECT_TRUE(engine::gave_away(s.store(), engine::parse_id(old).value()));
  EXPECT_FALSE(s.observer.get(old).ok());
}

}  // namespace
}  // namespace ojs_shm::test
