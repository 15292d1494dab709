// SPDX-License-Identifier: Apache-2.0
// A batch over several queues: all of it or nothing.
#include <algorithm>

#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

class SpreadBatches : public testing::Test {
 protected:
  std::vector<std::string> enqueue(const std::vector<JobSpec>& specs) {
    const auto ids = s.producer.enqueue_batch(specs);
    EXPECT_TRUE(ids.ok()) << ids.error().message;
    std::vector<std::string> texts;
    if (ids)
      for (const JobIdText& id : *ids) texts.push_back(id.str());
    return texts;
  }
  std::uint64_t depth(std::string_view queue) { return s.observer.queue(queue)->depth; }
  std::string queue_of(const std::string& id) { return s.get(id).queue; }
  void bound(const std::string& queue, std::uint64_t jobs, BackpressureStrategy strategy) {
    ASSERT_TRUE(s.admin.set_queue(queue, {.max_depth = jobs, .strategy = strategy}).ok());
  }
  std::vector<std::string> drain(const std::string& queue) {
    Worker worker = Worker::attach(s.segment, {.queues = {queue}}).value();
    std::vector<std::string> ids;
    for (Job job; worker.try_fetch(job).ok();) {
      ids.push_back(std::string(job.id()));
      EXPECT_TRUE(worker.ack(job).ok());
    }
    return ids;
  }

  QuietSegment s;
  const std::vector<JobSpec> four{spec_of({}, "b"), spec_of({}, "a"), spec_of({}, "b"),
                                  spec_of({}, "a")};
};

TEST_F(SpreadBatches, each_job_is_in_its_queue_and_those_of_one_queue_in_order) {
  for (const char* queue : {"a", "b"}) enqueue({spec_of({}, queue)}), drain(queue);
  const std::vector<std::string> ids = enqueue(four);
  ASSERT_EQ(ids.size(), 4U);
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(queue_of(ids[i]), four[i].queue);
  EXPECT_EQ(drain("a"), (std::vector{ids[1], ids[3]}));
  EXPECT_EQ(drain("b"), (std::vector{ids[0], ids[2]}));
}

TEST_F(SpreadBatches, jobs_are_told_as_new_and_in_the_order_given) {
  for (const char* queue : {"a", "b"}) enqueue({spec_of({}, queue)});
  const std::vector<std::string> ids = enqueue(four);
  const std::vector<Transition> told = s.observer.recent(4);
  ASSERT_EQ(told.size(), 4U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(told[i].job, ids[i]);
    EXPECT_EQ(told[i].from, "new");
    EXPECT_EQ(told[i].to, "available");
  }
}

TEST_F(SpreadBatches, later_and_pending_jobs_come_as_what_they_are) {
  std::vector<JobSpec> specs = four;
  specs[0].scheduled_at_ms = s.now_ms() + kHour;
  specs[1].pending = true;
  const std::vector<std::string> ids = enqueue(specs);
  EXPECT_EQ(s.get(ids[0]).state, State::kScheduled);
  EXPECT_EQ(s.get(ids[1]).state, State::kPending);
  EXPECT_TRUE(s.producer.activate(ids[1]).ok());
  s.move_clock(kHour + kSecond);
  s.tick();
  EXPECT_EQ(drain("a"), (std::vector{ids[3], ids[1]}));
  EXPECT_EQ(drain("b"), (std::vector{ids[2], ids[0]}));
}

TEST_F(SpreadBatches, BP_T20_a_full_queue_refuses_all_of_it) {
  enqueue({spec_of({}, "a")});
  bound("a", 2, BackpressureStrategy::kReject);
  bound("b", 2, BackpressureStrategy::kReject);
  const auto refused = s.producer.enqueue_batch(four);
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().subject, "a") << refused.error().message;
  EXPECT_EQ(depth("a"), 1U);
  EXPECT_EQ(depth("b"), 0U);
  EXPECT_EQ(s.observer.queue("a")->rejected_total, 2U);
  EXPECT_EQ(s.pool_use("slots"), 1U);
  EXPECT_EQ(enqueue({spec_of({}, "b"), spec_of({}, "b")}).size(), 2U) << "its room was given back";
}

TEST_F(SpreadBatches, BP_T20_what_was_charged_before_the_full_queue_is_given_back) {
  enqueue({spec_of({}, "a")});
  enqueue({spec_of({}, "b")});
  bound("a", 3, BackpressureStrategy::kReject);
  bound("b", 2, BackpressureStrategy::kReject);
  const auto refused = s.producer.enqueue_batch(four);
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().subject, "b");
  EXPECT_EQ(depth("a"), 1U);
  EXPECT_EQ(s.pool_use("slots"), 2U);
  EXPECT_EQ(enqueue({spec_of({}, "a"), spec_of({}, "a")}).size(), 2U);
}

TEST_F(SpreadBatches, BP_T03_full_queues_drop_for_it_and_only_if_all_take_theirs) {
  const std::vector<std::string> old = enqueue(four);
  bound("a", 2, BackpressureStrategy::kDropOldest);
  bound("b", 2, BackpressureStrategy::kReject);
  EXPECT_EQ(s.producer.enqueue_batch(four).code(), Code::kQueueFull);
  for (const std::string& id : old) EXPECT_EQ(s.get(id).state, State::kAvailable);
  bound("b", 2, BackpressureStrategy::kDropOldest);
  const std::vector<std::string> ids = enqueue(four);
  for (const std::string& id : old) EXPECT_EQ(s.get(id).state, State::kDiscarded);
  EXPECT_EQ(s.observer.queue("a")->dropped_total, 2U);
  EXPECT_EQ(s.observer.queue("b")->dropped_total, 2U);
  EXPECT_EQ(drain("a"), (std::vector{ids[1], ids[3]}));
  EXPECT_EQ(drain("b"), (std::vector{ids[0], ids[2]}));
}

TEST_F(SpreadBatches, SUM_10_it_replaces_unique_jobs_and_only_if_it_comes) {
  const UniqueSpec unique = unique_job(OnConflict::kReplace);
  const std::string old = s.producer.enqueue(unique.spec)->str();
  JobSpec other = spec_of({}, "a");
  bound("a", 1, BackpressureStrategy::kReject);
  enqueue({other});
  EXPECT_EQ(s.producer.enqueue_batch(std::vector{unique.spec, other}).code(), Code::kQueueFull);
  EXPECT_EQ(s.get(old).state, State::kAvailable);
  bound("a", 2, BackpressureStrategy::kReject);
  const std::vector<std::string> ids = enqueue({other, unique.spec});
  EXPECT_EQ(s.get(old).state, State::kCancelled);
  EXPECT_EQ(drain("default"), std::vector{ids[1]});
  EXPECT_EQ(s.observer.queue("default")->conflicts_total, 1U);
}

TEST_F(SpreadBatches, SUM_10_BP_T22_a_job_that_it_replaces_is_no_victim_of_it) {
  UniqueSpec unique = unique_job(OnConflict::kReplace);
  unique.spec.queue = "b";
  const std::string old = s.put(unique.spec);
  bound("b", 1, BackpressureStrategy::kDropOldest);
  unique.spec.queue = "a";
  const std::vector<std::string> ids = enqueue({unique.spec, spec_of({}, "b")});
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(s.get(old).state, State::kCancelled);
  EXPECT_EQ(drain("a"), std::vector{ids[0]});
  EXPECT_EQ(drain("b"), std::vector{ids[1]});
}

TEST_F(SpreadBatches, SUM_10_what_is_there_is_left_out_or_refuses_all) {
  const UniqueSpec ignore = unique_job(OnConflict::kIgnore), reject = unique_job();
  const std::string there = s.producer.enqueue(ignore.spec)->str();
  const std::vector<std::string> ids = enqueue({spec_of({}, "a"), ignore.spec, spec_of({}, "b")});
  EXPECT_EQ(ids[1], there);
  EXPECT_EQ(drain("a"), std::vector{ids[0]});
  EXPECT_EQ(drain("b"), std::vector{ids[2]});
  const auto refused = s.producer.enqueue_batch(std::vector{spec_of({}, "a"), reject.spec});
  EXPECT_EQ(refused.code(), Code::kDuplicate);
  EXPECT_EQ(depth("a"), 0U);
}

TEST_F(SpreadBatches, BP_T16_it_waits_in_the_line_of_the_queue_that_is_full) {
  enqueue(four);
  bound("a", 2, BackpressureStrategy::kBlock);
  bound("b", 2, BackpressureStrategy::kBlock);
  const std::vector<JobSpec> two{spec_of({}, "a"), spec_of({}, "b")};
  WaitingEnqueue waiting =
      s.producer.begin(two, {.block_timeout = std::chrono::minutes(30)}).value();
  EXPECT_FALSE(waiting.poll()) << "both are full";
  drain("b");
  EXPECT_FALSE(waiting.poll()) << "one is";
  EXPECT_EQ(depth("b"), 0U) << "it takes no room while it waits";
  Producer another = Producer::attach(s.segment).value();
  EXPECT_TRUE(another.enqueue(spec_of({}, "b")).ok()) << "the line of b is empty";
  EXPECT_EQ(another.enqueue(spec_of({}, "a")).code(), Code::kQueueFull);
  drain("b");
  drain("a");
  const auto decided = waiting.poll();
  ASSERT_TRUE(decided);
  EXPECT_TRUE(decided->ok());
  EXPECT_EQ(depth("a"), 1U);
  EXPECT_EQ(depth("b"), 1U);
}

TEST_F(SpreadBatches, BP_006_a_refused_tenant_is_named_by_its_place) {
  ASSERT_TRUE(s.admin.set_queue("a", {.tenant_max_depth = 1}).ok());
  std::vector<JobSpec> specs = four;
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].tenant = i == 0 ? "x" : "y";
  const auto refused = s.producer.enqueue_batch(specs);
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().tenant, "y");
  EXPECT_EQ(depth("b"), 0U);
}

}  // namespace
}  // namespace ojs_shm::test
