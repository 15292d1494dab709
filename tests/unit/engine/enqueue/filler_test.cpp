// SPDX-License-Identifier: Apache-2.0
// Jobs with a past, jobs that no queue gets, and dead letters that come back, as a lane fills them
// in.
#include "engine/enqueue/filler.hpp"

#include "engine/enqueue/restore.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::JobState;
using engine::Outcome;

class Fillers : public testing::Test {
 protected:
  engine::PastJob past(JobState state) {
    engine::PastJob job;
    job.job.type = "unit.test";
    job.job.args = "[1]";
    job.job.queue = s.actor().ensure_queue("default");
    job.job.id = engine::JobId{0x0193'0000'0000'7000ULL, ++ids_ | 1ULL << 63};
    job.state = state;
    return job;
  }
  std::string restored(const engine::PastJob& job) {
    EXPECT_EQ(s.actor().restore(job), Outcome::kOk);
    return engine::to_string(*job.job.id);
  }
  QuietSegment s;

 private:
  std::uint64_t ids_ = 0;
};

TEST_F(Fillers, a_job_that_is_filled_aside_is_in_no_queue) {
  engine::NewJob job;
  job.type = "unit.test";
  job.args = "[1]";
  job.queue = s.actor().ensure_queue("default");
  std::uint64_t word = 0;
  const std::uint32_t slot = s.actor().slots().take(word);
  engine::JobId id;
  ASSERT_EQ(s.actor().fill_aside(job, slot, id), Outcome::kOk);
  EXPECT_EQ(s.store().job(slot).id(), id);
  EXPECT_EQ(s.queue().depth, 0U);
  EXPECT_EQ(s.take(), "");
  s.actor().slots().free(slot, engine::Control(word));
}

TEST_F(Fillers, no_bound_refuses_a_job_that_was_accepted_elsewhere) {
  s.put();
  ASSERT_TRUE(s.admin.set_queue("default", {1, 0, {}}).ok());
  ASSERT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  const std::string id = restored(past(JobState::kAvailable));
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_EQ(s.queue().depth, 2U);
}

TEST_F(Fillers, a_job_that_has_ended_is_charged_to_no_queue) {
  engine::PastJob job = past(JobState::kCompleted);
  job.finished_at = s.now_ms();
  job.result = "42";
  const std::string id = restored(job);
  EXPECT_EQ(s.state_of(id), State::kCompleted);
  EXPECT_EQ(s.get(id).result, "42");
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST_F(Fillers, a_dead_letter_comes_back_as_if_it_had_not_been_tried) {
  engine::PastJob job = past(JobState::kDiscarded);
  job.finished_at = s.now_ms();
  job.attempt = 3;
  job.dead = true;
  const std::string id = restored(job);
  JobState found{};
  ASSERT_EQ(s.actor().retry(*job.job.id, engine::Lost::kDeadLetter, found), Outcome::kOk);
  EXPECT_EQ(s.get(id).attempt, 0);
  EXPECT_EQ(s.take(), id);
  EXPECT_EQ(s.actor().retry(*job.job.id, engine::Lost::kAny, found), Outcome::kWrongState);
  EXPECT_EQ(found, JobState::kActive);
}

}  // namespace
}  // namespace ojs_shm::test
