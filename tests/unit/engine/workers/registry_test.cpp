// SPDX-License-Identifier: Apache-2.0
// Registered workers: who is one, what becomes of the silent, what a death leaves. The clock stands, and
// each test ends with an audit.
#include "engine/workers/registry.hpp"

#include <algorithm>

#include <ojs_shm/proxy.hpp>

#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope_event.hpp"

namespace ojs_shm::test {
namespace {

using engine::WorkerKey;

class Registry : public testing::Test {
 protected:
  Registry() : proxy(Proxy::attach(s.segment).value()) { s.stop_clock(); }

  WorkerKey add(std::string_view id, engine::WorkerReport report = {.pledges = true}) {
    report.id = id;
    WorkerKey key;
    EXPECT_EQ(engine::Registry(s.actor()).report(report, key), engine::Outcome::kOk) << id;
    return key;
  }
  RegisteredWorker look(std::string_view id) {
    const auto worker = s.observer.registered_worker(id);
    EXPECT_TRUE(worker.ok()) << id;
    return worker.ok() ? worker.value() : RegisteredWorker{};
  }
  std::vector<std::string> ids() {
    std::vector<std::string> ids;
    for (const RegisteredWorker& worker : s.observer.registered_workers())
      if (!worker.ended) ids.push_back(worker.id);
    return ids;
  }
  std::string fetch_as(const std::string& worker) {
    const auto jobs = proxy.fetch({.worker = worker});
    EXPECT_TRUE(jobs.ok());
    return jobs.ok() && !jobs->empty() ? jobs->front().id : std::string();
  }
  RegisteredWorker report(const WorkerReport& report) {
    const auto known = proxy.report(report);
    EXPECT_TRUE(known.ok()) << (known.ok() ? "" : known.error().message);
    return known.ok() ? known.value() : RegisteredWorker{};
  }

  QuietSegment s;
  Proxy proxy;
};

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
  const auto large = proxy.report({.id = "w", .labels = '"' + std::string(800, 'x') + '"'});
  EXPECT_EQ(large.code(), Code::kInvalid);
  EXPECT_EQ(large.error().bound, engine::kLongestWorkerDetails);
  EXPECT_EQ(s.observer.registered_worker("w").code(), Code::kNotFound) << "nothing of it was kept";
}

TEST_F(Registry, silence_returns_its_jobs_at_once_and_counts_the_attempt) {
  const std::string id = s.put(), other = s.put();
  report({.id = "w"}), report({.id = "v"});
  ASSERT_EQ(fetch_as("w"), id);
  ASSERT_EQ(fetch_as("v"), other);
  EXPECT_EQ(s.get(id).worker_id, "w");
  s.pass(20 * kSecond);
  report({.id = "v"});
  s.pass(10 * kSecond - 1);
  EXPECT_EQ(s.state_of(id), State::kActive) << "not before 30 s";
  s.move_clock(1);
  const auto lost = s.tick().lost_workers;
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost.front().id, "w");
  EXPECT_EQ(lost.front().jobs, 1U);
  const JobInfo job = s.get(id);
  EXPECT_EQ(job.state, State::kAvailable);
  EXPECT_EQ(job.attempt, 1U) << "counted";
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors.front().code, "worker_death");
  EXPECT_EQ(s.state_of(other), State::kActive) << "the other one gave a sign";
  EXPECT_EQ(look("w").state(), "stale");
  EXPECT_EQ(look("w").end(), "silent");
  EXPECT_EQ(look("w").returned_jobs, 1U);
  EXPECT_EQ(proxy.ack(id, 0, {}).code(), Code::kWrongState) << "the silent one has lost it";
  ASSERT_EQ(fetch_as("v"), id);
  EXPECT_EQ(s.get(id).attempt, 2U);
}

TEST_F(Registry, a_longer_silence_may_be_announced) {
  report({.id = "w", .silence_ms = 90'000});
  s.pass(kMinute);
  EXPECT_EQ(look("w").state(), "running");
  report({.id = "w", .silence_ms = 0});
  s.pass(kMinute);
  EXPECT_EQ(look("w").state(), "stale");
}

TEST_F(Registry, an_exhausted_job_of_a_silent_worker_ends) {
  JobSpec once = spec_of();
  once.retry.max_attempts = 1;
  const std::string id = s.put(once);
  report({.id = "w"});
  ASSERT_EQ(fetch_as("w"), id);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
}

TEST_F(Registry, a_worker_that_only_fetches_keeps_its_jobs_for_their_lease) {
  const std::string id = s.put();
  ASSERT_EQ(fetch_as("w"), id);
  s.pass(kMinute);
  EXPECT_EQ(s.state_of(id), State::kActive) << "it never promised signs of life";
  EXPECT_EQ(look("w").state(), "stale");
  EXPECT_EQ(s.get(id).worker_id, "w");
}

TEST_F(Registry, a_worker_that_comes_back_is_another_one) {
  const std::string first = s.put();
  report({.id = "w"});
  ASSERT_EQ(fetch_as("w"), first);
  const WorkerKey before = engine::find_worker(s.store(), "w");
  s.pass(kMinute);
  EXPECT_FALSE(engine::Registry(s.actor()).beat(before)) << "a late sign of the one that was ended";
  report({.id = "w"});
  EXPECT_NE(engine::find_worker(s.store(), "w"), before);
  EXPECT_EQ(ids(), std::vector<std::string>{"w"});
  EXPECT_EQ(s.observer.registered_workers().size(), 1U) << "its place is used again";
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

TEST_F(Registry, a_native_worker_obeys) {
  s.put(), s.put();
  Worker native = Worker::attach(s.segment, {.id = "n", .labels = R"({"a":1})"}).value();
  EXPECT_TRUE(look("n").native);
  EXPECT_EQ(look("n").labels, R"({"a":1})");
  Job job;
  ASSERT_TRUE(native.try_fetch(job).ok());
  EXPECT_EQ(s.get(job.id()).worker_id, "n");
  ASSERT_TRUE(s.admin.direct_worker("n", WorkerDirective::kQuiet).ok());
  EXPECT_EQ(native.directive(), WorkerDirective::kQuiet);
  EXPECT_EQ(native.try_fetch(s.job).code(), Code::kEmpty);
  EXPECT_EQ(native.fetch(s.job, std::chrono::milliseconds(5)).code(), Code::kTimeout);
  ASSERT_TRUE(s.admin.direct_worker("n", WorkerDirective::kRunning).ok());
  EXPECT_TRUE(native.try_fetch(s.job).ok());
  ASSERT_TRUE(s.admin.direct_worker("n", WorkerDirective::kTerminate).ok());
  EXPECT_EQ(native.fetch(s.job, std::chrono::seconds(30)).code(), Code::kClosed);
  EXPECT_TRUE(native.ack(job).ok()) << "what it has it may end";
}

TEST_F(Registry, a_native_worker_leaves_with_its_handle) {
  auto native = std::make_unique<Worker>(Worker::attach(s.segment, {.id = "n"}).value());
  auto second = std::make_unique<Worker>(Worker::attach(s.segment, {.id = "n"}).value());
  second.reset();
  EXPECT_EQ(ids(), std::vector<std::string>{"n"}) << "it was made by the other handle";
  native.reset();
  EXPECT_TRUE(s.observer.registered_workers().empty());
}

TEST_F(Registry, a_native_worker_that_is_silent_loses_its_job_and_registers_anew) {
  const std::string id = s.put();
  Worker native = Worker::attach(s.segment, {.id = "n"}).value();
  Job job;
  ASSERT_TRUE(native.try_fetch(job).ok());
  s.pass(20 * kSecond);
  native.beat();
  s.pass(20 * kSecond);
  EXPECT_EQ(s.state_of(id), State::kActive);
  s.pass(20 * kSecond);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_TRUE(job.cancel_requested());
  EXPECT_EQ(native.ack(job).code(), Code::kLost);
  ASSERT_TRUE(native.try_fetch(job).ok());
  EXPECT_EQ(ids(), std::vector<std::string>{"n"});
  EXPECT_EQ(s.get(id).worker_id, "n");
  EXPECT_TRUE(native.ack(job).ok());
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

TEST_F(Registry, the_end_is_told) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  const std::string id = "a-worker-with-a-name-of-more-than-thirty-two-bytes";
  report({.id = id});
  s.put();
  ASSERT_NE(fetch_as(id), "");
  s.pass(kMinute);
  std::vector<Event> lost;
  for (Event event; reader.next(event);)
    if (event.type == "worker.lost") lost.push_back(event);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost.front().worker_id, id);
  EXPECT_EQ(lost.front().count, 1U);
  EXPECT_EQ(lost.front().duration_ms, kMinute);
  EXPECT_NE(print_event(lost.front()).find(R"("returned_jobs":1)"), std::string::npos);
}

TEST_F(Registry, what_is_told_of_a_running_job_names_its_worker) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  report({.id = "w"});
  const std::string id = s.put();
  ASSERT_EQ(fetch_as("w"), id);
  ASSERT_TRUE(proxy.progress(id, 0, 0.5).ok());
  ASSERT_TRUE(proxy.heartbeat(id, 0, kMinute).ok());
  const std::uint64_t fence = s.get(id).fence;
  int named = 0;
  for (Event event; reader.next(event);) {
    if (event.job_id != id || event.type == "job.enqueued") continue;
    ++named;
    EXPECT_EQ(event.worker_id, "w") << event.type;
    EXPECT_EQ(event.fence, fence) << event.type;
    const std::string text = print_event(event);
    EXPECT_NE(text.find(R"("worker_id":"w","attempt":1)"), std::string::npos) << text;
    EXPECT_NE(text.find("\"subject\":\"" + id), std::string::npos) << text;
  }
  EXPECT_EQ(named, 3);
  s.put();
  s.take();
  for (Event event; reader.next(event);)
    EXPECT_EQ(print_event(event).find("worker_id"), std::string::npos) << "it is not registered";
}

TEST_F(Registry, what_a_worker_does_is_told_until_it_stops) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  const std::string id = "a-worker-with-a-name-of-more-than-thirty-two-bytes";
  s.stop_clock();
  report({.id = id, .queues = std::vector<std::string>{"a", "b"}, .concurrency = 3});
  report({.id = id, .concurrency = 3});
  s.put();
  ASSERT_NE(fetch_as(id), "");
  // In one millisecond the events of two handles have no order.
  s.move_clock(kSecond);
  report({.id = id, .active_jobs = 1, .state = "draining"});
  ASSERT_TRUE(s.admin.direct_worker(id, WorkerDirective::kQuiet).ok());  // it is quiet already
  s.move_clock(kSecond);
  report({.id = id, .state = "running", .registers = true});  // an order is over then
  s.move_clock(kSecond);
  ASSERT_TRUE(s.admin.direct_worker(id, WorkerDirective::kTerminate).ok());
  std::vector<Event> told;
  for (Event event; reader.next(event);)
    if (event.type.starts_with("worker.")) told.push_back(event);
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0].type, "worker.started");
  EXPECT_EQ(told[0].worker_queues, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(told[0].worker_concurrency, 3U);
  EXPECT_NE(print_event(told[0]).find(R"("queues":["a","b"],"concurrency":3)"), std::string::npos);
  EXPECT_EQ(told[1].type, "worker.quiet");
  EXPECT_EQ(told[1].active_jobs, 1U);
  EXPECT_EQ(told[2].type, "worker.resumed");
  EXPECT_EQ(told[3].type, "worker.quiet");
  for (const Event& event : told) EXPECT_EQ(event.worker_id, id);

  ASSERT_TRUE(s.admin.remove_worker(id).ok());
  Event stopped;
  ASSERT_TRUE(reader.next(stopped));
  EXPECT_EQ(stopped.type, "worker.stopped");
  EXPECT_EQ(stopped.reason, "shutdown");
  EXPECT_EQ(stopped.duration_ms, 3 * kSecond);
  EXPECT_NE(print_event(stopped).find(R"("reason":"shutdown","uptime_ms":3000)"),
            std::string::npos);
  EXPECT_FALSE(reader.next(stopped));
}

TEST_F(Registry, one_that_promised_no_sign_and_gives_none_stops_silently) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  report({.id = "w", .pledges = false});
  s.pass(kMinute);
  std::vector<std::string> told;
  for (Event event; reader.next(event);)
    told.push_back(event.type + " " + std::string(event.reason));
  EXPECT_EQ(told, (std::vector<std::string>{"worker.started ", "worker.stopped silent"}));
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

TEST_F(Registry, a_dead_handle_that_was_a_worker_is_one_no_more) {
  engine::WorkerReport native{.id = "n", .pledges = true, .native = true};
  auto doomed = internal::Handle::make(s.segment).value();
  const std::uint32_t lane = doomed->lane();
  WorkerKey key;
  ASSERT_EQ(engine::Registry(doomed->actor()).report(native, key), engine::Outcome::kOk);
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  EXPECT_TRUE(ids().empty());
  EXPECT_EQ(look("n").state(), "stale");
}

/// The supervisor looks at it between the end that a repair makes and the record's.
TEST_F(Registry, the_death_of_a_native_worker_is_told_as_no_silence) {
  engine::WorkerReport native{.id = "n", .pledges = true, .native = true};
  auto doomed = internal::Handle::make(s.segment).value();
  const std::uint32_t lane = doomed->lane();
  WorkerKey key;
  ASSERT_EQ(engine::Registry(doomed->actor()).report(native, key), engine::Outcome::kOk);
  std::vector<engine::LostWorker> lost;
  unsigned looks = 0;
  {
    const AtAccess meanwhile([&](shm::Access access, shm::Point point, const void*) {
      if (access != shm::Access::kWritten || point != shm::Point::kWorkerEnded || looks++ != 0)
        return;
      engine::Registry(s.actor()).look(s.now_ms(), lost);
    });
    engine::Repairer::repair(s.store(), std::span(&lane, 1));
  }
  EXPECT_EQ(looks, 1U);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(s.store().header().workers_lost.load(), 0U);
  EXPECT_EQ(look("n").state(), "stale");
  EXPECT_EQ(look("n").end(), "died");
}

}  // namespace
}  // namespace ojs_shm::test
