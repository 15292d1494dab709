// SPDX-License-Identifier: Apache-2.0
// Tenants that share a queue: by turns within each level, never across.

#include <algorithm>
#include <map>
#include <thread>

#include "engine/tenants/tenant_rules.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Names = std::vector<std::string>;

SegmentOptions many_slots(std::uint32_t slots, std::uint32_t tenants = 1024) {
  SegmentOptions options = few_slots(slots);
  options.max_tenants = tenants;
  return options;
}

QueueSettings sharing(bool enabled = true,
                      std::vector<std::pair<std::string, std::uint32_t>> weights = {}) {
  QueueSettings settings;
  settings.tenant_fairness = TenantFairness{enabled, 1, std::move(weights)};
  return settings;
}

std::string put_for(QuietSegment& s, const std::string& tenant, std::int64_t priority = 2) {
  const std::string extra = R"({"meta":{"tenant_id":")" + tenant + R"("}})";
  JobSpec spec = spec_of(priority);
  spec.extra = extra;
  return s.put(spec);
}

void put_for(QuietSegment& s, const std::string& tenant, int jobs, std::int64_t priority) {
  for (int i = 0; i < jobs; ++i) put_for(s, tenant, priority);
}

/// The tenant of the next job, which is finished; empty when there is none.
std::string next(QuietSegment& s) {
  if (!s.worker.try_fetch(s.job)) return {};
  const std::string extra(s.job.extra());
  const std::size_t at = extra.find("tenant_id\":\"") + 12;
  EXPECT_TRUE(s.worker.ack(s.job).ok());
  return extra.empty() ? "nobody" : extra.substr(at, extra.find('"', at) - at);
}

Names next(QuietSegment& s, int times) {
  Names tenants;
  for (int i = 0; i < times; ++i) tenants.push_back(next(s));
  return tenants;
}

std::map<std::string, int> shares(const Names& names) {
  std::map<std::string, int> count;
  for (const std::string& name : names) ++count[name];
  return count;
}

TEST(Tenants, FS_T16_FS_R005_FS_G4_a_tenant_with_many_jobs_does_not_hold_up_one_with_few) {
  QuietSegment s(many_slots(4096));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  put_for(s, "a", 1000, 2);
  put_for(s, "b", 10, 2);
  const Names first = next(s, 20);
  EXPECT_EQ(shares(first), (std::map<std::string, int>{{"a", 10}, {"b", 10}}));
  EXPECT_EQ(next(s, 2), (Names{"a", "a"}));
  put_for(s, "b");
  const Names soon = next(s, 2);
  EXPECT_NE(std::find(soon.begin(), soon.end(), "b"), soon.end());
}

TEST(Tenants, FS_T16_whoever_comes_is_served_within_two_dispatches) {
  QuietSegment s(many_slots(2048));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  put_for(s, "a", 500, 2);
  for (int round = 0; round < 50; ++round) {
    const std::string guest = "guest-" + std::to_string(round);
    put_for(s, guest);
    const Names got = next(s, 2);
    EXPECT_NE(std::find(got.begin(), got.end(), guest), got.end()) << round;
  }
}

TEST(Tenants, FS_T16_first_in_first_out_within_a_tenant_and_nothing_is_lost) {
  QuietSegment s(many_slots(2048));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  Seeded random;
  std::map<std::string, Names> put, got;
  for (int i = 0; i < 900; ++i) {
    const std::string tenant = std::to_string(random.between(0, 12));
    put[tenant].push_back(put_for(s, tenant, random.between(1, 3)));
    if (random.coin()) continue;
    if (s.worker.try_fetch(s.job)) {
      got["all"].emplace_back(s.job.id());
      ASSERT_TRUE(s.worker.ack(s.job).ok());
    }
    ASSERT_EQ(s.findings(), "");
  }
  for (const std::string& id : s.drain()) got["all"].push_back(id);
  Names all_put, all_got = got["all"];
  for (const auto& [tenant, ids] : put) all_put.insert(all_put.end(), ids.begin(), ids.end());
  std::sort(all_put.begin(), all_put.end());
  std::sort(all_got.begin(), all_got.end());
  EXPECT_EQ(all_put, all_got);
}

TEST(Tenants, FS_T17_priority_comes_first_whatever_the_shares) {
  QuietSegment s(many_slots(1024));
  ASSERT_TRUE(s.admin.set_queue("default", sharing(true, {{"b", 100}})).ok());
  put_for(s, "b", 20, 3);
  put_for(s, "a", 20, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(s), "a");
  put_for(s, "c", 1, 1);
  EXPECT_EQ(next(s), "c");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(s), "b");
}

TEST(Tenants, FS_T18_weights_are_shares_and_act_on_what_waits) {
  QuietSegment s(many_slots(2048));
  ASSERT_TRUE(s.admin.set_queue("default", sharing(true, {{"tenant:a", 5}})).ok());
  for (const char* tenant : {"a", "b", "c"}) put_for(s, tenant, 200, 2);
  EXPECT_EQ(shares(next(s, 70)), (std::map<std::string, int>{{"a", 50}, {"b", 10}, {"c", 10}}));
  EXPECT_EQ(s.queue().tenant_fairness.weights,
            (std::vector<std::pair<std::string, std::uint32_t>>{{"a", 5}}));
  // a has the default again
  ASSERT_TRUE(s.admin.set_queue("default", sharing(true, {{"b", 3}})).ok());
  const auto now = shares(next(s, 50));
  EXPECT_NEAR(now.at("b"), 30, 3);
  EXPECT_NEAR(now.at("a"), 10, 3);
  EXPECT_NEAR(now.at("c"), 10, 3);
  EXPECT_EQ(
      s.admin.set_queue("default", sharing(true, {{"a", 2}, {"tenant:a", 3}})).error().subject,
      "tenant_fairness.weights");
  EXPECT_EQ(s.admin.set_queue("default", sharing(true, {{"a", 0}})).error().subject,
            "tenant_fairness.weights");
}

TEST(Tenants, FS_T16_off_is_first_in_first_out) {
  QuietSegment s(many_slots(512));
  Names put;
  for (int i = 0; i < 40; ++i) put.push_back(put_for(s, i % 4 == 0 ? "b" : "a"));
  EXPECT_EQ(s.drain(), put);
  EXPECT_FALSE(s.queue().tenant_fairness.enabled);
}

TEST(Tenants, FS_T16_switching_moves_the_backlog) {
  QuietSegment s(many_slots(2048));
  Names ids;
  for (int i = 0; i < 300; ++i) ids.push_back(put_for(s, "a"));
  ids.push_back(put_for(s, "b"));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  ids.push_back(put_for(s, "a"));  // its turn comes after those of its tenant that waited before
  EXPECT_EQ(shares(next(s, 2)), (std::map<std::string, int>{{"a", 1}, {"b", 1}}));
  for (int i = 0; i < 50; ++i) {
    ids.push_back(put_for(s, "c"));
    ids.push_back(put_for(s, "d"));
  }
  ASSERT_TRUE(s.admin.set_queue("default", sharing(false)).ok());
  for (int i = 0; i < 5; ++i) ids.push_back(put_for(s, "e"));
  ids.erase(std::find(ids.begin(), ids.end(), ids.front()));
  ids.erase(ids.begin() + 299);  // the one of b
  EXPECT_EQ(s.drain(), ids);
  EXPECT_EQ(s.queue().depth, 0U);
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  put_for(s, "a", 3, 2);
  put_for(s, "b", 1, 2);
  EXPECT_EQ(shares(next(s, 4)), (std::map<std::string, int>{{"a", 3}, {"b", 1}}));
}

TEST(Tenants, FS_T16_jobs_without_a_tenant_are_one_tenant) {
  QuietSegment s(many_slots(512));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  for (int i = 0; i < 20; ++i) s.put(2);
  put_for(s, "a", 5, 2);
  EXPECT_EQ(shares(next(s, 10)), (std::map<std::string, int>{{"nobody", 5}, {"a", 5}}));
}

/// A fetch has announced that a flow ends, and has looked into it again. Before it says that the
/// flow has ended, a job comes and takes the announcement back; and a lane that ends the sharing
/// announces it once more, and dies there.
TEST(Tenants, FS_T16_an_end_that_was_taken_back_hides_no_job) {
  struct Died {};
  QuietSegment s(many_slots(64));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  put_for(s, "a");
  engine::Fetched got;
  std::string body;
  got.body = &body;
  bool meanwhile = false, died = false;
  {
    const AtAccess before_the_end([&](shm::Access access, shm::Point point, const void*) {
      if (meanwhile && !died && access == shm::Access::kWritten && point == shm::Point::kFlowEnding)
        throw Died{};
      if (meanwhile || access != shm::Access::kRmw || point != shm::Point::kFlowEnded) return;
      meanwhile = true;
      put_for(s, "a");
      try {
        (void)s.admin.set_queue("default", sharing(false));
      } catch (const Died&) {
        died = true;
      }
    });
    ASSERT_EQ(s.actor().fetch(0, 0, false, got), engine::Outcome::kOk);
  }
  EXPECT_TRUE(died);
  EXPECT_EQ(s.actor().ack(got.slot, got.word, ""), engine::Outcome::kOk);
  EXPECT_EQ(next(s), "a");
}

TEST(Tenants, FS_T16_a_flow_lives_through_cancels_returns_and_other_priorities) {
  QuietSegment s(many_slots(512));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  Names ids;
  for (int i = 0; i < 6; ++i) ids.push_back(put_for(s, "a"));
  put_for(s, "b", 2, 2);
  for (const int i : {0, 2}) ASSERT_TRUE(s.producer.cancel(ids[static_cast<std::size_t>(i)]).ok());
  EXPECT_EQ(s.take(), ids[1]);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  EXPECT_EQ(s.take(), ids[1]);  // what was given back goes first
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  ASSERT_TRUE(s.producer.reprioritize(ids[5], 3).ok());
  ASSERT_TRUE(s.producer.reprioritize(ids[5], 2).ok());
  EXPECT_EQ(s.findings(), "");
  EXPECT_EQ(shares(next(s, 5)), (std::map<std::string, int>{{"a", 3}, {"b", 2}}));
  s.pass(kHour);
  EXPECT_EQ(next(s, 2), (Names{"a", ""}));  // the retry
}

TEST(Tenants, FS_T16_more_tenants_than_there_is_room_for_lose_nothing) {
  QuietSegment s(many_slots(1024, 16));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  for (int i = 0; i < 300; ++i) put_for(s, "t" + std::to_string(i));
  EXPECT_EQ(s.findings(), "");
  EXPECT_EQ(s.drain().size(), 300U);
  for (int i = 0; i < 40; ++i) {  // room is used again
    put_for(s, "u" + std::to_string(i), 2, 2);
    EXPECT_EQ(s.drain().size(), 2U);
  }
}

TEST(Tenants, FS_T16_a_hundred_thousand_tenants_have_a_turn_each) {
  constexpr int kTenants = 100'000;
  SegmentOptions options = many_slots(210'000, 200'000);
  QuietSegment s(options);
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  put_for(s, "big", 2000, 2);
  for (int i = 0; i < kTenants; ++i) put_for(s, "t" + std::to_string(i));
  put_for(s, "big", 2000, 2);
  std::map<std::string, int> seen;
  for (int i = 0; i < kTenants + 1; ++i) ++seen[next(s)];
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kTenants + 1));
  EXPECT_EQ(seen["big"], 1);
  put_for(s, "late");
  const Names soon = next(s, 2);
  EXPECT_NE(std::find(soon.begin(), soon.end(), "late"), soon.end());
}

TEST(Tenants, FS_T01_many_threads_take_each_job_once) {
  QuietSegment s(many_slots(8192));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  constexpr int kEach = 1500, kProducers = 2, kWorkers = 3;
  std::vector<Names> got(kWorkers);
  std::atomic<int> left{kEach * kProducers};
  std::vector<std::thread> threads;
  for (int p = 0; p < kProducers; ++p)
    threads.emplace_back([&s, p] {
      Producer producer = Producer::attach(s.segment).value();
      for (int i = 0; i < kEach; ++i) {
        const std::string extra =
            R"({"meta":{"tenant_id":"t)" + std::to_string((i * 7 + p) % 5) + R"("}})";
        JobSpec spec = spec_of(i % 2 + 1);
        spec.extra = extra;
        EXPECT_TRUE(producer.enqueue(spec).ok());
      }
    });
  for (int w = 0; w < kWorkers; ++w)
    threads.emplace_back([&s, &left, &mine = got[static_cast<std::size_t>(w)]] {
      Worker worker = Worker::attach(s.segment, {}).value();
      Job job;
      while (left.load() > 0) {
        if (!worker.try_fetch(job)) continue;
        --left;
        mine.emplace_back(job.id());
        EXPECT_TRUE(worker.ack(job).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  Names all;
  for (const Names& mine : got) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kEach * kProducers));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(Tenants, FS_T16_sharing_no_more_forgets_no_job_that_came_into_a_flow_while_it_was_given_away) {
  QuietSegment s(many_slots(64, 2));
  for (const char* queue : {"default", "other"})
    ASSERT_TRUE(s.admin.set_queue(queue, sharing()).ok());
  put_for(s, "a");
  const std::uint64_t place =
      std::uint64_t{s.store().find_queue("other")} << 16 | engine::normal_ring(2);
  for (std::uint32_t i = 0; i < s.store().flows.size(); ++i) {
    engine::FlowRecord& flow = s.store().flows[i];
    const bool in_line = engine::FlowControl(flow.control.load()).in_line();
    flow.key.store(in_line ? engine::mix_key(place, engine::hash_tenant("a")) : 1,
                   shm::Point::kNone);
  }
  JobSpec spec = spec_of(2, "other");
  spec.tenant = "a";
  const std::string id = s.put(spec);
  ASSERT_TRUE(s.admin.set_queue("default", sharing(false)).ok());
  EXPECT_EQ(s.findings(), "");
  Worker worker = Worker::attach(s.segment, {.queues = {"other"}}).value();
  ASSERT_TRUE(worker.try_fetch(s.job));
  EXPECT_EQ(s.job.id(), id);
}

/// An idle flow goes to a tenant of another queue. At each access of the enqueue that wants it, or
/// that takes it away, the others have enqueued: each job is found by a worker of its own queue
/// alone.
TEST(Tenants, FS_T16_a_flow_that_goes_to_another_queue_hides_no_job) {
  constexpr int kTenants = 40;
  QuietSegment s(many_slots(2048, 16));
  for (const char* queue : {"one", "two"}) ASSERT_TRUE(s.admin.set_queue(queue, sharing()).ok());
  const auto put = [&s](const std::string& queue, const std::string& tenant) {
    const std::string extra = R"({"meta":{"tenant_id":")" + tenant + R"("}})";
    JobSpec spec = spec_of(2, queue);
    spec.extra = extra;
    return s.put(spec);
  };
  const auto worker_of = [&s](const char* queue) {
    WorkerOptions options;
    options.queues = {queue};
    return Worker::attach(s.segment, options).value();
  };
  Worker one = worker_of("one"), two = worker_of("two");
  const auto drain = [&s](Worker& worker) {
    int jobs = 0;
    for (; worker.try_fetch(s.job); ++jobs) EXPECT_TRUE(worker.ack(s.job).ok());
    return jobs;
  };
  for (const bool known : {true, false}) {  // whether it is the outer one's flow that goes
    bool acted = true;
    for (std::uint64_t at = 0; acted; ++at) {
      SCOPED_TRACE("at access " + std::to_string(at) + (known ? ", known" : ", new"));
      acted = false;
      for (int i = 0; i < kTenants; ++i) put("one", "t" + std::to_string(i));
      EXPECT_EQ(drain(one), kTenants);
      std::uint64_t count = 0;
      {
        const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
          if (acted || count++ != at) return;
          acted = true;
          for (int i = 0; i < kTenants; ++i)
            put(known ? "two" : "one", (known ? "new" : "t") + std::to_string(i));
        });
        put(known ? "one" : "two", known ? "t39" : "new" + std::to_string(at));
      }
      const int others = acted ? kTenants : 0;
      EXPECT_EQ(drain(known ? one : two), 1);
      EXPECT_EQ(drain(known ? two : one), others);
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// Lanes died while they gave each idle flow to another tenant.
TEST(Tenants, FS_T16_a_flow_whose_way_was_cut_off_is_used_again) {
  QuietSegment s(many_slots(256, 16));
  ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
  for (std::uint32_t at = 0; at < s.store().flows.size(); ++at) {
    engine::FlowRecord& flow = s.store().flows[at];
    flow.key.store(1000 + at, shm::Point::kNone);
    flow.control.store(engine::FlowControl(flow.control.load()).moving().word, shm::Point::kNone);
  }
  put_for(s, "a");
  int in_line = 0;
  for (std::uint32_t at = 0; at < s.store().flows.size(); ++at)
    in_line += engine::FlowControl(s.store().flows[at].control.load()).in_line() ? 1 : 0;
  EXPECT_EQ(in_line, 1);
  EXPECT_EQ(next(s), "a");
}

}  // namespace
}  // namespace ojs_shm::test
