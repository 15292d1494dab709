// SPDX-License-Identifier: Apache-2.0
// Which queue a fetch of a pool goes to.

#include <ojs_shm/proxy.hpp>
#include <ojs_shm/transfer.hpp>

#include "engine/limits/limits.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/pools/pools.hpp"
#include "tests/unit/engine/pools/pool_members.hpp"

namespace ojs_shm::test {
namespace {

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

TEST(Pools, that_are_removed_have_no_workers_behind_a_fetch_for_clients) {
  QuietSegment s;
  Proxy proxy = Proxy::attach(s.segment).value();
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"a"})).ok());
  FetchRequest request;
  request.pool = "p";
  EXPECT_TRUE(proxy.fetch(request)->empty());
  const std::uint32_t place = engine::find_pool(s.store(), "p");
  EXPECT_EQ(engine::pool_crew(s.store(), place).workers, 1U);
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  request.pool.clear();
  request.queues = {"a"};
  EXPECT_TRUE(proxy.fetch(request)->empty());
  EXPECT_EQ(engine::pool_crew(s.store(), place).workers, 0U);
  ASSERT_TRUE(s.admin.set_pool("q", pool_of({"a"})).ok());
  EXPECT_EQ(engine::find_pool(s.store(), "q"), place);
}

TEST(Pools, whose_new_settings_are_refused_keep_their_limit) {
  QuietSegment s;
  PoolSettings isolated = pool_of({"a"});
  isolated.isolated = true;
  ASSERT_TRUE(s.admin.set_pool("other", isolated).ok());
  PoolSettings settings = pool_of({"b"});
  settings.concurrency = 4;
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  EXPECT_FALSE(s.admin.set_pool("p", isolated).ok());
  const engine::LimitKey& key = s.store().limit_keys[engine::find_limit(s.store(), "pool:p")];
  EXPECT_EQ(engine::settings_of(key).concurrency, 4U);
  isolated.concurrency = 1;
  EXPECT_FALSE(s.admin.set_pool("third", isolated).ok());
  EXPECT_EQ(engine::find_limit(s.store(), "pool:third"), engine::kNoIndex);
}

TEST(Pools, FS_T11_a_fetch_for_a_tenant_that_has_no_job_spends_no_turn) {
  QuietSegment s;
  PoolSettings settings = pool_of({"a", "b"}, PoolStrategy::kWeighted);
  settings.weights = {{"a", 5}, {"b", 1}};
  ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
  fill(s, {"a", "b"}, 20);
  Proxy proxy = Proxy::attach(s.segment).value();
  FetchRequest unknown_tenant;
  unknown_tenant.pool = "p";
  unknown_tenant.tenant = "nobody";
  Names got;
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(proxy.fetch(unknown_tenant)->empty());
    got.push_back(next(s));
  }
  EXPECT_EQ(shares(got), (std::map<std::string, int>{{"a", 10}, {"b", 2}}));
}

}  // namespace
}  // namespace ojs_shm::test
