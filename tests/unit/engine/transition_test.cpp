// SPDX-License-Identifier: Apache-2.0
// The life of a job, row by row, through the public API: each test makes the transition and looks
// at what it leaves.

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

JobSpec tried_often() {
  JobSpec spec = spec_of(4);
  spec.retry.max_attempts = 20;
  return spec;
}

std::string job_in(QuietSegment& s, State state) {
  JobSpec spec = tried_often();
  switch (state) {
    case State::kScheduled: spec.scheduled_at_ms = s.now_ms() + kHour; return s.put(spec);
    case State::kPending: spec.pending = true; return s.put(spec);
    case State::kAvailable: return s.put(spec);
    default: break;
  }
  const std::string id = s.put(spec);
  EXPECT_EQ(s.take(), id);
  switch (state) {
    case State::kCompleted: EXPECT_TRUE(s.worker.ack(s.job).ok()); break;
    case State::kRetryable: EXPECT_TRUE(s.worker.nack(s.job, failure()).ok()); break;
    case State::kDiscarded: EXPECT_TRUE(s.worker.nack(s.job, failure(false)).ok()); break;
    case State::kCancelled: EXPECT_TRUE(s.producer.cancel(id).ok()); break;
    default: break;
  }
  return id;
}

constexpr State kEvery[] = {State::kScheduled, State::kAvailable, State::kPending,
                            State::kActive,    State::kCompleted, State::kRetryable,
                            State::kCancelled, State::kDiscarded};

TEST(Transition, push_makes_a_job_available_scheduled_or_pending) {
  QuietSegment s;
  const std::uint64_t before = s.now_ms();
  const JobInfo available = s.get(job_in(s, State::kAvailable));
  EXPECT_EQ(available.state, State::kAvailable);
  EXPECT_GE(available.created_at_ms, before);
  EXPECT_GE(available.enqueued_at_ms, available.created_at_ms);
  EXPECT_EQ(available.attempt, 0);
  EXPECT_EQ(s.get(job_in(s, State::kScheduled)).state, State::kScheduled);
  EXPECT_EQ(s.get(job_in(s, State::kPending)).state, State::kPending);
  JobSpec past = spec_of(4);
  past.scheduled_at_ms = s.now_ms() - kHour;
  EXPECT_EQ(s.state_of(s.put(past)), State::kAvailable);
}

TEST(Transition, due_makes_scheduled_and_retryable_jobs_available) {
  QuietSegment s;
  const std::string scheduled = job_in(s, State::kScheduled),
                    retryable = job_in(s, State::kRetryable);
  s.tick();
  EXPECT_EQ(s.state_of(scheduled), State::kScheduled);
  const std::uint64_t created = s.get(scheduled).created_at_ms;
  s.pass(2 * kHour);
  for (const std::string& id : {scheduled, retryable}) {
    EXPECT_EQ(s.state_of(id), State::kAvailable);
    EXPECT_GE(s.get(id).enqueued_at_ms, created + 2 * kHour);
  }
}

TEST(Transition, activate_makes_a_pending_job_available) {
  QuietSegment s;
  const std::string id = job_in(s, State::kPending);
  EXPECT_EQ(s.take(), "");
  ASSERT_TRUE(s.producer.activate(id).ok());
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_EQ(s.take(), id);
}

TEST(Transition, fetch_makes_an_available_job_active) {
  QuietSegment s;
  const std::string id = job_in(s, State::kAvailable);
  const std::uint64_t before = s.now_ms();
  ASSERT_EQ(s.take(), id);
  const JobInfo info = s.get(id);
  EXPECT_EQ(info.state, State::kActive);
  EXPECT_EQ(info.attempt, 1);
  EXPECT_EQ(s.job.attempt(), 1);
  EXPECT_GE(info.started_at_ms, before);
  EXPECT_GE(s.job.deadline_ms(), before + 1'800'000);
}

TEST(Transition, ack_completes) {
  QuietSegment s;
  const std::string id = job_in(s, State::kActive);
  ASSERT_TRUE(s.worker.ack(s.job, R"({"sum":3})").ok());
  const JobInfo info = s.get(id);
  EXPECT_EQ(info.state, State::kCompleted);
  EXPECT_EQ(info.result, R"({"sum":3})");
  EXPECT_GE(info.completed_at_ms, info.started_at_ms);
  EXPECT_EQ(info.discarded_at_ms, 0U);
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
  EXPECT_EQ(s.worker.nack(s.job, failure()).code(), Code::kLost);
}

TEST(Transition, nack_with_attempts_left_waits_for_its_retry) {
  QuietSegment s;
  JobSpec spec = tried_often();
  spec.retry.jitter = false;
  spec.retry.initial_ms = 7000;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  const auto outcome = s.worker.nack(s.job, failure());
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->state, State::kRetryable);
  EXPECT_EQ(outcome->retry_delay_ms, 7000U);
  const JobInfo info = s.get(id);
  EXPECT_EQ(info.state, State::kRetryable);
  EXPECT_EQ(info.next_attempt_at_ms, outcome->next_attempt_at_ms);
  EXPECT_EQ(info.retry_delay_ms, 7000U);
  ASSERT_EQ(info.errors.size(), 1U);
  EXPECT_EQ(info.errors[0].code, "boom");
  EXPECT_EQ(info.errors[0].message, "it did not work");
  EXPECT_EQ(info.errors[0].attempt, 1);
}

TEST(Transition, nack_discards_when_no_attempt_is_left_or_none_is_wanted) {
  QuietSegment s;
  JobSpec once = spec_of(4);
  once.retry.max_attempts = 1;
  const std::string exhausted = s.put(once);
  ASSERT_EQ(s.take(), exhausted);
  EXPECT_EQ(s.worker.nack(s.job, failure())->state, State::kDiscarded);
  JobSpec listed = tried_often();
  listed.extra = R"({"retry":{"non_retryable_errors":["boom"]}})";
  const std::string matched = s.put(listed);
  ASSERT_EQ(s.take(), matched);
  EXPECT_EQ(s.worker.nack(s.job, failure())->state, State::kDiscarded);
  for (const std::string& id : {exhausted, matched, job_in(s, State::kDiscarded)}) {
    const JobInfo info = s.get(id);
    EXPECT_EQ(info.state, State::kDiscarded);
    EXPECT_NE(info.discarded_at_ms, 0U);
    EXPECT_EQ(info.completed_at_ms, info.discarded_at_ms);
    EXPECT_FALSE(info.dead_letter);
  }
}

TEST(Transition, requeue_gives_back_and_counts_no_attempt) {
  QuietSegment s;
  const std::string id = job_in(s, State::kActive);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_EQ(s.get(id).attempt, 0);
  EXPECT_TRUE(s.get(id).errors.empty());
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.attempt(), 1);
}

TEST(Transition, execution_timeout_is_a_nack) {
  QuietSegment s;
  JobSpec spec = tried_often();
  spec.timeout_ms = 1000;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  EXPECT_LE(s.job.deadline_ms(), s.job.started_at_ms() + 1000);
  // beats do not prolong it
  EXPECT_LE(s.worker.heartbeat(s.job, 100'000).value(), s.job.started_at_ms() + 1000);
  s.pass(kHour);
  const JobInfo info = s.get(id);
  EXPECT_EQ(info.state, State::kRetryable);
  ASSERT_EQ(info.errors.size(), 1U);
  EXPECT_EQ(info.errors[0].type, "timeout");
  EXPECT_TRUE(s.job.cancel_requested());
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
  JobSpec once = spec;
  once.retry.max_attempts = 1;
  const std::string last = s.put(once);
  ASSERT_EQ(s.take(), last);
  s.pass(kHour);
  EXPECT_EQ(s.state_of(last), State::kDiscarded);
}

TEST(Transition, lease_expiry_makes_available_at_once_or_discards_the_exhausted) {
  QuietSegment s;
  JobSpec spec = tried_often();
  spec.lease_ms = 1000;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  ASSERT_EQ(s.get(id).errors.size(), 1U);
  EXPECT_EQ(s.get(id).errors[0].code, "visibility_timeout");
  EXPECT_EQ(s.worker.heartbeat(s.job).code(), Code::kLost);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.attempt(), 2);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  spec.retry.max_attempts = 1;
  const std::string last = s.put(spec);
  ASSERT_EQ(s.take(), last);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(last), State::kDiscarded);
}

TEST(Transition, cancel_ends_whatever_is_not_finished) {
  for (const State state :
       {State::kScheduled, State::kAvailable, State::kPending, State::kRetryable, State::kActive}) {
    QuietSegment s;
    const std::string id = job_in(s, state);
    ASSERT_EQ(s.state_of(id), state);
    const auto cancelled = s.producer.cancel(id);
    ASSERT_TRUE(cancelled.ok()) << state_name(state);
    EXPECT_EQ(cancelled->state, State::kCancelled);
    EXPECT_EQ(cancelled->previous_state, state);
    EXPECT_NE(cancelled->cancelled_at_ms, 0U);
    EXPECT_EQ(cancelled->completed_at_ms, 0U);
    s.pass(10 * kHour);
    EXPECT_EQ(s.state_of(id), State::kCancelled);
    EXPECT_EQ(s.take(), "");
    EXPECT_EQ(s.queue().depth, 0U);
    if (state != State::kActive) continue;
    EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
  }
}

TEST(Transition, cancel_tells_the_worker_of_an_active_job) {
  QuietSegment s;
  const std::string id = job_in(s, State::kActive);
  EXPECT_FALSE(s.job.cancel_requested());
  ASSERT_TRUE(s.producer.cancel(id).ok());
  EXPECT_TRUE(s.job.cancel_requested());
}

TEST(Transition, expiry_discards_and_sets_no_completion_time) {
  QuietSegment s;
  JobSpec spec = spec_of(4);
  spec.expires_at_ms = s.now_ms() + kHour;
  const std::string available = s.put(spec);
  spec.scheduled_at_ms = s.now_ms() + 5 * kHour;
  const std::string scheduled = s.put(spec);
  s.tick();
  EXPECT_EQ(s.state_of(available), State::kAvailable);
  s.pass(2 * kHour);
  for (const std::string& id : {available, scheduled}) {
    const JobInfo info = s.get(id);
    EXPECT_EQ(info.state, State::kDiscarded);
    EXPECT_NE(info.discarded_at_ms, 0U);
    EXPECT_EQ(info.completed_at_ms, 0U);
    EXPECT_FALSE(info.dead_letter);
  }
  EXPECT_EQ(s.queue().discarded_total, 2U);
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST(Transition, dead_letter_retry_begins_again_with_attempt_0) {
  QuietSegment s;
  JobSpec spec = spec_of(4);
  spec.retry.max_attempts = 1;
  spec.retry.dead_letter = true;
  const std::string id = s.put(spec), dropped = s.put(spec);
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(s.take(), "");
    ASSERT_EQ(s.worker.nack(s.job, failure())->state, State::kDiscarded);
  }
  EXPECT_TRUE(s.get(id).dead_letter);
  JobFilter dead;
  dead.dead_letter = true;
  EXPECT_EQ(s.observer.list(dead).size(), 2U);
  EXPECT_EQ(s.queue().depth, 0U);
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  const JobInfo info = s.get(id);
  EXPECT_EQ(info.state, State::kAvailable);
  EXPECT_EQ(info.attempt, 0);
  EXPECT_TRUE(info.errors.empty());
  EXPECT_FALSE(info.dead_letter);
  EXPECT_EQ(s.queue().depth, 1U);
  ASSERT_TRUE(s.admin.drop_dead(dropped).ok());
  EXPECT_EQ(s.observer.get(dropped).code(), Code::kNotFound);
  EXPECT_EQ(s.take(), id);
  EXPECT_EQ(s.admin.retry_dead(id).code(), Code::kWrongState);
}

TEST(Transition, a_discarded_job_that_is_no_dead_letter_stays_so) {
  QuietSegment s;
  const std::string id = job_in(s, State::kDiscarded);
  EXPECT_EQ(s.admin.retry_dead(id).code(), Code::kWrongState);
  EXPECT_EQ(s.admin.drop_dead(id).code(), Code::kWrongState);
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
}

TEST(Transition, finished_jobs_refuse_everything) {
  for (const State state : {State::kCompleted, State::kCancelled, State::kDiscarded}) {
    QuietSegment s;
    const std::string id = job_in(s, state);
    for (const Error& error :
         {s.producer.cancel(id).error(), s.producer.activate(id).error(),
          s.producer.reprioritize(id, 0).error(), s.admin.retry_dead(id).error()}) {
      EXPECT_EQ(error.code, Code::kWrongState) << state_name(state);
      EXPECT_EQ(error.subject, state_name(state));
    }
    EXPECT_EQ(s.state_of(id), state);
  }
}

TEST(Transition, only_a_pending_job_can_be_activated) {
  for (const State state : kEvery) {
    QuietSegment s;
    const std::string id = job_in(s, state);
    EXPECT_EQ(s.producer.activate(id).code(),
              state == State::kPending ? Code::kOk : Code::kWrongState)
        << state_name(state);
  }
}

TEST(Transition, PRI_R001_PRI_T16_reprioritize_moves_available_and_scheduled_jobs) {
  QuietSegment s;
  const std::string first = s.put(3), second = s.put(4);
  const auto previous = s.producer.reprioritize(second, 0);
  ASSERT_TRUE(previous.ok());
  EXPECT_EQ(previous.value(), 4);
  EXPECT_EQ(s.get(second).priority, 0);
  EXPECT_EQ(s.take(), second);
  EXPECT_EQ(s.job.priority(), 0);
  EXPECT_EQ(s.take(), first);
  const std::string scheduled = job_in(s, State::kScheduled);
  ASSERT_EQ(s.producer.reprioritize(scheduled, 0).value(), 4);
  EXPECT_EQ(s.state_of(scheduled), State::kScheduled);
  s.put(1);
  s.pass(2 * kHour);
  EXPECT_EQ(s.take(), scheduled);
  EXPECT_EQ(s.job.priority(), 0);
}

TEST(Transition, PRI_T17_SUM_06_reprioritize_is_a_conflict_in_every_other_state) {
  for (const State state : kEvery) {
    QuietSegment s;
    const std::string id = job_in(s, state);
    ASSERT_EQ(s.state_of(id), state);
    const auto changed = s.producer.reprioritize(id, 9);
    if (state == State::kAvailable || state == State::kScheduled) {
      EXPECT_TRUE(changed.ok()) << state_name(state);
      continue;
    }
    ASSERT_EQ(changed.code(), Code::kWrongState) << state_name(state);
    EXPECT_EQ(changed.error().subject, state_name(state));
    EXPECT_EQ(s.get(id).priority, 4);
  }
}

TEST(Transition, every_event_on_an_unknown_id_is_not_found) {
  QuietSegment s;
  for (const char* id : {"01961234-5678-7abc-8def-0123456789ab", "no id", ""}) {
    EXPECT_EQ(s.producer.cancel(id).code(), Code::kNotFound);
    EXPECT_EQ(s.producer.reprioritize(id, 1).code(), Code::kNotFound);
    EXPECT_EQ(s.producer.activate(id).code(), Code::kNotFound);
    EXPECT_EQ(s.producer.get(id).code(), Code::kNotFound);
    EXPECT_EQ(s.admin.retry_dead(id).code(), Code::kNotFound);
    EXPECT_EQ(s.admin.drop_dead(id).code(), Code::kNotFound);
  }
}

TEST(Transition, beats_and_progress_leave_a_job_active) {
  QuietSegment s;
  const std::string id = job_in(s, State::kActive);
  ASSERT_TRUE(s.worker.progress(s.job, 0.5).ok());
  ASSERT_TRUE(s.worker.progress(s.job, 0.25).ok());
  EXPECT_DOUBLE_EQ(s.get(id).progress, 0.5);  // never backwards
  const auto until = s.worker.heartbeat(s.job, 4'000'000);
  ASSERT_TRUE(until.ok());
  EXPECT_GE(until.value(), s.job.started_at_ms() + 4'000'000);
  EXPECT_EQ(s.state_of(id), State::kActive);
  EXPECT_EQ(s.worker.progress(s.job, 1.5).code(), Code::kInvalid);
}

TEST(Transition, the_fence_of_a_job_grows_with_each_attempt) {
  QuietSegment s;
  const std::string id = job_in(s, State::kActive);
  std::uint64_t fence = s.job.fence();
  for (int attempt = 0; attempt < 5; ++attempt) {
    ASSERT_TRUE(s.worker.requeue(s.job).ok());
    ASSERT_EQ(s.take(), id);
    EXPECT_GT(s.job.fence(), fence);
    fence = s.job.fence();
  }
}

}  // namespace
}  // namespace ojs_shm::test
