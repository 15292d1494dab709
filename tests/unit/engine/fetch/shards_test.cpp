// SPDX-License-Identifier: Apache-2.0
// Sharded queues: one name, one bound, several lines.

#include <set>
#include <thread>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

QueueSettings shards(std::uint32_t count) {
  QueueSettings settings;
  settings.shards = count;
  return settings;
}

TEST(Shards, QO_07_QO_08_order_holds_within_a_shard_and_each_producer_has_one) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", shards(2)).ok());
  std::vector<Producer> producers;
  for (int i = 0; i < 4; ++i) producers.push_back(Producer::attach(s.segment).value());
  std::vector<std::vector<std::string>> put(4);
  for (int i = 0; i < 40; ++i)
    put[static_cast<std::size_t>(i % 4)].push_back(
        producers[static_cast<std::size_t>(i % 4)].enqueue(spec_of(2))->str());
  const auto got = s.drain();
  ASSERT_EQ(got.size(), 40U);
  for (const auto& line : put) {
    std::vector<std::string> seen;
    std::copy_if(got.begin(), got.end(), std::back_inserter(seen), [&](const std::string& id) {
      return std::find(line.begin(), line.end(), id) != line.end();
    });
    EXPECT_EQ(seen, line);
  }
}

TEST(Shards, QO_07_priority_goes_first_within_a_shard) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", shards(4)).ok());
  const std::string low = s.put(3), high = s.put(1), urgent = s.put(0);
  EXPECT_EQ(s.drain(), (std::vector{urgent, high, low}));
}

TEST(Shards, FS_T01_an_idle_worker_takes_from_the_other_shards) {
  QuietSegment s(few_slots(4096));
  ASSERT_TRUE(s.admin.set_queue("default", shards(8)).ok());
  std::set<std::string> put, got;
  for (int i = 0; i < 8; ++i) {
    Producer producer = Producer::attach(s.segment).value();
    for (int k = 0; k < 20; ++k) put.insert(producer.enqueue(spec_of(2))->str());
  }
  for (const std::string& id : s.drain()) got.insert(id);
  EXPECT_EQ(got, put);
}

TEST(Shards, BP_T01_the_bound_is_one_for_all_shards) {
  QuietSegment s(few_slots(4096));
  QueueSettings settings = shards(4);
  settings.max_depth = 100;
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Producer producer = Producer::attach(s.segment).value();
      for (int i = 0; i < 100; ++i)
        if (producer.enqueue(spec_of(2))) ++accepted;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, 100);
  EXPECT_EQ(s.queue().depth, 100U);
  EXPECT_EQ(s.drain().size(), 100U);
}

TEST(Shards, QO_08_fewer_shards_lose_no_job) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", shards(4)).ok());
  std::vector<Producer> producers;
  for (int i = 0; i < 8; ++i) {
    producers.push_back(Producer::attach(s.segment).value());
    ASSERT_TRUE(producers.back().enqueue(spec_of(2)).ok());
  }
  ASSERT_TRUE(s.admin.set_queue("default", shards(1)).ok());
  EXPECT_EQ(s.queue().shards, 1U);
  EXPECT_EQ(s.drain().size(), 8U);
}

TEST(Shards, QO_14_a_rate_that_comes_later_is_no_rate_of_the_jobs_of_a_former_shard) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", shards(4)).ok());
  std::vector<std::string> old;
  for (int i = 0; i < 8; ++i)
    old.push_back(Producer::attach(s.segment).value().enqueue(spec_of(2))->str());
  ASSERT_TRUE(s.admin.set_queue("default", shards(1)).ok());
  JobSpec spec = spec_of(2);
  spec.priority_age_rate = 50;
  const std::string quick = s.put(spec);
  EXPECT_EQ(s.get(quick).priority_age_rate, 50U);
  for (const std::string& id : old) EXPECT_FALSE(s.get(id).priority_age_rate.has_value()) << id;
  EXPECT_EQ(s.admin.set_queue("default", shards(2)).code(), Code::kInvalid);
  EXPECT_EQ(s.drain().size(), 9U);
}

TEST(Shards, QO_14_a_sharded_queue_takes_no_rate_of_a_job) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", shards(2)).ok());
  JobSpec spec = spec_of(2);
  spec.priority_age_rate = 2;
  EXPECT_EQ(s.producer.enqueue(spec).code(), Code::kInvalid);
  EXPECT_EQ(s.admin.set_queue("default", shards(17)).code(), Code::kInvalid);
  EXPECT_EQ(s.admin.set_queue("default", shards(0)).code(), Code::kInvalid);
  spec.queue = "other";
  s.put(spec);
  EXPECT_EQ(s.admin.set_queue("other", shards(2)).code(), Code::kInvalid);
}

TEST(Shards, QO_08_a_refused_number_of_shards_takes_no_parts) {
  QuietSegment s;  // 32 parts
  ASSERT_TRUE(s.admin.set_queue("a", shards(16)).ok());
  ASSERT_TRUE(s.admin.set_queue("b", shards(16)).ok());
  const Status refused = s.admin.set_queue("c", shards(16));
  EXPECT_EQ(refused.code(), Code::kSegmentFull);
  EXPECT_EQ(refused.error().subject, "parts");
  EXPECT_EQ(s.observer.queue("c")->shards, 1U);
  ASSERT_NE(s.actor().order().ensure_part(s.actor().ensure_queue("d"), 1), engine::kNoIndex);
  // half made by a lane that died
  s.store().queue(s.actor().ensure_queue("d")).part[1].store(0, shm::Point::kNone);
  EXPECT_TRUE(s.admin.set_queue("d", shards(3)).ok());
  EXPECT_EQ(s.admin.set_queue("d", shards(4)).code(), Code::kSegmentFull);
}

TEST(Shards, PRI_T18_ageing_and_weights_hold_in_a_sharded_queue) {
  QuietSegment s;
  QueueSettings settings = shards(4);
  settings.aging.emplace();
  ASSERT_TRUE(s.admin.set_queue("aged", settings).ok());
  const std::string old = s.put(4, "aged");
  s.move_clock(5 * kMinute);
  const std::string fresh = s.put(0, "aged");
  WorkerOptions options;
  options.queues = {"aged"};
  Worker worker = Worker::attach(s.segment, options).value();
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  EXPECT_EQ(s.job.id(), old);
  ASSERT_TRUE(worker.ack(s.job).ok());

  settings = shards(4);
  settings.level_weights = {{"0", 1}, {"1", 1}};
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  for (int i = 0; i < 4; ++i) {
    Producer producer = Producer::attach(s.segment).value();
    ASSERT_TRUE(producer.enqueue(spec_of(i / 2)).ok());
  }
  ASSERT_FALSE(s.take().empty());
  const auto first = s.job.priority();
  ASSERT_FALSE(s.take().empty());
  EXPECT_NE(s.job.priority(), first);
}

}  // namespace
}  // namespace ojs_shm::test
