// SPDX-License-Identifier: Apache-2.0
// How long dead letters are kept, and how many. The clock stands, and each test ends with an audit.
#include <gtest/gtest.h>

#include <algorithm>

#include <ojs_shm/transfer.hpp>
#include <ojs_shm/workflow.hpp>

#include "engine/supervision/dead_letters.hpp"
#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kDay = 24 * kHour;

class DeadLetters : public testing::Test {
 protected:
  DeadLetters() { s.stop_clock(); }

  static JobSpec mortal(std::string_view queue = "default") {
    JobSpec spec = spec_of(1, queue);
    spec.retry.max_attempts = 1;
    spec.retry.dead_letter = true;
    return spec;
  }
  std::string bury(const JobSpec& spec) {
    const std::string id = s.put(spec);
    Worker worker = Worker::attach(s.segment, {.queues = {std::string(spec.queue)}}).value();
    EXPECT_TRUE(worker.try_fetch(s.job).ok());
    EXPECT_EQ(worker.nack(s.job, failure())->state, State::kDiscarded);
    return id;
  }
  std::string bury() { return bury(mortal()); }
  /// So many, a second apart.
  std::vector<std::string> bury_many(int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back(bury());
      s.move_clock(kSecond);
    }
    return ids;
  }
  void keep(const DeadLetterRetention& retention) {
    ASSERT_TRUE(s.admin.set_dead_retention(retention).ok());
    s.tick();
  }
  bool there(const std::string& id) { return s.observer.get(id).ok(); }
  std::vector<std::string> left() {
    std::vector<std::string> ids;
    for (const JobInfo& job : s.observer.list({.dead_letter = true})) ids.push_back(job.id);
    std::ranges::sort(ids);
    return ids;
  }
  QuietSegment s{few_slots(2048)};
};

/// Source: ojs-retry 7.2.
TEST_F(DeadLetters, the_code_of_a_failure_decides_over_the_policy_of_its_job) {
  struct Case {
    const char* code;
    bool policy;
    State state;
    bool dead;
  };
  for (const Case& each : {Case{"DISCARD", true, State::kDiscarded, false},
                           Case{"FAIL", true, State::kDiscarded, false},
                           Case{"DEAD_LETTER", false, State::kDiscarded, true},
                           Case{"DEAD_LETTER", true, State::kDiscarded, true},
                           Case{"RETRY", true, State::kRetryable, false}}) {
    SCOPED_TRACE(each.code);
    JobSpec spec = spec_of(1);
    spec.retry.max_attempts = 9;
    spec.retry.dead_letter = each.policy;
    const std::string id = s.put(spec);
    ASSERT_EQ(s.take(), id);
    Failure failed = failure();
    failed.code = each.code;
    EXPECT_EQ(s.worker.nack(s.job, failed)->state, each.state);
    EXPECT_EQ(s.get(id).dead_letter, each.dead);
  }
}

TEST_F(DeadLetters, a_new_segment_keeps_ten_thousand_for_180_days) {
  const SegmentInfo info = s.observer.segment_info();
  EXPECT_EQ(info.dead_max_age_ms, 180 * kDay);
  EXPECT_EQ(info.dead_max_count, 10'000U);
  EXPECT_EQ(info.next_prune_at_ms % (5 * kMinute), 0U);
  EXPECT_GT(info.next_prune_at_ms, s.now_ms());
  const std::string id = bury();
  s.pass(180 * kDay - 1);
  EXPECT_TRUE(there(id));
  s.pass(5 * kMinute);
  EXPECT_FALSE(there(id));
  EXPECT_EQ(s.queue().pruned_total, 1U);
  EXPECT_EQ(s.queue().dead_letters, 0U);
}

TEST_F(DeadLetters, those_go_that_are_too_old_and_no_other_job) {
  keep({.max_age_ms = kDay, .max_count = 0});
  const std::string old = bury(), plain = s.put(1), waits = s.put(2);
  ASSERT_EQ(s.take(), plain);
  ASSERT_EQ(s.worker.nack(s.job, failure(false))->state, State::kDiscarded);
  s.pass(kDay / 2);
  const std::string young = bury();
  s.pass(kDay / 2 - kMinute);
  EXPECT_TRUE(there(old));
  s.pass(5 * kMinute);
  EXPECT_FALSE(there(old));
  EXPECT_EQ(left(), std::vector{young});
  EXPECT_EQ(s.state_of(plain), State::kDiscarded) << "it is no dead letter";
  EXPECT_EQ(s.state_of(waits), State::kAvailable);
}

TEST_F(DeadLetters, of_too_many_the_oldest_go) {
  std::vector<std::string> ids = bury_many(20);
  keep({.max_count = 5});
  EXPECT_EQ(left(), std::vector(ids.end() - 5, ids.end()));
  EXPECT_EQ(s.queue().pruned_total, 15U);
  keep({.max_count = 5});
  EXPECT_EQ(left().size(), 5U) << "as many as there may be";
  const std::string last = bury();
  EXPECT_EQ(left().size(), 6U) << "until the next look";
  s.pass(5 * kMinute);
  EXPECT_EQ(left(), (std::vector{ids[16], ids[17], ids[18], ids[19], last}));
}

TEST_F(DeadLetters, the_count_is_of_the_whole_segment) {
  bury_many(3);
  const std::string other = bury(mortal("other"));
  keep({.max_count = 1});
  EXPECT_EQ(left(), std::vector{other});
  EXPECT_EQ(s.queue("default").pruned_total, 3U);
  EXPECT_EQ(s.queue("other").pruned_total, 0U);
}

TEST_F(DeadLetters, without_limits_all_stay) {
  keep({.max_age_ms = 0, .max_count = 0});
  const std::vector<std::string> ids = bury_many(10);
  s.pass(400 * kDay);
  EXPECT_EQ(left(), ids);
  EXPECT_EQ(s.queue().pruned_total, 0U);
}

TEST_F(DeadLetters, what_is_not_given_stays_as_it_is) {
  keep({.max_age_ms = kDay});
  keep({.max_count = 7});
  EXPECT_EQ(s.observer.segment_info().dead_max_age_ms, kDay);
  EXPECT_EQ(s.observer.segment_info().dead_max_count, 7U);
}

TEST_F(DeadLetters, one_that_was_retried_is_as_young_as_its_last_end) {
  keep({.max_age_ms = kDay, .max_count = 0});
  const std::string id = bury();
  s.pass(kDay - kMinute);
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(10 * kMinute);
  EXPECT_EQ(left(), std::vector{id});
}

/// The look found it before it was retried, and comes to drop it when it is a dead letter again.
TEST_F(DeadLetters, what_changed_since_it_was_found_stays) {
  const std::string id = bury();
  const std::uint32_t slot = engine::find_job(s.store(), *engine::parse_id(id));
  const engine::Control found(s.store().job(slot).control.load());
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  EXPECT_FALSE(s.actor().prune(slot, found));
  EXPECT_EQ(left(), std::vector{id});
  EXPECT_TRUE(s.actor().prune(slot, engine::Control(s.store().job(slot).control.load())));
  EXPECT_FALSE(there(id));
}

TEST_F(DeadLetters, a_key_that_is_taken_for_a_time_keeps_its_job_so_long) {
  UniquePolicy week;
  week.states = 0b1010'1111;  // and discarded
  week.period_ms = 7 * kDay;
  const UniqueSpec spec{mortal(), week};
  const std::string id = bury(spec.spec);
  keep({.max_age_ms = kDay, .max_count = 1});
  bury_many(2);
  s.pass(2 * kDay);
  EXPECT_EQ(left(), std::vector{id});
  EXPECT_EQ(s.producer.enqueue(spec.spec).code(), Code::kDuplicate);
  s.pass(6 * kDay);
  EXPECT_FALSE(there(id));
  EXPECT_TRUE(s.producer.enqueue(spec.spec).ok());
}

TEST_F(DeadLetters, a_key_that_is_taken_for_ever_is_given_up_with_its_job) {
  UniquePolicy always;
  always.states = 0b1010'1111;  // and discarded
  const UniqueSpec spec{mortal(), always};
  const std::string id = bury(spec.spec);
  keep({.max_age_ms = kDay});
  EXPECT_EQ(s.producer.enqueue(spec.spec).code(), Code::kDuplicate);
  s.pass(2 * kDay);
  EXPECT_FALSE(there(id));
  EXPECT_TRUE(s.producer.enqueue(spec.spec).ok());
}

TEST_F(DeadLetters, a_member_of_a_workflow_that_runs_stays) {
  keep({.max_age_ms = kHour, .max_count = 1});
  WorkflowSpec group;
  group.kind = WorkflowKind::kGroup;
  group.steps.resize(2);
  for (WorkflowSpec& step : group.steps) step.job = mortal();
  ASSERT_TRUE(s.producer.create_workflow(group).ok());
  ASSERT_NE(s.take(), "");
  const std::string failed(s.job.id());
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(kDay);
  EXPECT_TRUE(there(failed)) << "its workflow may still ask how it ended";
  ASSERT_NE(s.take(), "");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  s.pass(kDay);
  EXPECT_FALSE(there(failed));
}

TEST_F(DeadLetters, one_of_an_import_that_does_not_say_when_it_died_stays) {
  Import import = Import::attach(s.segment).value();
  ASSERT_TRUE(import.take(R"({"ojs_shm_export":1,"convention":"ojs"})").ok());
  const auto job = [](std::string_view last, std::string_view more) {
    return R"({"job":{"id":"01961234-5678-7abc-8def-0123456789a)" + std::string(last) +
           R"(","type":"unit.test","state":"discarded","dead_letter":true,"args":[],)" +
           std::string(more) + R"("created_at":"2020-01-01T00:00:00Z"}})";
  };
  ASSERT_TRUE(import.take(job("1", "")).ok());
  ASSERT_TRUE(import.take(job("2", R"("discarded_at":"2020-01-02T00:00:00Z",)")).ok());
  ASSERT_TRUE(import.finish().ok());
  s.pass(kHour);
  EXPECT_EQ(left(), (std::vector<std::string>{"01961234-5678-7abc-8def-0123456789a1"}));
}

TEST_F(DeadLetters, a_look_is_told_with_how_many_went) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  bury_many(3);
  bury(mortal("other"));
  EventReader reader = s.observer.events({.from_start = false, .settle_ms = 0});
  keep({.max_count = 1});
  std::vector<Event> told;
  for (Event event; reader.next(event);) told.push_back(event);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].type, "dead_letter.pruned");
  EXPECT_EQ(told[0].queue, "default");
  EXPECT_EQ(told[0].count, 3U);
  EXPECT_EQ(told[0].job_id, "");
}

TEST_F(DeadLetters, one_that_is_dropped_is_told_and_other_jobs_that_ended_are_not) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  const std::string dead = bury(mortal("other"));
  const std::string cancelled = s.put();
  ASSERT_TRUE(s.producer.cancel(cancelled).ok());
  EventReader reader = s.observer.events({.from_start = false, .settle_ms = 0});
  ASSERT_TRUE(s.admin.drop(cancelled).ok());
  ASSERT_TRUE(s.admin.drop(dead).ok());
  EXPECT_FALSE(s.admin.drop(dead).ok());
  std::vector<Event> told;
  for (Event event; reader.next(event);) told.push_back(event);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].type, "dead_letter.deleted");
  EXPECT_EQ(told[0].queue, "other");
  EXPECT_EQ(told[0].job_id, dead);
}

/// More than a look drops, and more slots than a look sees.
TEST_F(DeadLetters, many_go_in_several_looks) {
  QuietSegment many(few_slots(40'000));
  JobSpec spec = mortal();
  for (int i = 0; i < 9'000; ++i) many.put(spec);
  while (many.take() != "") {
    ASSERT_TRUE(many.worker.nack(many.job, failure()).ok());
  }
  ASSERT_TRUE(many.admin.set_dead_retention({.max_count = 10}).ok());
  engine::DeadLetters pruner(many.actor());
  int looks = 1;
  for (const std::uint64_t now = many.now_ms(); pruner.look(now) == now;) ++looks;
  EXPECT_GE(looks, 5) << "three to find them, the last of which drops, and two more";
  EXPECT_EQ(many.queue().dead_letters, 10U);
  EXPECT_EQ(many.queue().pruned_total, 8'990U);
}

}  // namespace
}  // namespace ojs_shm::test
