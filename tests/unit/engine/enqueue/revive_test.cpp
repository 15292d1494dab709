// SPDX-License-Identifier: Apache-2.0
// Jobs that were lost and are wanted again: cancelled ones, discarded ones, dead letters or not.
#include <gtest/gtest.h>

#include "tests/unit/engine/quiet_segment.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

/// Discarded after a failure, no dead letter.
std::string lose(QuietSegment& s, JobSpec spec = spec_of()) {
  spec.retry.max_attempts = 1;
  const std::string id = s.put(spec);
  EXPECT_EQ(s.take(), id);
  EXPECT_TRUE(s.worker.progress(s.job, 0.5, "half").ok());
  EXPECT_EQ(s.worker.nack(s.job, failure())->state, State::kDiscarded);
  return id;
}

void expect_new(const JobInfo& job) {
  EXPECT_EQ(job.state, State::kAvailable);
  EXPECT_EQ(job.attempt, 0);
  EXPECT_TRUE(job.errors.empty());
  EXPECT_LT(job.progress, 0);
  EXPECT_FALSE(job.previous_state);
  EXPECT_EQ(job.discard_reason, "");
  EXPECT_EQ(job.discarded_at_ms + job.cancelled_at_ms + job.completed_at_ms, 0U);
  EXPECT_EQ(job.expires_at_ms, 0U);
}

TEST(Revived, a_discarded_job_is_as_if_it_had_never_been_tried) {
  QuietSegment s;
  const std::string id = lose(s);
  EXPECT_FALSE(s.get(id).dead_letter);
  ASSERT_TRUE(s.producer.retry(id).ok());
  expect_new(s.get(id));
  EXPECT_EQ(s.queue().depth, 1U);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.attempt(), 1);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
}

TEST(Revived, a_dead_letter_is_one_no_longer) {
  QuietSegment s;
  JobSpec spec = spec_of();
  spec.retry.dead_letter = true;
  const std::string id = lose(s, spec);
  ASSERT_TRUE(s.producer.retry(id).ok());
  expect_new(s.get(id));
  EXPECT_FALSE(s.get(id).dead_letter);
  EXPECT_EQ(s.queue().dead_letters, 0U);
}

TEST(Revived, a_cancelled_job_comes_back_from_whatever_it_was) {
  QuietSegment s;
  JobSpec later = spec_of(), pending = spec_of();
  later.scheduled_at_ms = s.now_ms() + kHour;
  pending.pending = true;
  for (const JobSpec& spec : {spec_of(), later, pending}) {
    const std::string id = s.put(spec);
    ASSERT_TRUE(s.producer.cancel(id).ok());
    EXPECT_EQ(s.queue().depth, 0U);
    ASSERT_TRUE(s.producer.retry(id).ok());
    expect_new(s.get(id));
    EXPECT_EQ(s.queue().depth, 1U);
    EXPECT_EQ(s.drain(), std::vector{id});
  }
}

TEST(Revived, its_holder_of_before_does_not_hold_it) {
  QuietSegment s;
  const std::string id = s.put();
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.producer.cancel(id).ok());
  ASSERT_TRUE(s.producer.retry(id).ok());
  Worker other = Worker::attach(s.segment, {}).value();
  Job again;
  ASSERT_TRUE(other.try_fetch(again).ok());
  EXPECT_EQ(again.id(), id);
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
  EXPECT_TRUE(other.ack(again).ok());
}

TEST(Revived, one_that_had_expired_never_does_again) {
  QuietSegment s;
  JobSpec spec = spec_of();
  spec.expires_at_ms = s.now_ms() + kHour;
  const std::string id = s.put(spec);
  s.pass(2 * kHour);
  ASSERT_EQ(s.get(id).discard_reason, "expired");
  ASSERT_TRUE(s.producer.retry(id).ok());
  expect_new(s.get(id));
  s.pass(2 * kHour);
  EXPECT_EQ(s.take(), id);
}

TEST(Revived, a_time_that_is_still_to_come_stays) {
  QuietSegment s;
  JobSpec spec = spec_of();
  spec.expires_at_ms = s.now_ms() + kHour;
  const std::string id = s.put(spec);
  ASSERT_TRUE(s.producer.cancel(id).ok());
  ASSERT_TRUE(s.producer.retry(id).ok());
  EXPECT_EQ(s.get(id).expires_at_ms, spec.expires_at_ms);
  s.pass(2 * kHour);
  EXPECT_EQ(s.get(id).discard_reason, "expired");
}

TEST(Revived, no_bound_refuses_what_was_accepted_once) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 1}).ok());
  const std::string id = s.put();
  ASSERT_TRUE(s.producer.cancel(id).ok());
  const std::string other = s.put();
  ASSERT_TRUE(s.producer.retry(id).ok());
  EXPECT_EQ(s.queue().depth, 2U);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(s.drain(), (std::vector{other, id}));
}

/// The list of slots to be used again still names it.
TEST(Revived, its_slot_is_its_own_however_many_jobs_come) {
  QuietSegment s;
  const std::string id = lose(s);
  ASSERT_TRUE(s.producer.retry(id).ok());
  ASSERT_TRUE(s.admin.set_queue("default", {.paused = true}).ok());
  Worker other = Worker::attach(s.segment, {.queues = {"other"}}).value();
  for (int i = 0; i < 2000; ++i) {
    s.put({}, "other");
    ASSERT_TRUE(other.try_fetch(s.job).ok());
    ASSERT_TRUE(other.ack(s.job).ok());
  }
  EXPECT_EQ(s.state_of(id), State::kAvailable);
}

TEST(Revived, a_unique_one_needs_its_key) {
  QuietSegment s;
  UniqueSpec job = unique_job();
  const std::string lost = s.put(job.spec);
  ASSERT_TRUE(s.producer.cancel(lost).ok());
  const std::string fresh = s.put(job.spec);
  const Status refused = s.producer.retry(lost);
  ASSERT_EQ(refused.code(), Code::kDuplicate);
  EXPECT_EQ(refused.error().subject, fresh);
  const JobInfo still = s.get(lost);
  EXPECT_EQ(still.state, State::kCancelled);
  EXPECT_EQ(still.previous_state, State::kAvailable) << "a refusal changes nothing";
  EXPECT_EQ(s.drain(), std::vector{fresh});
  ASSERT_TRUE(s.producer.retry(lost).ok());
  EXPECT_EQ(s.producer.enqueue(job.spec).code(), Code::kDuplicate);
}

TEST(Revived, a_limit_holds_for_it_as_before) {
  QuietSegment s;
  JobLimit limit;
  limit.key = "one";
  limit.limit.concurrency = 1;
  JobSpec spec = spec_of();
  spec.limit = &limit;
  const std::string first = s.put(spec), second = s.put(spec);
  ASSERT_EQ(s.take(), first);
  Job held = std::move(s.job);
  s.job = Job();
  EXPECT_EQ(s.take(), "") << "the second one waits for the first";
  ASSERT_TRUE(s.producer.cancel(second).ok());
  ASSERT_TRUE(s.producer.retry(second).ok());
  EXPECT_EQ(s.take(), "");
  ASSERT_TRUE(s.worker.ack(held).ok());
  EXPECT_EQ(s.take(), second);
}

TEST(Revived, only_a_lost_job_is) {
  QuietSegment s;
  const std::string waits = s.put();
  EXPECT_EQ(s.producer.retry(waits).error().subject, "available");
  ASSERT_EQ(s.take(), waits);
  EXPECT_EQ(s.producer.retry(waits).error().subject, "active");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.producer.retry(waits).error().subject, "completed");
  EXPECT_EQ(s.producer.retry(waits).code(), Code::kWrongState);
  EXPECT_EQ(s.producer.retry("nonsense").code(), Code::kNotFound);
}

TEST(Revived, in_bulk_cancelled_ones_come_only_by_their_name) {
  QuietSegment s;
  const std::string discarded = lose(s), cancelled = s.put();
  ASSERT_TRUE(s.producer.cancel(cancelled).ok());
  s.put();
  auto report = s.admin.bulk(BulkAction::kRetry, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->matched, 1U);
  EXPECT_EQ(report->done, 1U);
  EXPECT_EQ(s.state_of(discarded), State::kAvailable);
  EXPECT_EQ(s.state_of(cancelled), State::kCancelled);
  report = s.admin.bulk(BulkAction::kRetry, {.state = State::kCancelled});
  EXPECT_EQ(report->done, 1U);
  EXPECT_EQ(s.state_of(cancelled), State::kAvailable);
}

TEST(Revived, in_bulk_one_whose_key_another_has_is_skipped_and_the_rest_goes_on) {
  QuietSegment s;
  JobSpec unique = spec_of();
  const JobUnique key = JobUnique::of(unique, UniquePolicy{}).value();
  unique.unique = &key;
  const std::string first = s.put(unique);
  ASSERT_TRUE(s.producer.cancel(first).ok());
  const std::string rival = s.put(unique), other = s.put();
  ASSERT_TRUE(s.producer.cancel(other).ok());
  const auto report = s.admin.bulk(BulkAction::kRetry, {.state = State::kCancelled});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->done, 1U);
  EXPECT_EQ(report->skipped, 1U);
  EXPECT_EQ(s.state_of(first), State::kCancelled);
  EXPECT_EQ(s.state_of(rival), State::kAvailable);
  EXPECT_EQ(s.state_of(other), State::kAvailable);
}

}  // namespace
}  // namespace ojs_shm::test
