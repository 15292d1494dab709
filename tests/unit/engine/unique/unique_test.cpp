// SPDX-License-Identifier: Apache-2.0
// Unique jobs: which others keep one out, what becomes of both, and what a death leaves.

#include <map>
#include <thread>

#include "engine/unique/unique.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

TEST(Unique, a_second_job_of_a_key_is_refused_and_told_of_the_first) {
  QuietSegment s;
  const std::string first = s.put(unique_job().spec);
  const auto second = s.producer.enqueue(unique_job().spec);
  ASSERT_EQ(second.code(), Code::kDuplicate);
  EXPECT_EQ(second.error().subject, first);
  EXPECT_EQ(second.error().state, "available");
  EXPECT_NE(second.error().message.find(unique_job().unique.key()), std::string::npos);
  EXPECT_EQ(s.queue().depth, 1U);
  s.put(unique_job(OnConflict::kReject, "[2]").spec);  // of another key
  ASSERT_EQ(s.take(), first);
  const auto third = s.producer.enqueue(unique_job().spec);
  EXPECT_EQ(third.code(), Code::kDuplicate);
  EXPECT_EQ(third.error().state, "active");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_NE(s.put(unique_job().spec), first);
  EXPECT_EQ(s.queue().conflicts_total, 2U);
}

TEST(Unique, a_key_is_held_through_retries_and_free_after_the_last) {
  QuietSegment s;
  UniqueSpec job = unique_job();
  job.spec.retry.max_attempts = 2;
  job.spec.retry.jitter = false;
  const std::string first = s.put(job.spec);
  ASSERT_EQ(s.take(), first);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  ASSERT_EQ(s.state_of(first), State::kRetryable);
  EXPECT_EQ(s.producer.enqueue(job.spec).error().state, "retryable");
  s.pass(kHour);
  ASSERT_EQ(s.take(), first);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  ASSERT_EQ(s.state_of(first), State::kDiscarded);
  EXPECT_NE(s.put(job.spec), first);
}

TEST(Unique, ignore_returns_the_other_and_stores_nothing) {
  QuietSegment s;
  const std::string first = s.put(unique_job(OnConflict::kIgnore).spec);
  EXPECT_FALSE(s.producer.deduplicated());
  EXPECT_EQ(s.put(unique_job(OnConflict::kIgnore).spec), first);
  EXPECT_TRUE(s.producer.deduplicated());
  EXPECT_EQ(s.queue().depth, 1U);
  s.put(unique_job(OnConflict::kIgnore, "[2]").spec);
  EXPECT_FALSE(s.producer.deduplicated());
}

TEST(Unique, SUM_10_replace_cancels_the_other_and_its_priority_is_the_new_ones) {
  QuietSegment s;
  const std::string old = s.put(unique_job(OnConflict::kReplace, "[1]", 3).spec);
  const std::string fresh = s.put(unique_job(OnConflict::kReplace, "[1]", 0).spec);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.get(old).previous_state, State::kAvailable);
  EXPECT_EQ(s.get(fresh).priority, 0);
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(s.drain(), std::vector{fresh});
}

TEST(Unique, replace_takes_a_job_from_its_worker) {
  QuietSegment s;
  const std::string old = s.put(unique_job(OnConflict::kReplace).spec);
  ASSERT_EQ(s.take(), old);
  const std::string fresh = s.put(unique_job(OnConflict::kReplace).spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.get(old).previous_state, State::kActive);
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
  EXPECT_EQ(s.take(), fresh);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
}

TEST(Unique, replace_works_from_every_waiting_state_and_over_queues) {
  for (const State state : {State::kScheduled, State::kPending, State::kRetryable}) {
    QuietSegment s;
    UniqueSpec job = unique_job(OnConflict::kReplace);
    job.spec.queue = "elsewhere";
    job.spec.retry.jitter = false;
    if (state == State::kScheduled) job.spec.scheduled_at_ms = s.now_ms() + kHour;
    if (state == State::kPending) job.spec.pending = true;
    const std::string old = s.put(job.spec);
    if (state == State::kRetryable) {
      Worker there = Worker::attach(s.segment, {.queues = {"elsewhere"}}).value();
      ASSERT_TRUE(there.try_fetch(s.job).ok());
      ASSERT_TRUE(there.nack(s.job, failure()).ok());
    }
    ASSERT_EQ(s.state_of(old), state);
    const std::string fresh = s.put(unique_job(OnConflict::kReplace).spec);
    EXPECT_EQ(s.state_of(old), State::kCancelled);
    EXPECT_EQ(s.get(old).previous_state, state);
    EXPECT_EQ(s.queue("elsewhere").depth, 0U);
    EXPECT_EQ(s.drain(), std::vector{fresh});
  }
}

TEST(Unique, replace_except_schedule_keeps_the_others_time) {
  QuietSegment s;
  UniqueSpec job = unique_job(OnConflict::kReplaceExceptSchedule);
  job.spec.scheduled_at_ms = s.now_ms() + kHour;
  const std::string old = s.put(job.spec);
  const std::uint64_t time = job.spec.scheduled_at_ms;
  job.spec.scheduled_at_ms = s.now_ms() + 9 * kHour;
  const std::string fresh = s.put(job.spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.state_of(fresh), State::kScheduled);
  EXPECT_EQ(s.get(fresh).scheduled_at_ms, time);
  s.pass(2 * kHour);
  EXPECT_EQ(s.drain(), std::vector{fresh});
}

TEST(Unique, a_period_ends_counted_from_the_others_creation) {
  QuietSegment s;
  s.stop_clock();
  JobSpec spec = spec_of();
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.period_ms = kHour;
  const UniqueSpec job(spec, policy);
  s.put(job.spec);
  s.move_clock(kHour - 1);
  EXPECT_EQ(s.producer.enqueue(job.spec).code(), Code::kDuplicate);
  s.move_clock(1);
  s.put(job.spec);
  EXPECT_EQ(s.queue().depth, 2U);
}

TEST(Unique, a_finished_job_that_is_minded_keeps_its_slot_until_its_period_is_over) {
  QuietSegment s(few_slots(64));
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.states |= 1U << static_cast<unsigned>(State::kCompleted);
  policy.period_ms = 24 * kHour;
  const UniqueSpec job(spec_of(), policy);
  const std::string first = s.put(job.spec);
  EXPECT_EQ(s.drain(), std::vector{first});
  for (int i = 0; i < 1000; ++i) {
    s.put();
    s.drain();
  }
  EXPECT_EQ(s.producer.enqueue(job.spec).error().state, "completed");
  s.pass(25 * kHour);
  EXPECT_NE(s.put(job.spec), first);
}

TEST(Unique, a_finished_job_goes_as_others_do_once_its_period_is_over) {
  SegmentOptions options = few_slots();
  options.retention_ms = kHour;
  QuietSegment s(options);
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.states |= 1U << static_cast<unsigned>(State::kCompleted);
  policy.period_ms = 24 * kHour;
  const std::string id = s.put(UniqueSpec(spec_of(), policy).spec);
  s.drain();
  s.pass(23 * kHour);
  EXPECT_TRUE(s.observer.get(id).ok());
  s.pass(2 * kHour);  // it is listed
  s.pass(kHour);
  EXPECT_EQ(s.observer.get(id).code(), Code::kNotFound);
}

TEST(Unique, narrow_states_let_a_second_one_in) {
  QuietSegment s;
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.states = 1U << static_cast<unsigned>(State::kScheduled);
  const UniqueSpec job(spec_of(), policy);
  s.put(job.spec);
  s.put(job.spec);
  EXPECT_EQ(s.queue().depth, 2U);
}

/// A key's window in the index has 64 cells.
TEST(Unique, any_number_of_finished_jobs_of_a_key_leave_room_for_the_next) {
  QuietSegment s(few_slots(2048));
  const UniqueSpec job = unique_job();
  for (int i = 0; i < 500; ++i) {
    ASSERT_NE(s.put(job.spec), "");
    ASSERT_EQ(s.drain().size(), 1U);
  }
  s.put(job.spec);
  EXPECT_EQ(s.producer.enqueue(job.spec).code(), Code::kDuplicate);
}

TEST(Unique, of_finished_jobs_of_a_key_the_youngest_is_the_one_that_is_minded) {
  QuietSegment s(few_slots(64));
  UniquePolicy minute = policy_with(OnConflict::kReject);
  minute.states |= 1U << static_cast<unsigned>(State::kCompleted);
  minute.period_ms = kMinute;
  JobSpec spec = spec_of();
  spec.args = "[1]";
  const UniqueSpec newcomer{spec, minute};
  for (int i = 0; i < 200; ++i) {  // slots are used again, in any order
    s.put(unique_job().spec);
    ASSERT_EQ(s.drain().size(), 1U);
    ASSERT_EQ(s.producer.enqueue(newcomer.spec).code(), Code::kDuplicate) << i;
    s.move_clock(2 * kMinute);
  }
}

TEST(Unique, any_number_of_jobs_whose_period_is_over_leave_room_for_the_next) {
  QuietSegment s(few_slots(2048));
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.period_ms = kSecond;
  const UniqueSpec job(spec_of(), policy);
  for (int i = 0; i < 200; ++i) {
    ASSERT_NE(s.put(job.spec), "");
    s.move_clock(2 * kSecond);
  }
  EXPECT_EQ(s.queue().depth, 200U);
}

TEST(Unique, PRI_T27_a_duplicate_that_may_raises_the_other_and_never_lowers_it) {
  QuietSegment s;
  UniqueSpec job = unique_job(OnConflict::kReject, "[1]", 3);
  const std::string first = s.put(job.spec);
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.raise_priority = true;
  JobSpec higher = job.spec;
  higher.priority = 1;
  EXPECT_EQ(s.producer.enqueue(UniqueSpec(higher, policy).spec).code(), Code::kDuplicate);
  EXPECT_EQ(s.get(first).priority, 1);
  higher.priority = 2;
  EXPECT_EQ(s.producer.enqueue(UniqueSpec(higher, policy).spec).code(), Code::kDuplicate);
  EXPECT_EQ(s.get(first).priority, 1);
}

TEST(Unique, PRI_T28_without_the_option_the_priority_stays) {
  QuietSegment s;
  const std::string first = s.put(unique_job(OnConflict::kReject, "[1]", 3).spec);
  EXPECT_EQ(s.producer.enqueue(unique_job(OnConflict::kReject, "[1]", 0).spec).code(),
            Code::kDuplicate);
  EXPECT_EQ(s.get(first).priority, 3);
}

TEST(Unique, a_job_that_replaces_several_counts_once) {
  QuietSegment s;
  UniquePolicy mild = policy_with(OnConflict::kReplace);
  mild.states = 1U << static_cast<unsigned>(State::kActive);
  const JobSpec spec = spec_of();
  const std::string first = s.put(UniqueSpec(spec, mild).spec),
                    second = s.put(UniqueSpec(spec, mild).spec);
  s.put(UniqueSpec(spec, policy_with(OnConflict::kReplace)).spec);
  EXPECT_EQ(s.state_of(first), State::kCancelled);
  EXPECT_EQ(s.state_of(second), State::kCancelled);
  EXPECT_EQ(s.queue().conflicts_total, 1U);
}

TEST(Unique, a_batch_is_refused_whole_also_for_two_of_its_own) {
  QuietSegment s;
  const UniqueSpec a = unique_job(OnConflict::kReject, "[1]"),
                   b = unique_job(OnConflict::kReject, "[2]");
  const std::vector<JobSpec> twins = {a.spec, b.spec, a.spec};
  const auto refused = s.producer.enqueue_batch(twins);
  ASSERT_EQ(refused.code(), Code::kDuplicate);
  EXPECT_NE(refused.error().message.find("job 3 of the batch"), std::string::npos);
  EXPECT_EQ(s.queue().depth, 0U);
  const std::string there = s.put(b.spec);
  const std::vector<JobSpec> pair = {a.spec, b.spec};
  const auto again = s.producer.enqueue_batch(pair);
  ASSERT_EQ(again.code(), Code::kDuplicate);
  EXPECT_EQ(again.error().subject, there);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST(Unique, a_batch_that_is_refused_raises_no_other_job) {
  QuietSegment s;
  const std::string there = s.put(unique_job(OnConflict::kIgnore, "[1]", 3).spec),
                    refuses = s.put(unique_job(OnConflict::kReject, "[2]").spec);
  UniquePolicy policy = policy_with(OnConflict::kIgnore);
  policy.raise_priority = true;
  const UniqueSpec raises(unique_job(OnConflict::kIgnore, "[1]", 1).spec, policy),
      refused = unique_job(OnConflict::kReject, "[2]"),
      fresh = unique_job(OnConflict::kReject, "[3]");
  EXPECT_EQ(s.producer.enqueue_batch(std::vector{raises.spec, refused.spec}).code(),
            Code::kDuplicate);
  EXPECT_EQ(s.get(there).priority, 3);
  EXPECT_EQ(s.queue().conflicts_total, 1U);
  const auto ids = s.producer.enqueue_batch(std::vector{raises.spec, fresh.spec});
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  EXPECT_EQ((*ids)[0].str(), there);
  EXPECT_EQ(s.get(there).priority, 1);
  EXPECT_EQ(s.queue().conflicts_total, 2U);
}

TEST(Unique, a_batch_takes_what_is_there_for_those_that_are_content) {
  QuietSegment s;
  const UniqueSpec a = unique_job(OnConflict::kIgnore, "[1]"),
                   b = unique_job(OnConflict::kIgnore, "[2]");
  const std::string there = s.put(b.spec);
  const std::vector<JobSpec> jobs = {a.spec, b.spec, a.spec, spec_of()};
  const auto ids = s.producer.enqueue_batch(jobs);
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  EXPECT_EQ((*ids)[1].str(), there);
  EXPECT_EQ((*ids)[2].str(), (*ids)[0].str());
  EXPECT_FALSE(s.producer.deduplicated(0));
  EXPECT_TRUE(s.producer.deduplicated(1));
  EXPECT_TRUE(s.producer.deduplicated(2));
  EXPECT_FALSE(s.producer.deduplicated(3));
  EXPECT_EQ(s.queue().depth, 3U);
}

TEST(Unique, a_batch_replaces_all_its_rivals_together) {
  QuietSegment s;
  std::vector<std::string> old;
  std::vector<UniqueSpec> jobs;
  for (const std::string_view args : {"[1]", "[2]", "[3]"})
    jobs.push_back(unique_job(OnConflict::kReplace, args));
  std::vector<JobSpec> specs;
  for (const UniqueSpec& job : jobs) {
    specs.push_back(job.spec);
    old.push_back(s.put(job.spec));
  }
  ASSERT_EQ(s.take(), old[0]);
  const auto ids = s.producer.enqueue_batch(specs);
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  for (const std::string& id : old) EXPECT_EQ(s.state_of(id), State::kCancelled);
  EXPECT_EQ(s.queue().depth, 3U);
  EXPECT_EQ(s.drain().size(), 3U);
}

TEST(Unique, a_dead_letter_comes_back_only_when_its_key_is_free) {
  QuietSegment s;
  UniqueSpec job = unique_job();
  job.spec.retry.max_attempts = 1;
  job.spec.retry.dead_letter = true;
  const std::string dead = s.put(job.spec);
  ASSERT_EQ(s.take(), dead);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  const std::string fresh = s.put(job.spec);
  const auto refused = s.admin.retry_dead(dead);
  ASSERT_EQ(refused.code(), Code::kDuplicate);
  EXPECT_EQ(refused.error().subject, fresh);
  EXPECT_EQ(s.drain(), std::vector{fresh});
  ASSERT_TRUE(s.admin.retry_dead(dead).ok());
  EXPECT_EQ(s.producer.enqueue(job.spec).code(), Code::kDuplicate);
}

TEST(Unique, of_many_at_once_one_gets_in) {
  QuietSegment s(few_slots(1024));
  std::atomic<int> got = 0;
  for (int round = 0; round < 50; ++round) {
    got = 0;
    std::vector<std::thread> threads;
    const std::string args = "[" + std::to_string(round) + "]";
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        Producer producer = Producer::attach(s.segment).value();
        const UniqueSpec job = unique_job(OnConflict::kReject, args);
        if (producer.enqueue(job.spec).ok()) ++got;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(got, 1);
  }
}

TEST(Unique, of_many_that_replace_each_other_one_stays) {
  QuietSegment s(few_slots(2048));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Producer producer = Producer::attach(s.segment).value();
      const UniqueSpec job = unique_job(OnConflict::kReplace);
      for (int n = 0; n < 200; ++n) ASSERT_TRUE(producer.enqueue(job.spec).ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(s.drain().size(), 1U);
}

}  // namespace
}  // namespace ojs_shm::test
