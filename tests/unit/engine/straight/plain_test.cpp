// SPDX-License-Identifier: Apache-2.0
// The straight way of a plain job (engine/straight/plain.cpp): which calls take it, and that both
// ways leave the same behind.

#include <array>
#include <string>
#include <vector>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

engine::NewJob new_job(std::uint32_t queue, std::uint8_t rank, std::string_view args = "[1]") {
  engine::NewJob job;
  job.type = "unit.test";
  job.args = args;
  job.queue = queue;
  job.rank = rank;
  return job;
}

TEST(Plain, a_queue_without_options_and_a_level_that_is_there_take_the_straight_way) {
  QuietSegment s;
  const std::uint32_t queue = s.actor().ensure_queue("default");
  engine::JobId id;
  EXPECT_EQ(s.actor().enqueue_plain(new_job(queue, 3), id), engine::Straight::kAside) << "no level";
  s.put(2);
  const std::uint8_t rank = *engine::rank_of(s.actor().store().convention(), 2);
  ASSERT_EQ(s.actor().enqueue_plain(new_job(queue, rank), id), engine::Straight::kDone);
  EXPECT_EQ(s.producer.get(engine::to_string(id))->state, State::kAvailable);
  std::string body;
  engine::Fetched got;
  got.body = &body;
  ASSERT_EQ(s.actor().fetch_plain(queue, 0, false, got), engine::Straight::kDone);
  ASSERT_EQ(s.actor().fetch_plain(queue, 0, false, got), engine::Straight::kDone);
  EXPECT_EQ(got.id, id);
  EXPECT_EQ(body, "unit.test[1]");
  EXPECT_EQ(s.actor().fetch_plain(queue, 0, false, got), engine::Straight::kEmpty);
}

/// A fetch looks again at what the fetch before has seen: also where a chunk ends, behind which
/// stands a link and not a job.
TEST(Plain, a_kept_look_finds_what_comes_behind_the_end_of_a_chunk) {
  QuietSegment s;
  Job job;
  for (unsigned i = 0; i < shm::kCellsPerChunk * 3; ++i) {
    const std::string id = s.put(2);
    ASSERT_TRUE(s.worker.try_fetch(job).ok()) << i;
    EXPECT_EQ(job.id(), id);
    ASSERT_TRUE(s.worker.ack(job).ok());
    EXPECT_EQ(s.worker.try_fetch(job).code(), Code::kEmpty) << i;
  }
}

/// A batch takes them in a row, over the ends of chunks and levels, beside one that takes them too.
TEST(Plain, a_batch_takes_the_best_first_and_each_job_once) {
  QuietSegment s;
  Worker other = Worker::attach(s.segment, {}).value();
  std::vector<Job> jobs(shm::kCellsPerChunk * 2 + 3);
  for (unsigned round = 0; round < 5; ++round) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < jobs.size(); ++i) ids.push_back(s.put(i % 2 == 0 ? 0 : 1));
    std::vector<std::string> wanted;
    for (const std::size_t first : {0U, 1U})
      for (std::size_t i = first; i < ids.size(); i += 2) wanted.push_back(ids[i]);
    for (std::size_t taken = 0; taken < ids.size();) {
      ASSERT_TRUE(other.try_fetch(jobs[taken]).ok());
      EXPECT_EQ(jobs[taken].id(), wanted[taken]);
      ASSERT_TRUE(other.ack(jobs[taken++]).ok());
      const auto got = s.worker.fetch_batch(
          std::span(jobs).subspan(taken).first(std::min<std::size_t>(jobs.size() - taken, 7)));
      for (std::size_t i = 0; got.ok() && i < *got; ++i) {
        EXPECT_EQ(jobs[taken].id(), wanted[taken]);
        ASSERT_TRUE(s.worker.ack(jobs[taken++]).ok());
      }
    }
    EXPECT_EQ(s.worker.try_fetch(jobs[0]).code(), Code::kEmpty);
  }
}

TEST(Plain, every_option_of_a_queue_leads_to_the_general_way) {
  const std::array<void (*)(QueueSettings&), 3> options = {
      [](QueueSettings& set) { set.shards = 2; },
      [](QueueSettings& set) { set.aging = AgingSettings{.enabled = true}; },
      [](QueueSettings& set) { set.tenant_fairness = TenantFairness{.enabled = true}; },
  };
  for (std::size_t name = 0; name < options.size(); ++name) {
    QuietSegment s;
    s.put(2);
    QueueSettings settings;
    options[name](settings);
    ASSERT_TRUE(s.admin.set_queue("default", settings).ok()) << name;
    const std::uint32_t queue = s.actor().ensure_queue("default", false);
    EXPECT_TRUE(s.actor().has_options(queue)) << name;
    engine::JobId id;
    const std::uint8_t rank = *engine::rank_of(s.actor().store().convention(), 2);
    EXPECT_EQ(s.actor().enqueue_plain(new_job(queue, rank), id), engine::Straight::kAside) << name;
    std::string body;
    engine::Fetched got;
    got.body = &body;
    EXPECT_EQ(s.actor().fetch_plain(queue, 0, false, got), engine::Straight::kAside) << name;
    EXPECT_EQ(s.actor().fetch(queue, 0, false, got), engine::Outcome::kOk) << name;
  }
  QuietSegment s;
  s.put(2);
  QueueSettings paused;
  paused.paused = true;
  ASSERT_TRUE(s.admin.set_queue("default", paused).ok());
  EXPECT_TRUE(s.actor().has_options(s.actor().ensure_queue("default", false)));
}

/// In a queue with a bound of ten, of which a warning is due above eight; one job is there.
struct PlainBounded : testing::Test {
  void bound(std::uint32_t slots, BackpressureStrategy strategy = BackpressureStrategy::kReject) {
    s.emplace(few_slots(slots));
    QueueSettings settings;
    settings.max_depth = slots == 32 ? 1000 : 10;
    settings.strategy = strategy;
    settings.warning_threshold = 0.8;
    ASSERT_TRUE(s->admin.set_queue("default", settings).ok());
    ASSERT_TRUE(s->admin.producer().enqueue(spec_of(2)).ok());
    queue = s->actor().ensure_queue("default", false);
    engine::JobId id;
    // the first of a lane has to read what the others let in
    EXPECT_EQ(put(), engine::Straight::kAside);
    ASSERT_EQ(s->actor().enqueue(new_job(queue, rank()), id), engine::Outcome::kOk);
  }
  std::uint8_t rank() { return *engine::rank_of(s->store().convention(), 2); }
  engine::Straight put() {
    engine::JobId id;
    const engine::NewJob job = new_job(queue, rank());
    EXPECT_EQ(s->actor().enqueue_plain(job, id), engine::Straight::kAside);
    return s->actor().enqueue_under_bound(job, id);
  }
  engine::Straight take() { return s->actor().fetch_plain(queue, 0, false, got); }
  std::uint64_t depth() { return s->observer.queue("default")->depth; }
  PlainBounded() { got.body = &body; }
  std::optional<QuietSegment> s;
  std::uint32_t queue = 0;
  std::string body;
  engine::Fetched got;
};

TEST_F(PlainBounded, goes_straight_while_the_bound_is_far) {
  bound(512);
  for (int i = 2; i < 8; ++i) EXPECT_EQ(put(), engine::Straight::kDone) << i;
  EXPECT_EQ(put(), engine::Straight::kAside) << "the ninth has to warn";
  EXPECT_EQ(depth(), 8U);
  for (int i = 0; i < 2; ++i) s->put(2);
  EXPECT_EQ(s->producer.enqueue(spec_of(2)).code(), Code::kQueueFull);
  EXPECT_EQ(put(), engine::Straight::kAside);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(take(), engine::Straight::kDone) << i;
    EXPECT_EQ(s->actor().ack(got.slot, got.word, {}), engine::Outcome::kOk);
  }
  EXPECT_EQ(take(), engine::Straight::kEmpty);
  EXPECT_EQ(depth(), 0U);
  EXPECT_EQ(put(), engine::Straight::kAside) << "it takes what has left for there still";
  s->put(2);
  engine::JobId id;
  ASSERT_EQ(s->actor().enqueue(new_job(queue, rank()), id), engine::Outcome::kOk);
  EXPECT_EQ(put(), engine::Straight::kDone);
  EXPECT_EQ(depth(), 3U);
}

TEST_F(PlainBounded, goes_the_general_way_where_producers_wait_for_room) {
  bound(512, BackpressureStrategy::kBlock);
  EXPECT_EQ(put(), engine::Straight::kAside);
  EXPECT_EQ(depth(), 2U);
}

TEST_F(PlainBounded, that_finds_no_slot_leaves_no_charge) {
  bound(32);
  while (put() == engine::Straight::kDone) {}
  const std::uint64_t held = depth();
  EXPECT_GT(held, 16U);
  EXPECT_EQ(put(), engine::Straight::kAside);
  EXPECT_EQ(depth(), held);
  EXPECT_EQ(s->producer.enqueue(spec_of(2)).code(), Code::kSegmentFull);
  EXPECT_EQ(depth(), held);
}

TEST(Plain, what_was_given_back_comes_first_on_either_way) {
  QuietSegment s;
  const std::string first = s.put(2), second = s.put(2);
  Job job;
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  ASSERT_EQ(job.id(), first);
  ASSERT_TRUE(s.worker.requeue(job).ok());
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  EXPECT_EQ(job.id(), first);
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  EXPECT_EQ(job.id(), second);
}

TEST(Plain, a_batch_keeps_its_order_over_levels_and_is_acked_at_one_time) {
  QuietSegment s;
  for (int level = 0; level < 5; ++level) s.put(level);  // the levels are there
  Job job;
  for (int level = 0; level < 5; ++level) {
    ASSERT_TRUE(s.worker.try_fetch(job).ok());
    ASSERT_TRUE(s.worker.ack(job).ok());
  }
  std::vector<JobSpec> specs;
  for (int i = 0; i < 15; ++i) specs.push_back(spec_of(i % 5));
  std::vector<JobIdText> ids(15);
  ASSERT_TRUE(s.producer.enqueue_batch(specs, ids).ok());
  std::vector<Job> jobs(20);
  const auto got = s.worker.fetch_batch(jobs);
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(*got, 15U);
  for (std::size_t i = 0; i < 15; ++i)  // best level first; within it as they came
    EXPECT_EQ(jobs[i].id(), ids[i % 3 * 5 + i / 3].view()) << i;
  EXPECT_EQ(s.worker.ack_batch(jobs).code(), Code::kEmpty) << "five of the handles hold nothing";
  ASSERT_TRUE(s.worker.ack(jobs[7]).ok());
  const auto done = s.worker.ack_batch({jobs.data(), 15});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->acked, 14U);
  EXPECT_EQ(done->lost, std::vector<std::size_t>{7});
  for (std::size_t i = 0; i < 15; ++i)
    EXPECT_EQ(s.producer.get(ids[i].view())->state, State::kCompleted) << i;
  EXPECT_EQ(s.worker.ack_batch({jobs.data(), 15})->acked, 0U);
}

TEST(Plain, a_batch_that_finds_too_few_slots_leaves_none_behind) {
  QuietSegment s(few_slots(32));
  for (int i = 0; i < 20; ++i) s.put(2);
  const std::vector<JobSpec> specs(16, spec_of(2));
  std::vector<JobIdText> ids(16);
  EXPECT_EQ(s.producer.enqueue_batch(specs, ids).code(), Code::kSegmentFull);
  EXPECT_EQ(s.producer.enqueue_batch({specs.data(), 15}, {ids.data(), 3}).code(), Code::kInvalid);
  EXPECT_TRUE(s.producer.enqueue_batch({specs.data(), 12}, ids).ok());
}

/// An audit finds a lane that nobody has any more and that still means to do something.
TEST(Plain, a_batch_of_acks_that_are_all_lost_leaves_nothing_to_do) {
  QuietSegment s;
  s.put(2), s.put(2);
  RateLimit limit;
  limit.concurrency = 5;
  ASSERT_TRUE(s.admin.set_limit("k", limit).ok());
  {
    Worker late = Worker::attach(s.segment, {}).value();
    std::vector<Job> jobs = late.fetch_batch(2).value();
    ASSERT_EQ(jobs.size(), 2U);
    s.pass(kHour);
    EXPECT_EQ(late.ack_batch(jobs)->lost.size(), 2U);
  }
  EXPECT_EQ(s.findings(), "");
}

}  // namespace
}  // namespace ojs_shm::test
