// SPDX-License-Identifier: Apache-2.0
// What is kept of jobs that are over, removed by hand; and choosing by when and how they ended.
// Each test ends with an audit.
#include <gtest/gtest.h>

#include <ojs_shm/workflow.hpp>

#include "tests/unit/engine/quiet_segment.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

class Drop : public testing::Test {
 protected:
  Drop() { s.stop_clock(); }

  std::string hold(const JobSpec& spec = spec_of()) {
    const std::string id = s.put(spec);
    EXPECT_TRUE(s.worker.try_fetch(s.job).ok());
    return id;
  }
  std::string complete(const JobSpec& spec = spec_of(), std::string_view result = {}) {
    const std::string id = hold(spec);
    EXPECT_TRUE(s.worker.ack(s.job, result).ok());
    return id;
  }
  std::string discard(std::string_view code, bool dead_letter) {
    JobSpec spec = spec_of();
    spec.retry.max_attempts = 1;
    spec.retry.dead_letter = dead_letter;
    const std::string id = hold(spec);
    Failure failed;
    failed.code = code;
    EXPECT_EQ(s.worker.nack(s.job, failed)->state, State::kDiscarded);
    return id;
  }
  bool there(const std::string& id) { return s.observer.get(id).ok(); }
  std::vector<std::string> ids(const JobFilter& filter) {
    std::vector<std::string> ids;
    for (const JobInfo& job : s.observer.list(filter)) ids.push_back(job.id);
    return ids;
  }
  QuietSegment s;
};

TEST_F(Drop, jobs_that_are_over_go_whichever_way_they_ended) {
  const std::string completed = complete(spec_of(), "\"" + std::string(900, 'r') + '"');
  const std::string cancelled = s.put();
  ASSERT_TRUE(s.producer.cancel(cancelled).ok());
  const std::string discarded = discard("boom", false), dead = discard("boom", true);
  for (const std::string& id : {completed, cancelled, discarded, dead}) {
    ASSERT_TRUE(there(id));
    EXPECT_TRUE(s.admin.drop(id).ok());
    EXPECT_FALSE(there(id));
    EXPECT_EQ(s.admin.drop(id).code(), Code::kNotFound);
  }
}

TEST_F(Drop, jobs_that_go_on_stay) {
  const std::string active = hold();
  const std::string waiting = s.put();
  for (const std::string& id : {active, waiting}) {
    const Status refused = s.admin.drop(id);
    EXPECT_EQ(refused.code(), Code::kWrongState);
    EXPECT_TRUE(there(id));
  }
  EXPECT_EQ(s.admin.drop("nonsense").code(), Code::kNotFound);
  EXPECT_TRUE(s.worker.ack(s.job).ok());
}

/// Its slot, its texts and its id are free for others.
TEST_F(Drop, what_it_held_is_used_again) {
  for (int round = 0; round < 3; ++round) {
    JobSpec spec = spec_of();
    spec.id = "01961234-5678-7abc-8def-0123456789ab";
    const std::string id = complete(spec, "\"" + std::string(2000, 'r') + '"');
    EXPECT_TRUE(s.admin.drop(id).ok());
  }
}

TEST_F(Drop, however_many_go_what_nobody_removed_stays) {
  std::vector<std::string> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(complete());
  for (int i = 0; i < 60'000; ++i) ASSERT_TRUE(s.admin.drop(complete()).ok()) << i;
  for (const std::string& id : kept) EXPECT_TRUE(there(id)) << id;
}

/// What is listed anew behind a younger job says nothing of that one's time.
TEST(DropRetention, what_is_listed_anew_takes_no_younger_job_away) {
  SegmentOptions options = few_slots();
  options.retention_ms = kHour;
  QuietSegment s(options);
  s.stop_clock();
  std::vector<std::string> old;
  for (int i = 0; i < 28; ++i) {
    old.push_back(s.put());
    ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  }
  s.move_clock(kHour / 2);
  const std::string young = s.put(1, "mail");
  ASSERT_TRUE(s.admin.delete_queue("mail", QueueDeletion::kDiscard).ok());
  for (int batch = 0; batch < 28; batch += 14)
    for (int i = 0; i < 7; ++i)
      ASSERT_TRUE(s.admin.drop(old[static_cast<std::size_t>(batch + i)]).ok());
  s.move_clock(kHour / 2 + kSecond);
  s.tick();
  EXPECT_TRUE(s.observer.get(young).ok());
  s.move_clock(kHour / 2);
  s.tick();
  EXPECT_FALSE(s.observer.get(young).ok());
  EXPECT_FALSE(s.observer.get(old[13]).ok());
}

TEST_F(Drop, a_unique_key_that_a_finished_job_holds_goes_with_it) {
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.states |= 1U << static_cast<unsigned>(State::kCompleted);
  const UniqueSpec unique(spec_of(), policy);
  const std::string first = complete(unique.spec);
  ASSERT_EQ(s.producer.enqueue(unique.spec).code(), Code::kDuplicate);
  EXPECT_TRUE(s.admin.drop(first).ok());
  EXPECT_TRUE(s.producer.enqueue(unique.spec).ok());
}

TEST_F(Drop, results_that_a_running_workflow_may_ask_for_stay) {
  WorkflowSpec flow, part;
  part.job = spec_of();
  flow.kind = WorkflowKind::kChain;
  flow.steps = {part, part};
  ASSERT_TRUE(s.producer.create_workflow(flow).ok());
  ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
  const std::string first(s.job.id());
  ASSERT_TRUE(s.worker.ack(s.job, "1").ok());
  const Status refused = s.admin.drop(first);
  EXPECT_EQ(refused.code(), Code::kWrongState);
  EXPECT_NE(refused.error().message.find("workflow"), std::string::npos);
  const auto swept = s.admin.bulk(BulkAction::kDrop, {});
  ASSERT_TRUE(swept.ok());
  EXPECT_EQ(swept->skipped, 1U);
  ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_TRUE(s.admin.drop(first).ok());
}

TEST_F(Drop, dead_letters_of_a_running_workflow_stay) {
  WorkflowSpec flow, part;
  part.job = spec_of();
  part.job.retry.max_attempts = 1;
  part.job.retry.dead_letter = true;
  flow.kind = WorkflowKind::kGroup;
  flow.steps = {part, part};
  ASSERT_TRUE(s.producer.create_workflow(flow).ok());
  ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
  const std::string first(s.job.id());
  ASSERT_EQ(s.worker.nack(s.job, failure())->state, State::kDiscarded);
  EXPECT_EQ(s.admin.drop(first).code(), Code::kWrongState);
  EXPECT_TRUE(there(first));
}

TEST_F(Drop, jobs_are_chosen_by_when_and_how_they_ended) {
  const std::string old = complete();
  const std::string failed = discard("smtp.down", false);
  s.move_clock(kHour);
  const std::string young = complete();
  const std::string other = discard("boom", true);
  const std::string waiting = s.put();
  const std::uint64_t now = s.now_ms();
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids({.ended_before_ms = now}), (Ids{old, failed}));
  EXPECT_EQ(ids({.ended_from_ms = now}), (Ids{young, other}));
  EXPECT_EQ(ids({.error_type = "smtp.down"}), Ids{failed});
  EXPECT_EQ(ids({.error_type = "none"}), Ids{});
  const auto swept = s.admin.bulk(BulkAction::kDrop, {.ended_before_ms = now});
  ASSERT_TRUE(swept.ok());
  EXPECT_EQ(swept->done, 2U);
  EXPECT_FALSE(there(old) || there(failed));
  EXPECT_TRUE(there(young) && there(other) && there(waiting));
}

/// Source: ojs-bulk-operations 12.1.
TEST_F(Drop, many_at_once_are_told_once) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  EventReader reader = s.observer.events({.from_start = false, .settle_ms = 0});
  complete();
  complete();
  s.put();
  ASSERT_TRUE(s.admin.bulk(BulkAction::kDrop, {}).ok());
  ASSERT_TRUE(s.admin.bulk(BulkAction::kCancel, {}).ok());
  s.admin.tell_bulk(BulkKind::kEnqueue, 5, 3, true);
  std::vector<std::string> told;
  for (Event event; reader.next(event);)
    if (event.type.starts_with("bulk."))
      told.push_back(event.type + " " + std::to_string(event.done) + " of " +
                     std::to_string(event.count) + (event.atomic ? " atomic" : ""));
  EXPECT_EQ(told, (std::vector<std::string>{"bulk.delete.completed 2 of 2",
                                            "bulk.cancel.completed 1 of 1",
                                            "bulk.enqueue.completed 3 of 5 atomic"}));
}

}  // namespace
}  // namespace ojs_shm::test
