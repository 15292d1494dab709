// SPDX-License-Identifier: Apache-2.0
// Registered workers: their ids, what they tell, and for how long they stand in the table.

#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/workers/registered.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Registry, one_id_is_one_worker) {
  const WorkerKey key = add("w1");
  EXPECT_EQ(add("w1"), key);
  EXPECT_NE(add("w2"), key);
  EXPECT_EQ(ids(), (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(engine::find_worker(s.store(), "w1"), key);
  EXPECT_TRUE(engine::find_worker(s.store(), "w3").none());
}

TEST_F(Registry, FS_T09_a_worker_has_one_pool) {
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"default"}}).ok());
  ASSERT_TRUE(s.admin.set_pool("q", {.queues = {"default"}}).ok());
  report({.id = "w", .pool = "p"});
  const auto refused = proxy.report({.id = "w", .pool = "q"});
  EXPECT_EQ(refused.code(), Code::kInUse);
  EXPECT_EQ(refused.error().subject, "pool");
  EXPECT_EQ(report({.id = "w"}).pool, "p");
  ASSERT_TRUE(s.admin.remove_worker("w").ok());
  EXPECT_EQ(report({.id = "w", .pool = "q"}).pool, "q")
      << "the next worker of that id chooses anew";
}

TEST_F(Registry, what_is_told_stays_until_it_is_told_otherwise) {
  report({.id = "w",
          .queues = std::vector<std::string>{"a", "b"},
          .concurrency = 4,
          .hostname = "h",
          .labels = R"({"zone": "x"})",
          .pid = 7});
  RegisteredWorker known = report({.id = "w", .active_jobs = 3});
  EXPECT_EQ(known.queues, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(known.concurrency, 4U);
  EXPECT_EQ(known.active_jobs, 3U);
  EXPECT_EQ(known.labels, R"({"zone":"x"})");
  EXPECT_EQ(known.pid, 7U);
  EXPECT_EQ(report({.id = "w", .state = "drain"}).state(), "drain");
  EXPECT_EQ(report({.id = "w"}).state(), "drain");
  EXPECT_EQ(report({.id = "w", .registers = true}).state(), "running");
}

TEST_F(Registry, what_does_not_fit_is_refused_by_name) {
  EXPECT_EQ(proxy.report({.id = ""}).error().subject, "worker_id");
  EXPECT_EQ(proxy.report({.id = std::string(129, 'w')}).error().subject, "worker_id");
  EXPECT_EQ(report({.id = std::string(128, 'w')}).id.size(), 128U);
  EXPECT_EQ(proxy.report({.id = "w", .labels = "{"}).error().subject, "labels");
  std::string labels(800, 'x');
  labels.front() = labels.back() = '"';
  const auto large = proxy.report({.id = "w", .labels = labels});
  EXPECT_EQ(large.code(), Code::kInvalid);
  EXPECT_EQ(large.error().bound, engine::kLongestWorkerDetails);
  EXPECT_EQ(s.observer.registered_worker("w").code(), Code::kNotFound) << "nothing of it was kept";
}

TEST_F(Registry, an_ended_worker_is_forgotten_after_ten_minutes) {
  report({.id = "w"});
  s.pass(kMinute);
  EXPECT_EQ(s.observer.registered_workers().size(), 1U);
  s.pass(10 * kMinute);
  EXPECT_TRUE(s.observer.registered_workers().empty());
}

TEST_F(Registry, removal_leaves_its_jobs_to_their_lease) {
  const std::string id = s.put();
  report({.id = "w"});
  ASSERT_EQ(fetch_as("w"), id);
  ASSERT_TRUE(s.admin.remove_worker("w").ok());
  EXPECT_EQ(s.admin.remove_worker("w").code(), Code::kNotFound);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kActive);
  EXPECT_TRUE(proxy.ack(id, 0, {}).ok());
}

TEST_F(Registry, a_full_table_gives_the_place_of_the_one_that_ended_first) {
  const std::uint32_t places = s.store().workers.size();
  for (std::uint32_t i = 0; i < places; ++i) {
    s.move_clock(1);
    report({.id = "w" + std::to_string(i)});
  }
  EXPECT_EQ(proxy.report({.id = "more"}).code(), Code::kSegmentFull);
  const std::string id = s.put();
  EXPECT_EQ(fetch_as("more"), id) << "it works all the same";
  EXPECT_EQ(s.get(id).worker_id, "");
  s.move_clock(kMinute);
  for (std::uint32_t i = 2; i < places; ++i) report({.id = "w" + std::to_string(i)});
  s.tick();
  report({.id = "more"});
  EXPECT_EQ(s.observer.registered_worker("w0").code(), Code::kNotFound);
  EXPECT_EQ(look("w1").state(), "stale");
}

TEST_F(Registry, directives_hold_back_fetches_and_end_with_a_new_registration) {
  const std::string id = s.put();
  report({.id = "w"});
  ASSERT_TRUE(s.admin.direct_worker("w", WorkerDirective::kQuiet).ok());
  EXPECT_EQ(report({.id = "w"}).directive, WorkerDirective::kQuiet);
  EXPECT_EQ(fetch_as("w"), "");
  EXPECT_EQ(fetch_as("other"), id);
  report({.id = "w", .registers = true});
  EXPECT_EQ(look("w").directive, WorkerDirective::kRunning);
  EXPECT_EQ(s.admin.direct_worker("nobody", WorkerDirective::kQuiet).code(), Code::kNotFound);
}

TEST_F(Registry, FS_T12_registered_workers_count_in_their_pool) {
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"default"}}).ok());
  for (int i = 0; i < 3; ++i) s.put();
  report({.id = "w", .pool = "p", .concurrency = 4});
  report({.id = "v", .pool = "p", .concurrency = 2});
  ASSERT_EQ(proxy.fetch({.pool = "p", .count = 3, .worker = "w"}).value().size(), 3U);
  const WorkerPoolInfo pool = s.observer.pool("p").value();
  EXPECT_EQ(pool.active_workers, 2U);
  EXPECT_EQ(pool.declared_concurrency, 6U);
  EXPECT_EQ(pool.active_jobs, 3U);
  EXPECT_DOUBLE_EQ(pool.utilization(), 0.5);
  EXPECT_EQ(look("w").active_jobs, 3U);
  s.pass(kMinute);
  EXPECT_EQ(s.observer.pool("p").value().active_workers, 0U);
}

TEST_F(Registry, FS_T12_in_a_least_loaded_pool_a_full_worker_gets_nothing) {
  ASSERT_TRUE(
      s.admin.set_pool("p", {.queues = {"default"}, .strategy = PoolStrategy::kLeastLoaded}).ok());
  for (int i = 0; i < 4; ++i) s.put();
  report({.id = "w", .pool = "p", .concurrency = 2});
  const FetchRequest request{.pool = "p", .count = 3, .worker = "w"};
  const auto jobs = proxy.fetch(request).value();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_TRUE(proxy.fetch(request).value().empty());
  ASSERT_TRUE(proxy.ack(jobs.front().id, 0).ok());
  EXPECT_EQ(proxy.fetch(request).value().size(), 1U);
}

TEST_F(Registry, FS_E2_a_pool_of_served_workers_is_overloaded_when_all_are_full) {
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"default"}}).ok());
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  const auto overloads = [&reader] {
    int count = 0;
    for (Event event; reader.next(event);) count += event.type == "scheduling.pool_overloaded";
    return count;
  };
  s.put(), s.put();
  report({.id = "w", .pool = "p", .concurrency = 1});
  report({.id = "v", .pool = "p", .concurrency = 1});
  ASSERT_EQ(proxy.fetch({.pool = "p", .worker = "w"}).value().size(), 1U);
  s.pass(2 * kSecond);
  EXPECT_EQ(overloads(), 0);
  ASSERT_EQ(proxy.fetch({.pool = "p", .worker = "v"}).value().size(), 1U);
  s.pass(2 * kSecond);
  EXPECT_EQ(overloads(), 1);
}

/// A record whose writer died in the middle, as its repair finds it.
TEST_F(Registry, what_a_dead_writer_left_is_freed_or_emptied) {
  report({.id = "w", .labels = R"({"a":1})"});
  auto doomed = internal::Handle::make(s.segment).value();
  const std::uint32_t lane = doomed->lane();
  const WorkerKey key = engine::find_worker(s.store(), "w");
  shm::Word& changing = s.store().worker_marks[key.place()].control;
  changing.store(
      engine::WorkerControl(changing.load()).to(engine::WorkerPhase::kChanging, lane + 1).word,
      shm::Point::kNone);
  const std::uint32_t free = key.place() + 1;
  shm::Word& taking = s.store().worker_marks[free].control;
  taking.store(engine::WorkerControl(taking.load()).taken(5, lane + 1).word, shm::Point::kNone);
  EXPECT_EQ(proxy.report({.id = "w", .labels = "1"}).code(), Code::kTimeout);
  EXPECT_TRUE(engine::Registry(s.actor()).beat(key)) << "signs of life need no turn";
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  EXPECT_EQ(engine::WorkerControl(taking.load()).phase(), engine::WorkerPhase::kFree);
  EXPECT_EQ(look("w").labels, "") << "told again with its next beat";
  EXPECT_EQ(report({.id = "w", .labels = "1"}).labels, "1");
}

/// While one is looked for it leaves, and others come in its place.
TEST_F(Registry, of_one_id_is_never_found_as_another) {
  bool acted = true;
  for (std::uint64_t at = 0; acted; ++at) {
    SCOPED_TRACE("at access " + std::to_string(at));
    acted = false;
    const WorkerKey key = add("looked-for");
    std::uint64_t count = 0;
    WorkerKey found;
    std::vector<WorkerKey> later;
    {
      const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
        if (acted || count++ != at) return;
        acted = true;
        EXPECT_TRUE(engine::Registry(s.actor()).leave(key));
        for (int i = 0; i < 12; ++i) later.push_back(add("later-" + std::to_string(i)));
      });
      found = engine::find_worker(s.store(), "looked-for");
    }
    EXPECT_TRUE(found == key || found.none());
    for (const WorkerKey& other : later) engine::Registry(s.actor()).leave(other);
    if (!acted) engine::Registry(s.actor()).leave(key);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
