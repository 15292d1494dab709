// SPDX-License-Identifier: Apache-2.0
// The end of a segment's memory: refused only when the last slot or block is taken, and no longer
// than it is.

#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

const PoolInfo& pool_of(const SegmentInfo& info, std::string_view name) {
  for (const PoolInfo& pool : info.pools)
    if (pool.name == name) return pool;
  return info.pools.front();
}

/// Puts jobs of that size in until one is refused; how many went in.
std::uint64_t fill(QuietSegment& s, const JobSpec& spec, Error& refused) {
  for (std::uint64_t count = 0;; ++count) {
    const auto put = s.producer.enqueue(spec);
    if (put.ok()) continue;
    refused = put.error();
    return count;
  }
}

TEST(FullMemory, every_slot_is_used_before_one_is_refused_and_one_that_ends_makes_room_at_once) {
  QuietSegment s(few_slots(300));
  Error refused;
  EXPECT_EQ(fill(s, spec_of(), refused), 300U);
  EXPECT_EQ(refused.code, Code::kSegmentFull);
  EXPECT_EQ(refused.subject, "slots");
  EXPECT_EQ(refused.depth, refused.bound);
  EXPECT_EQ(refused.retry_after_ms, 0U) << "that is of full queues";
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kSegmentFull);
    ASSERT_NE(s.take(), "");
    EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kSegmentFull)
        << "an active job keeps its slot";
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    s.put();
  }
}

/// Queues stay, so that refused jobs could use them up.
TEST(FullMemory, PRI_005_a_refused_job_makes_no_queue) {
  QuietSegment s(few_slots(32));
  const std::string standing = s.put();
  const std::string too_long = "[\"" + std::string(2U << 20, 'x') + "\"]";
  const auto refused = [&s](Code code, const JobSpec& spec) {
    EXPECT_EQ(s.producer.enqueue(spec).code(), code);
    const JobSpec good = spec_of(1, "fresh");
    EXPECT_EQ(s.producer.enqueue_batch(std::vector{good, spec}).code(), code);
    EXPECT_EQ(s.observer.queues().size(), 1U);
  };
  refused(Code::kInvalid, spec_of(-1, "fresh"));
  JobSpec spec = spec_of(1, "fresh");
  spec.retry.coefficient = 0.5;
  refused(Code::kInvalid, spec);
  spec = spec_of(1, "fresh");
  spec.id = "no id";
  refused(Code::kInvalid, spec);
  spec = spec_of(1, "fresh");
  spec.priority_age_rate = 256;
  refused(Code::kInvalid, spec);
  spec = spec_of(1, "fresh");
  spec.args = too_long;
  refused(Code::kTooLarge, spec);
  spec.args = "[]";
  spec.id = standing;
  refused(Code::kDuplicate, spec);
  Error full;
  fill(s, spec_of(), full);
  refused(Code::kSegmentFull, spec_of(1, "fresh"));
  const auto both = parse_queue_settings(R"({"aging":{},"level_weights":{"0":1}})");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(s.admin.set_queue("fresh", *both).code(), Code::kInvalid) << "an order of one kind";
  EXPECT_EQ(s.observer.queues().size(), 1U);
}

TEST(FullMemory,
     every_block_is_used_before_a_body_is_refused_and_one_that_ends_makes_room_at_once) {
  SegmentOptions options = few_slots(1024);
  options.max_body_bytes = 4096;
  QuietSegment s(options);
  const std::string args = "[\"" + std::string(200, 'x') + "\"]";  // one block
  JobSpec spec = spec_of();
  spec.args = args;
  const std::string large_args = "[\"" + std::string(4000, 'x') + "\"]";
  JobSpec large = spec_of();
  large.args = large_args;
  Error refused;
  fill(s, large, refused);
  fill(s, spec, refused);
  EXPECT_EQ(refused.code, Code::kSegmentFull);
  EXPECT_EQ(refused.subject, "blocks");
  const SegmentInfo info = s.observer.segment_info();
  EXPECT_EQ(pool_of(info, "blocks").used, pool_of(info, "blocks").capacity);
  s.put();  // without a block there is room
  const std::vector<JobSpec> batch = {spec_of(), spec};
  const std::uint64_t depth = s.queue().depth;
  EXPECT_EQ(s.producer.enqueue_batch(batch).code(), Code::kSegmentFull);
  EXPECT_EQ(s.queue().depth, depth);
  ASSERT_NE(s.take(), "");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  s.put(large);
  EXPECT_EQ(s.producer.enqueue(spec).code(), Code::kSegmentFull);
}

TEST(FullMemory, a_bounded_queue_gives_its_credit_back_when_the_memory_is_short) {
  QuietSegment s(few_slots(64));
  ASSERT_TRUE(s.admin.set_queue("bounded", {.max_depth = 10}).ok());
  Error refused;
  fill(s, spec_of(), refused);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(s.producer.enqueue(spec_of({}, "bounded")).code(), Code::kSegmentFull);
  EXPECT_EQ(s.queue("bounded").depth, 0U);
  for (int i = 0; i < 10; ++i) {
    ASSERT_NE(s.take(), "");
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    s.put({}, "bounded");
  }
  EXPECT_EQ(s.producer.enqueue(spec_of({}, "bounded")).code(), Code::kQueueFull);
}

/// A job whose key another has needs no memory: that it is a duplicate is what its producer must
/// know.
TEST(FullMemory, a_unique_duplicate_is_told_so_when_slots_are_short) {
  QuietSegment s(few_slots(64));
  const std::string first = s.put(unique_job().spec);
  Error refused;
  fill(s, spec_of(), refused);
  ASSERT_EQ(refused.subject, "slots");
  const auto second = s.producer.enqueue(unique_job().spec);
  ASSERT_EQ(second.code(), Code::kDuplicate) << second.error().message;
  EXPECT_EQ(second.error().subject, first);
  const auto other = s.producer.enqueue(unique_job(OnConflict::kReject, "[2]").spec);
  EXPECT_EQ(other.code(), Code::kSegmentFull);
}

TEST(FullMemory, a_unique_duplicate_with_a_body_drops_no_result_of_another_job) {
  SegmentOptions options = few_slots(1024);
  options.max_body_bytes = 4096;
  QuietSegment s(options);
  const std::string large = "[\"" + std::string(4000, 'x') + "\"]";
  const std::string first = s.put(unique_job(OnConflict::kReject, large).spec);
  const std::string done = s.put();
  ASSERT_EQ(s.take(), first);
  ASSERT_EQ(s.take(), done);
  ASSERT_TRUE(s.worker.ack(s.job, large).ok());
  // Blocks are taken until the next body would cost the oldest result.
  JobSpec spec = spec_of();
  spec.args = large;
  const auto free_blocks = [&s] {
    const SegmentInfo info = s.observer.segment_info();
    return pool_of(info, "blocks").capacity - pool_of(info, "blocks").used;
  };
  const std::uint64_t before = free_blocks();
  s.put(spec);
  const std::uint64_t each = before - free_blocks();
  while (free_blocks() >= each) s.put(spec);
  ASSERT_EQ(s.get(done).result, large);
  EXPECT_EQ(s.producer.enqueue(unique_job(OnConflict::kReject, large).spec).code(),
            Code::kDuplicate);
  EXPECT_EQ(s.get(done).result, large);
}

TEST(FullMemory, a_unique_job_whose_body_finds_no_block_leaves_its_key_free) {
  SegmentOptions options = few_slots(1024);
  options.max_body_bytes = 4096;
  QuietSegment s(options);
  const std::string large = "[\"" + std::string(4000, 'x') + "\"]";
  const UniqueSpec unique = unique_job(OnConflict::kReject, large);
  JobSpec spec = spec_of();
  spec.args = large;
  Error refused;
  fill(s, spec, refused);
  ASSERT_EQ(refused.subject, "blocks");
  const auto put = s.producer.enqueue(unique.spec);
  ASSERT_EQ(put.code(), Code::kSegmentFull) << "not a duplicate, for there is none";
  EXPECT_EQ(put.error().subject, "blocks");
  ASSERT_NE(s.take(), "");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const std::string first = s.put(unique.spec);
  const auto second = s.producer.enqueue(unique.spec);
  ASSERT_EQ(second.code(), Code::kDuplicate) << second.error().message;
  EXPECT_EQ(second.error().subject, first);
}

TEST(FullMemory, PRI_005_a_refused_workflow_makes_no_queue) {
  QuietSegment s(few_slots(32));
  const std::string standing = s.put();
  WorkflowSpec group, part;
  group.kind = WorkflowKind::kGroup;
  const auto refused = [&](Code code) {
    EXPECT_EQ(s.producer.create_workflow(group).code(), code);
    EXPECT_EQ(s.observer.queues().size(), 1U);
  };
  std::vector<std::string> names;
  for (char name = 'a'; name < 'a' + 9; ++name) names.emplace_back(1, name);
  for (const std::string& name : names) {
    part.job = spec_of(1, name);
    group.steps.push_back(part);
  }
  refused(Code::kSegmentFull);  // one queue too many
  group.steps.resize(2);
  group.id = standing;
  refused(Code::kDuplicate);
  group.id = {};
  Error full;
  fill(s, spec_of(), full);
  refused(Code::kSegmentFull);
}

}  // namespace
}  // namespace ojs_shm::test
