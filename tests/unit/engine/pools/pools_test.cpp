// SPDX-License-Identifier: Apache-2.0
// Pools of workers: which queue a fetch goes to. Every fetch here comes from a worker of its own,
// so what decides is in the segment.

#include <poll.h>

#include <algorithm>
#include <map>

#include <ojs_shm/transfer.hpp>

#include "engine/pools/pools.hpp"
#include "engine/rules/smooth.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Names = std::vector<std::string>;

const Names kAbc = {"a", "b", "c"};

PoolSettings pool_of(Names queues, PoolStrategy strategy = PoolStrategy::kRoundRobin) {
  PoolSettings settings;
  settings.queues = std::move(queues);
  settings.strategy = strategy;
  return settings;
}

WorkerOptions member_of(std::string pool = "p", std::uint32_t concurrency = 0) {
  WorkerOptions options;
  options.pool = std::move(pool);
  options.concurrency = concurrency;
  return options;
}

void fill(QuietSegment& s, const Names& queues, int jobs) {
  for (const std::string& queue : queues)
    for (int i = 0; i < jobs; ++i) s.put(2, queue);
}

/// The queue of the job that a new worker of the pool gets and finishes; empty when it gets none.
std::string next(QuietSegment& s, const WorkerOptions& options = member_of()) {
  Worker worker = Worker::attach(s.segment, options).value();
  Job job;
  if (!worker.try_fetch(job)) return {};
  std::string queue(job.queue());
  EXPECT_TRUE(worker.ack(job).ok());
  return queue;
}

Names next(QuietSegment& s, int times) {
  Names queues;
  for (int i = 0; i < times; ++i) queues.push_back(next(s));
  return queues;
}

std::map<std::string, int> shares(const Names& queues) {
  std::map<std::string, int> count;
  for (const std::string& queue : queues) ++count[queue];
  return count;
}

TEST(Pools, FS_T10_FS_003_FS_T19_round_robin_goes_around_and_skips_what_is_empty) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of(kAbc)).value());
  fill(s, kAbc, 6);
  EXPECT_EQ(next(s, 6), (Names{"a", "b", "c", "a", "b", "c"}));
  while (s.queue("b").depth > 0) {
    Worker other = Worker::attach(s.segment, {.queues = {"b"}}).value();
    ASSERT_TRUE(other.try_fetch(s.job).ok());
    ASSERT_TRUE(other.ack(s.job).ok());
  }
  EXPECT_EQ(next(s, 4), (Names{"a", "c", "a", "c"}));
  s.put(2, "b");
  const Names all = next(s, 6);
  EXPECT_EQ(shares(all), (std::map<std::string, int>{{"a", 2}, {"b", 1}, {"c", 2}, {"", 1}}));
}

TEST(Pools, FS_R001_FS_T04_FS_T06_the_pool_decides_whatever_the_worker_asks_for) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"b", "a"}, PoolStrategy::kStrict)).ok());
  fill(s, kAbc, 2);
  WorkerOptions options = member_of();
  options.queues = {"c", "a"};
  options.strategy = QueueStrategy::kWeighted;
  EXPECT_EQ(next(s, options), "b");
  // no longer new
  ASSERT_FALSE(s.admin.set_pool("p", pool_of({"c", "b"}, PoolStrategy::kStrict)).value());
  EXPECT_EQ(next(s, options), "c");  // on the existing backlog, at once
  ASSERT_TRUE(s.admin.set_pool("p", pool_of(kAbc)).ok());
  EXPECT_EQ(next(s, 3), (Names{"a", "b", "c"}));
}

TEST(Pools, FS_T05_without_a_pool_the_worker_s_wishes_count) {
  QuietSegment s;
  fill(s, kAbc, 2);
  WorkerOptions options;
  options.queues = {"c", "a"};
  EXPECT_EQ(next(s, options), "c");
  ASSERT_TRUE(s.admin.set_pool("default", pool_of({"b"})).ok());  // of everybody who names none
  EXPECT_EQ(next(s, options), "b");
}

TEST(Pools, FS_R002_FS_T11_weights_hold_over_all_workers_with_a_bounded_gap) {
  QuietSegment s;
  PoolSettings settings = pool_of(kAbc, PoolStrategy::kWeighted);
  settings.weights = {{"a", 3}, {"b", 2}, {"c", 1}};
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, kAbc, 40);
  const Names got = next(s, 60);
  // each window of six, not only each cycle
  for (std::size_t begin = 0; begin + 6 <= got.size(); ++begin)
    EXPECT_EQ(shares(Names(got.begin() + static_cast<long>(begin),
                           got.begin() + static_cast<long>(begin) + 6)),
              (std::map<std::string, int>{{"a", 3}, {"b", 2}, {"c", 1}}));
  settings.weights = {{"a", 1}};
  settings.queues = {"a", "c"};
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(shares(next(s, 20)), (std::map<std::string, int>{{"a", 10}, {"c", 10}}));
}

TEST(Pools, FS_T12_least_loaded_takes_the_deepest_backlog) {
  QuietSegment s;
  fill(s, {"a"}, 2);
  fill(s, {"b"}, 4);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of(kAbc, PoolStrategy::kLeastLoaded)).ok());
  EXPECT_EQ(next(s, 2), (Names{"b", "b"}));  // 2 2 0
  fill(s, {"c"}, 3);
  EXPECT_EQ(next(s), "c");  // 2 2 2: what came after the pool was made counts as well
  s.put(2, "a");
  EXPECT_EQ(next(s), "a");
  const std::string cancelled = s.put(2, "b");
  JobSpec later = spec_of(2, "b");
  later.scheduled_at_ms = s.now_ms() + kHour;
  for (int i = 0; i < 5; ++i) s.put(later);  // not available
  ASSERT_TRUE(s.producer.cancel(cancelled).ok());
  s.put(2, "c");
  EXPECT_EQ(next(s), "c");
  s.pass(2 * kHour);
  EXPECT_EQ(next(s, 5), (Names{"b", "b", "b", "b", "b"}));
}

TEST(Pools, FS_T12_a_worker_gets_no_more_than_its_concurrency) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"}, PoolStrategy::kLeastLoaded)).ok());
  fill(s, {"a"}, 5);
  Worker worker = Worker::attach(s.segment, member_of("p", 2)).value();
  Job first, second, third;
  ASSERT_TRUE(worker.try_fetch(first).ok());
  ASSERT_TRUE(worker.try_fetch(second).ok());
  EXPECT_EQ(worker.try_fetch(third).code(), Code::kEmpty);
  EXPECT_EQ(worker.fetch(third, std::chrono::milliseconds(1)).code(), Code::kTimeout);
  Worker idle = Worker::attach(s.segment, member_of("p", 2)).value();
  EXPECT_TRUE(idle.try_fetch(third).ok());
  ASSERT_TRUE(idle.ack(third).ok());
  ASSERT_TRUE(worker.ack(first).ok());
  EXPECT_TRUE(worker.try_fetch(first).ok());
  EXPECT_EQ(worker.try_fetch(third).code(), Code::kEmpty);
}

TEST(Pools, FS_R001_FS_T20_a_pool_has_no_more_active_jobs_than_its_concurrency) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a", "b"});
  settings.concurrency = 2;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, {"a", "b"}, 4);
  Worker first = Worker::attach(s.segment, member_of()).value(),
         second = Worker::attach(s.segment, member_of()).value();
  Job one, two, three;
  ASSERT_TRUE(first.try_fetch(one).ok());
  ASSERT_TRUE(second.try_fetch(two).ok());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(first.try_fetch(three).code(), Code::kEmpty);
  EXPECT_EQ(s.observer.pool("p")->active_jobs, 2U);
  EXPECT_EQ(s.observer.pool("p")->utilization(), 1.0);
  ASSERT_TRUE(first.ack(one).ok());
  ASSERT_TRUE(second.try_fetch(one).ok());
  EXPECT_EQ(one.queue(), "a");  // no turn was spent in vain
  ASSERT_TRUE(second.nack(two, failure()).ok());
  ASSERT_TRUE(first.try_fetch(two).ok());
  EXPECT_EQ(two.queue(), "b");
  settings.concurrency = 3;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  ASSERT_TRUE(first.try_fetch(three).ok());
  EXPECT_EQ(first.try_fetch(s.job).code(), Code::kEmpty);
  settings.concurrency = 0;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_TRUE(first.try_fetch(s.job).ok());
}

TEST(Pools, FS_R001_a_concurrency_that_is_set_counts_what_is_at_work) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a"});
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, {"a"}, 4);
  Worker first = Worker::attach(s.segment, member_of()).value(),
         second = Worker::attach(s.segment, member_of()).value();
  Job one, two, three;
  ASSERT_TRUE(first.try_fetch(one).ok() && first.try_fetch(two).ok());
  settings.concurrency = 2;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(second.try_fetch(three).code(), Code::kEmpty);
  ASSERT_TRUE(first.ack(one).ok());
  ASSERT_TRUE(second.try_fetch(three).ok());
  EXPECT_EQ(first.try_fetch(one).code(), Code::kEmpty);
}

TEST(Pools, FS_R001_a_pool_that_is_removed_leaves_no_limit_behind) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a"});
  settings.concurrency = 1;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(s.observer.limit("pool:p")->limit.concurrency, 1U);
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  EXPECT_FALSE(s.observer.limit("pool:p")->limit.concurrency.has_value());
}

TEST(Pools, FS_T07_FS_R006_an_isolated_queue_is_for_its_pool_alone) {
  QuietSegment s;
  PoolSettings settings = pool_of({"gpu"});
  settings.isolated = true;
  s.put(2, "gpu");
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  ASSERT_TRUE(s.admin.set_pool("others", pool_of({"gpu", "a"})).ok());
  s.put(2, "gpu");
  EXPECT_EQ(next(s, {.queues = {"gpu"}}), "");  // without a pool
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(s, member_of("others")), "");
  EXPECT_EQ(next(s), "gpu");
  // whose would it be?
  EXPECT_EQ(s.admin.set_pool("third", settings).error().code, Code::kInvalid);
  settings.isolated = false;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_EQ(next(s, member_of("others")), "gpu");
  EXPECT_EQ(next(s, member_of("others")), "");
}

TEST(Pools, FS_T08_without_isolation_every_pool_of_a_queue_gets_its_jobs) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  ASSERT_TRUE(s.admin.set_pool("q", pool_of({"a"})).ok());
  fill(s, {"a"}, 3);
  EXPECT_EQ(next(s, member_of("p")), "a");
  EXPECT_EQ(next(s, member_of("q")), "a");
  EXPECT_EQ(next(s, {.queues = {"a"}}), "a");
}

TEST(Pools, FS_T09_a_worker_names_one_pool_that_exists) {
  QuietSegment s;
  EXPECT_EQ(Worker::attach(s.segment, member_of("nowhere")).error().code, Code::kNotFound);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  Worker worker = Worker::attach(s.segment, member_of("p", 4)).value();
  EXPECT_EQ(s.observer.pool("p")->active_workers, 1U);
  EXPECT_EQ(s.observer.pool("p")->declared_concurrency, 4U);
  s.put(2, "a");
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  EXPECT_EQ(s.observer.pool("p")->active_jobs, 1U);
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  EXPECT_EQ(worker.try_fetch(s.job).code(), Code::kNotFound);
  EXPECT_EQ(s.admin.remove_pool("p").code(), Code::kNotFound);
  EXPECT_EQ(s.observer.pool("p").error().code, Code::kNotFound);
}

PoolSettings preventing(PoolStrategy strategy, double ratio) {
  PoolSettings settings = pool_of({"critical", "analytics", "low"}, strategy);
  settings.starvation_prevention = {true, 30'000, ratio};
  return settings;
}

TEST(Pools, FS_R003_FS_T13_FS_T15_FS_G3_every_queue_has_its_least_share_of_each_window) {
  QuietSegment s(few_slots(4096));
  for (const PoolStrategy strategy : {PoolStrategy::kStrict, PoolStrategy::kWeighted}) {
    PoolSettings settings = preventing(strategy, 0.10);
    if (strategy == PoolStrategy::kWeighted) settings.weights = {{"critical", 100}};
    ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
    fill(s, settings.queues, 200);
    const Names got = next(s, 120);
    for (const std::size_t window : {10U, 25U, 60U})
      for (std::size_t begin = 0; begin + window <= got.size(); ++begin) {
        std::map<std::string, int> in =
            shares(Names(got.begin() + static_cast<long>(begin),
                         got.begin() + static_cast<long>(begin + window)));
        for (const std::string& queue : settings.queues)
          ASSERT_GE(in[queue], static_cast<int>(window / 10))
              << queue << " from " << begin << " of " << window;
      }
    EXPECT_GT(shares(got)["critical"], 90);
    s.drain();
    while (!next(s, {.queues = settings.queues}).empty()) {}
  }
}

TEST(Pools, FS_T13_a_queue_is_served_once_in_each_interval_however_few_the_dispatches) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", preventing(PoolStrategy::kStrict, 0.05)).ok());
  fill(s, {"critical", "low"}, 10);
  EXPECT_EQ(next(s), "critical");
  s.move_clock(29'000);
  EXPECT_EQ(next(s), "critical");
  s.move_clock(2'000);
  EXPECT_EQ(next(s), "low");
  EXPECT_EQ(next(s), "critical");
  s.move_clock(31'000);
  EXPECT_EQ(shares(next(s, 3)), (std::map<std::string, int>{{"critical", 2}, {"low", 1}}));
}

TEST(Pools, FS_T14_off_by_default_and_then_strict_is_absolute) {
  QuietSegment s;
  EXPECT_FALSE(parse_pool_settings(R"({"queues":["a"]})")->starvation_prevention.enabled);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"critical", "low"}, PoolStrategy::kStrict)).ok());
  fill(s, {"critical", "low"}, 50);
  s.move_clock(kHour);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(next(s), "critical");
  EXPECT_EQ(next(s), "low");
}

TEST(Pools, FS_X1_dispatches_are_counted_by_queue_and_pool) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a", "b"})).ok());
  fill(s, {"a", "b"}, 3);
  next(s, 5);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"b"})).ok());  // a counter never falls
  next(s);
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
  EXPECT_EQ(s.observer.pool("p")->dispatched_total, (Counts{{"a", 3}, {"b", 3}}));
}

TEST(Pools, FS_T20_a_queue_that_was_quiet_is_found_again) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of(kAbc)).ok());
  Worker worker = Worker::attach(s.segment, member_of()).value();
  for (int round = 0; round < 3; ++round) {
    // they become quiet
    for (int i = 0; i < 40; ++i) EXPECT_EQ(worker.try_fetch(s.job).code(), Code::kEmpty);
    fill(s, {"b"}, 1);
    EXPECT_TRUE(worker.try_fetch(s.job).ok());
    ASSERT_TRUE(worker.requeue(s.job).ok());
    EXPECT_TRUE(worker.try_fetch(s.job).ok());
    ASSERT_TRUE(worker.ack(s.job).ok());
  }
  std::vector<JobSpec> batch(3, spec_of(2, "c"));
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(worker.try_fetch(s.job).ok());
  ASSERT_TRUE(s.producer.enqueue_batch(batch).ok());
  EXPECT_TRUE(worker.try_fetch(s.job).ok());
}

TEST(Pools, FS_T21_what_a_pool_refuses) {
  const auto refused = [](std::string_view json) {
    const auto read = parse_pool_settings(json);
    return read ? std::string() : read.error().subject;
  };
  EXPECT_EQ(refused(R"({"strategy":"strict"})"), "queues");
  EXPECT_EQ(refused(R"({"queues":["a"],"strategy":"fastest"})"), "strategy");
  EXPECT_EQ(refused(R"({"queues":["a"],"weights":{"a":0}})"), "weights.a");
  EXPECT_EQ(refused(R"({"queues":["a"],"weights":{"a":-2}})"), "weights.a");
  EXPECT_EQ(refused(R"({"queues":["a"],"concurrency":"many"})"), "concurrency");
  EXPECT_EQ(refused(R"({"queues":["a"],"colour":1})"), "colour");
  EXPECT_EQ(refused(R"({"queues":["a"],"starvation_prevention":{"rotation_interval":"soon"}})"),
            "starvation_prevention.rotation_interval");
  EXPECT_EQ(refused("[]"), "pool");
  QuietSegment s;
  const auto subject = [&](PoolSettings settings) {
    const auto set = s.admin.set_pool("p", settings);
    return set ? std::string() : set.error().subject;
  };
  EXPECT_EQ(subject(pool_of({})), "queues");
  EXPECT_EQ(subject(pool_of({"a", "a"})), "queues");
  EXPECT_EQ(subject(pool_of({"Not a name"})), "queues");
  PoolSettings settings = pool_of({"a", "b", "c"});
  settings.weights = {{"d", 1}};
  EXPECT_EQ(subject(settings), "weights");
  settings.weights = {{"a", 1000}, {"b", 1}};
  settings.strategy = PoolStrategy::kWeighted;
  EXPECT_EQ(subject(settings), "weights");
  // FS_T14
  EXPECT_EQ(subject(preventing(PoolStrategy::kStrict, 0.34)),
            "starvation_prevention.min_dispatch_ratio");
  EXPECT_EQ(subject(preventing(PoolStrategy::kStrict, 1.5)),
            "starvation_prevention.min_dispatch_ratio");
  EXPECT_EQ(s.admin.set_pool("No Name", pool_of({"a"})).error().subject, "name");
}

TEST(Pools, FS_T21_FS_G2_FS_G3_what_a_pool_is_told_is_what_it_shows) {
  QuietSegment s;
  const auto read = parse_pool_settings(
      R"({"pool":{"name":"gpu","queues":["images","video"],"concurrency":4,"strategy":"weighted",
      "weights":{"images":4,"video":2},"isolated":true,"starvation_prevention":
      {"enabled":true,"rotation_interval":"PT45S","min_dispatch_ratio":0.1}}})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(s.admin.set_pool("gpu", read.value()).value());
  EXPECT_EQ(
      print_pool(s.observer.pool("gpu").value()),
      R"({"name":"gpu","queues":["images","video"],"concurrency":4,"strategy":"weighted","weights":{"images":2,)"
      R"("video":1},"isolated":true,"starvation_prevention":{"enabled":true,"rotation_interval":"PT45S",)"
      R"("min_dispatch_ratio":0.1},"active_workers":0,"active_jobs":0,"waiting_jobs":0,"utilization":0,)"
      R"("dispatched":{}})");
  const auto plain = parse_pool_settings(R"({"queues":{"a":{"weight":3},"b":1}})");
  EXPECT_EQ(plain->queues, (Names{"a", "b"}));
  EXPECT_EQ(plain->strategy, PoolStrategy::kRoundRobin);
  EXPECT_EQ(plain->starvation_prevention.rotation_interval_ms, 30'000U);
  EXPECT_EQ(plain->starvation_prevention.min_dispatch_ratio, 0.05);
}

/// The least share that no lane asked for is no reason to refuse many queues.
TEST(Pools, FS_T10_FS_T14_a_pool_of_128_queues_goes_around_them_all) {
  SegmentOptions options = few_slots();
  options.max_queues = 130;
  QuietSegment s(options);
  Names queues;
  for (unsigned i = 0; i < engine::kPoolQueues; ++i) queues.push_back("q" + std::to_string(i));
  PoolSettings settings = pool_of(queues);
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, queues, 2);
  EXPECT_EQ(next(s, 128), queues);
  settings.starvation_prevention.enabled = true;
  EXPECT_EQ(s.admin.set_pool("p", settings).error().subject,
            "starvation_prevention.min_dispatch_ratio");
  settings.queues.emplace_back("one-more");
  settings.starvation_prevention = {};
  EXPECT_EQ(s.admin.set_pool("p", settings).error().subject, "queues");
}

/// A worker that fetches once and goes finds queues busy that are empty. One of them is overdue for
/// ever.
TEST(Pools, FS_T15_who_is_overdue_and_empty_takes_nobody_s_share) {
  engine::PoolPolicy policy;
  policy.strategy = engine::PoolStrategy::kStrict;
  policy.queues = 3;
  policy.prevents = true;
  for (policy.round = 3; policy.round <= 24; ++policy.round) {
    engine::PoolTurn turn(0, 0, 0);
    unsigned passed = 0;  // dispatches since the last queue had one
    for (int dispatch = 0; dispatch < 500; ++dispatch) {
      bool tried = false;  // the empty one
      for (;;) {
        const auto choice = policy.choose(
            turn, [&](unsigned place) { return place != 1 || !tried; },
            [](unsigned place) { return place == 1 ? 1ULL : 0ULL; }, [](unsigned) { return 1ULL; });
        turn = engine::PoolTurn(0, choice.done, choice.next);
        if (choice.place == 1) {
          ASSERT_FALSE(tried);
          tried = true;
          continue;
        }
        passed = choice.place == 2 ? 0 : passed + 1;
        break;
      }
      ASSERT_LT(passed, policy.round) << "dispatch " << dispatch;
    }
  }
}

TEST(Pools, FS_T14_without_a_least_share_each_interval_still_serves_everybody) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", preventing(PoolStrategy::kStrict, 0)).ok());
  fill(s, {"critical", "low"}, 30);
  s.move_clock(1000);
  EXPECT_EQ(shares(next(s, 25)), (std::map<std::string, int>{{"critical", 25}}));
  s.move_clock(31'000);
  EXPECT_EQ(next(s, 2), (Names{"low", "critical"}));
}

TEST(Pools, FS_T09_a_worker_of_a_removed_pool_is_nobody_s) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  Worker worker = Worker::attach(s.segment, member_of()).value();
  fill(s, {"a", "b"}, 2);
  ASSERT_TRUE(worker.try_fetch(s.job).ok());
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  for (unsigned i = 0; i + 1 < engine::kPools; ++i)
    ASSERT_TRUE(s.admin.set_pool("q" + std::to_string(i), pool_of({"b"})).ok());
  for (const WorkerPoolInfo& pool : s.observer.pools()) {
    EXPECT_EQ(pool.active_workers, 0U) << pool.name;
    EXPECT_EQ(pool.active_jobs, 0U) << pool.name;
  }
  // Its place is taken only once it has gone.
  EXPECT_EQ(s.admin.set_pool("last", pool_of({"b"})).error().code, Code::kSegmentFull);
  Job other;
  EXPECT_EQ(worker.try_fetch(other).code(), Code::kNotFound);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"b"})).ok());  // its own, made again
  ASSERT_TRUE(worker.try_fetch(other).ok());
  EXPECT_EQ(other.queue(), "b");
  ASSERT_TRUE(worker.ack(other).ok());
  ASSERT_TRUE(worker.ack(s.job).ok());
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  { const Worker gone = std::move(worker); }
  EXPECT_TRUE(s.admin.set_pool("last", pool_of({"b"})).ok());
}

TEST(Pools, FS_H1_a_descriptor_of_events_is_no_worker_and_follows_the_pool) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  Worker worker = Worker::attach(s.segment, member_of()).value();
  pollfd readable{worker.event_fd().value(), POLLIN, 0};
  EXPECT_EQ(s.observer.pool("p")->active_workers, 1U);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"b"})).ok());
  s.put(2, "b");
  EXPECT_EQ(::poll(&readable, 1, 30'000), 1);
}

TEST(Pools, FS_T12_a_deep_queue_that_gives_nothing_holds_nobody_up) {
  QuietSegment s;
  fill(s, {"a"}, 9);
  fill(s, {"b"}, 3);
  fill(s, {"c"}, 1);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of(kAbc, PoolStrategy::kLeastLoaded)).ok());
  QueueSettings paused;
  paused.paused = true;
  ASSERT_TRUE(s.admin.set_queue("a", paused).ok());
  EXPECT_EQ(next(s, 5), (Names{"b", "b", "b", "c", ""}));
}

TEST(Pools, FS_T12_a_job_that_expired_is_no_backlog) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a", "b"}, PoolStrategy::kLeastLoaded)).ok());
  JobSpec short_lived = spec_of(2, "a");
  short_lived.expires_at_ms = s.now_ms() + kMinute;
  for (int i = 0; i < 5; ++i) s.put(short_lived);
  s.move_clock(kHour);  // no lane has ticked: the fetch ends them
  EXPECT_EQ(next(s), "");
  fill(s, {"a"}, 1);
  fill(s, {"b"}, 3);
  EXPECT_EQ(next(s), "b");
}

TEST(Pools, FS_T12_what_was_imported_is_backlog) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a", "b"}, PoolStrategy::kLeastLoaded)).ok());
  Import import = Import::attach(s.segment).value();
  ASSERT_TRUE(import.take(R"({"ojs_shm_export":1,"convention":"ojs"})").ok());
  for (const char* id :
       {"01961234-5678-7abc-8def-0123456789a1", "01961234-5678-7abc-8def-0123456789a2"})
    ASSERT_TRUE(
        import
            .take(
                R"({"job":{"id":")" + std::string(id) +
                R"(","type":"t","state":"active","queue":"b","priority":1,"attempt":1,"args":[]}})")
            .ok());
  fill(s, {"a"}, 1);
  EXPECT_EQ(next(s), "b");
}

TEST(Pools, FS_T04_a_queue_that_is_empty_is_left_alone_after_one_look) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", pool_of(kAbc)).ok());
  const auto is_quiet = [&](std::string_view name) {
    const std::uint32_t q = s.store().find_queue(name);
    return engine::BusyWord::of(s.store().busy_word(q).load(), q) == engine::BusyWord::kQuiet;
  };
  fill(s, kAbc, 1);
  EXPECT_EQ(shares(next(s, 4)),
            (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}, {"", 1}}));
  for (const std::string& queue : kAbc) EXPECT_TRUE(is_quiet(queue)) << queue;
  fill(s, {"b"}, 1);
  EXPECT_FALSE(is_quiet("b"));
  EXPECT_EQ(next(s), "b");
}

TEST(Pools, all_pools_may_be_taken_and_given_back) {
  QuietSegment s;
  for (unsigned i = 0; i < engine::kPools; ++i)
    ASSERT_TRUE(s.admin.set_pool("p" + std::to_string(i), pool_of({"a"})).value());
  EXPECT_EQ(s.admin.set_pool("one-more", pool_of({"a"})).error().code, Code::kSegmentFull);
  ASSERT_TRUE(s.admin.remove_pool("p7").ok());
  EXPECT_TRUE(s.admin.set_pool("one-more", pool_of({"a"})).value());
  EXPECT_EQ(s.observer.pools().size(), engine::kPools);
}

}  // namespace
}  // namespace ojs_shm::test
