// SPDX-License-Identifier: Apache-2.0
//
// Leases while handlers run, and how a Runtime ends.
#include <csignal>
#include <memory>

#include "tests/contract/runtime_fixture.hpp"

namespace ojs_shm::test {
namespace {

using RuntimeDrain = RuntimeTest;

// Two jobs with the same short lease, of which the one that no process looks after is fetched
// later: when its lease has ended the other would have been lost, did the runtime not extend it.
TEST_F(RuntimeDrain, a_lease_lasts_as_long_as_its_handler) {
  RuntimeOptions options;
  options.worker.queues = {"looked-after"};
  Runtime pool = runtime(options);
  Tally begun, go_on;
  ASSERT_TRUE(pool.handle("work", [&](JobContext& context) {
    begun.add();
    go_on.wait_for(1);
    return std::string(context.cancel_requested() ? "\"lost\"" : "\"held\"");
  }));
  Running running(pool);

  JobSpec spec;
  spec.type = "work";
  spec.lease_ms = 4'000;
  spec.queue = "looked-after";
  const std::string held = enqueue(spec);
  ASSERT_TRUE(begun.wait_for(1));

  spec.queue = "neglected";
  enqueue(spec);
  WorkerOptions careless;
  careless.queues = {"neglected"};
  auto worker = Worker::attach(*segment_, careless);
  ASSERT_TRUE(worker.ok()) << worker.error().message;
  Job job;
  ASSERT_TRUE(worker->fetch(job, kBound));
  ASSERT_TRUE(eventually([&] { return job.cancel_requested(); })) << "its lease began later";

  EXPECT_EQ(now(held).state, State::kActive);
  EXPECT_EQ(now(held).attempt, 1);
  go_on.add();
  EXPECT_EQ(finished(held).result, "\"held\"");
}

TEST_F(RuntimeDrain, a_quiet_runtime_fetches_nothing_until_it_resumes) {
  RuntimeOptions options;
  options.worker.id = "rests";
  Runtime pool = runtime(options);
  Tally begun, go_on;
  int count = 0;
  ASSERT_TRUE(pool.handle("slow", [&](JobContext&) {
    begun.add();
    go_on.wait_for(++count);
    return std::string();
  }));
  Running running(pool);
  const auto observer = Observer::attach(*segment_).value();
  const auto says = [&](std::string_view state) {
    return eventually([&] { return observer.registered_worker("rests").value().state() == state; });
  };
  auto other = Worker::attach(*segment_, {}).value();
  for (int turn = 0; turn < 2; ++turn) {
    pool.quiet();
    ASSERT_TRUE(says("quiet")) << turn;
    const std::string waits = enqueue("slow");
    Job job;
    ASSERT_TRUE(other.fetch(job, kBound)) << "it was taken";
    ASSERT_TRUE(other.requeue(job));
    go_on.add();
    pool.resume();
    EXPECT_EQ(finished(waits).state, State::kCompleted);
  }

  const std::string last = enqueue("slow");
  ASSERT_TRUE(begun.wait_for(3));
  pool.quiet();
  EXPECT_TRUE(says("quiet")) << "also while all threads are busy";
  const std::string left = enqueue("slow");
  go_on.add();
  EXPECT_EQ(finished(last).state, State::kCompleted);
  pool.stop();
  EXPECT_EQ(running.join().code(), Code::kOk) << "stop() ends a quiet one";
  EXPECT_EQ(now(left).state, State::kAvailable);
}

TEST_F(RuntimeDrain, stop_lets_running_handlers_finish_and_fetches_nothing_more) {
  RuntimeOptions options;
  options.worker.id = "ends";
  Runtime pool = runtime(options);
  Tally begun, go_on;
  ASSERT_TRUE(pool.handle("slow", [&](JobContext&) {
    begun.add();
    go_on.wait_for(1);
    return std::string("\"done\"");
  }));
  Running running(pool);
  const std::string first = enqueue("slow");
  ASSERT_TRUE(begun.wait_for(1));
  const std::string second = enqueue("slow");
  const auto observer = Observer::attach(*segment_).value();
  const auto state = [&] {
    return std::string(observer.registered_worker("ends").value().state());
  };
  EXPECT_EQ(state(), "running");

  pool.stop();
  EXPECT_TRUE(eventually([&] { return state() == "terminate"; }));
  go_on.add();
  EXPECT_EQ(running.join().code(), Code::kOk);
  EXPECT_EQ(now(first).result, "\"done\"");
  EXPECT_EQ(now(second).state, State::kAvailable);
  EXPECT_EQ(now(second).attempt, 0);
}

TEST_F(RuntimeDrain, a_stop_before_run_ends_it_at_once) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.handle("never", [](JobContext&) { return std::string(); }));
  const std::string id = enqueue("never");
  pool.stop();
  EXPECT_EQ(pool.run().code(), Code::kOk);
  EXPECT_EQ(now(id).state, State::kAvailable);
  EXPECT_EQ(now(id).attempt, 0);
}

TEST_F(RuntimeDrain, what_still_runs_after_the_grace_time_is_given_back) {
  RuntimeOptions options;
  options.grace = std::chrono::milliseconds(20);
  // Shared, because this handler outlives run().
  const auto begun = std::make_shared<Tally>(), go_on = std::make_shared<Tally>(),
             ended = std::make_shared<Tally>();
  Runtime pool = runtime(options);
  ASSERT_TRUE(pool.handle("stuck", [=](JobContext& context) {
    begun->add();
    go_on->wait_for(1);
    const bool told = context.cancel_requested();
    context.progress(0.9);
    ended->add();
    return std::string(told ? "\"told\"" : "\"not told\"");
  }));
  std::string id;
  {
    Running running(pool);
    id = enqueue("stuck");
    ASSERT_TRUE(begun->wait_for(1));
    const Status status = running.stop();
    EXPECT_EQ(status.code(), Code::kTimeout);
    EXPECT_NE(status.error().message.find("1 jobs"), std::string::npos) << status.error().message;
  }
  EXPECT_EQ(now(id).state, State::kAvailable);
  EXPECT_EQ(now(id).attempt, 0) << "an attempt that was given back does not count";

  // Another one runs it while the first handler still hangs; what that one returns in the end is
  // nobody's any more.
  auto worker = Worker::attach(*segment_, WorkerOptions{});
  ASSERT_TRUE(worker.ok());
  Job job;
  ASSERT_TRUE(worker->fetch(job, kBound));
  EXPECT_EQ(job.id(), id);
  go_on->add();
  ASSERT_TRUE(ended->wait_for(1));
  EXPECT_EQ(now(id).state, State::kActive);
  ASSERT_TRUE(worker->ack(job, "\"mine\""));
  EXPECT_EQ(finished(id).result, "\"mine\"");
  EXPECT_LT(now(id).progress, 0.9);
}

Runtime* g_runtime = nullptr;

TEST_F(RuntimeDrain, stop_may_be_called_by_a_signal_handler) {
  Runtime pool = runtime();
  Tally begun, go_on;
  ASSERT_TRUE(pool.handle("slow", [&](JobContext&) {
    begun.add();
    go_on.wait_for(1);
    return std::string();
  }));
  g_runtime = &pool;
  struct sigaction by_stop {};
  struct sigaction before {};
  by_stop.sa_handler = [](int) { g_runtime->stop(); };
  ASSERT_EQ(::sigaction(SIGTERM, &by_stop, &before), 0);

  Running running(pool);
  const std::string id = enqueue("slow");
  EXPECT_TRUE(begun.wait_for(1));
  ::raise(SIGTERM);
  go_on.add();
  EXPECT_EQ(running.join().code(), Code::kOk);
  EXPECT_EQ(now(id).state, State::kCompleted);
  ::sigaction(SIGTERM, &before, nullptr);
}

}  // namespace
}  // namespace ojs_shm::test
