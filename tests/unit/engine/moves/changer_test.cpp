// SPDX-License-Identifier: Apache-2.0
// What a lane does to one job that it finds by its id, or whose time has come.
#include "engine/moves/changer.hpp"

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::JobState;
using engine::Outcome;

class Changers : public testing::Test {
 protected:
  engine::JobId id_of(const std::string& id) { return *engine::parse_id(id); }
  std::uint32_t slot_of(const std::string& id) { return engine::find_job(s.store(), id_of(id)); }
  QuietSegment s;
  engine::Actor& actor = s.actor();
};

TEST_F(Changers, what_its_state_does_not_allow_is_refused_and_told) {
  const std::string id = s.put();
  JobState found{};
  EXPECT_EQ(actor.activate(id_of(id), engine::Activation::kPending, found), Outcome::kWrongState);
  EXPECT_EQ(found, JobState::kAvailable);
  EXPECT_EQ(actor.drop_dead(id_of(id), found), Outcome::kWrongState);
  ASSERT_EQ(s.drain().size(), 1U);
  EXPECT_EQ(actor.cancel(id_of(id), found), Outcome::kWrongState);
  EXPECT_EQ(found, JobState::kCompleted);
  EXPECT_EQ(actor.cancel({1, 2}, found), Outcome::kNotFound);
}

TEST_F(Changers, a_job_of_a_deleted_queue_is_discarded_with_the_reason) {
  const std::string id = s.put();
  ASSERT_EQ(actor.discard(id_of(id)), Outcome::kOk);
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
  ASSERT_EQ(s.get(id).errors.size(), 1U);
  EXPECT_EQ(s.get(id).errors[0].code, "queue_deleted");
  EXPECT_EQ(actor.discard(id_of(id)), Outcome::kWrongState);
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST_F(Changers, a_slot_is_tended_when_its_job_is_due_and_says_when_that_is) {
  s.stop_clock();
  JobSpec spec = spec_of();
  const std::uint64_t now = s.now_ms();
  spec.scheduled_at_ms = now + kMinute;
  const std::string id = s.put(spec);
  const std::uint32_t slot = slot_of(id);
  const std::uint32_t generation = s.store().job(slot).generation.get();
  EXPECT_EQ(actor.tend(slot, generation, now), now + kMinute);
  EXPECT_EQ(actor.tend(slot, generation + 1, now), 0U) << "of a job that is gone";
  s.move_clock(kMinute);
  EXPECT_EQ(actor.tend(slot, generation, now + kMinute), 0U);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
}

}  // namespace
}  // namespace ojs_shm::test
