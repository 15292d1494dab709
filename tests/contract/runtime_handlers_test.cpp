// SPDX-License-Identifier: Apache-2.0
//
// What a Runtime does with one job after the other: which handler, on how many threads, in which
// order, and how each way in which a handler can end is told to the segment.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/contract/runtime_fixture.hpp"

namespace ojs_shm::test {
namespace {

std::string nothing(JobContext&) { return {}; }

using RuntimeHandlers = RuntimeTest;

TEST_F(RuntimeHandlers, a_job_meets_the_handler_of_its_type_and_keeps_its_result) {
  Runtime pool = runtime();
  ASSERT_TRUE(
      pool.handle("echo", [](JobContext& context) { return std::string(context.job().args()); }));
  ASSERT_TRUE(pool.handle(
      "id", [](JobContext& context) { return '"' + std::string(context.job().id()) + '"'; }));
  Running running(pool);

  JobSpec echo;
  echo.type = "echo";
  echo.args = R"([{"to":"somebody"}])";
  const std::string first = enqueue(echo), second = enqueue("id");

  EXPECT_EQ(finished(first).result, echo.args);
  EXPECT_EQ(finished(second).result, '"' + second + '"');
  EXPECT_EQ(now(first).state, State::kCompleted);
}

TEST_F(RuntimeHandlers, as_many_handlers_run_at_once_as_there_are_threads) {
  constexpr int kThreads = 4;
  RuntimeOptions options;
  options.concurrency = kThreads;
  Runtime pool = runtime(options);
  Tally arrived;
  // None of them ends before all of them have begun.
  ASSERT_TRUE(pool.handle("meet", [&](JobContext&) {
    arrived.add();
    return std::string(arrived.wait_for(kThreads) ? "true" : "false");
  }));
  Running running(pool);

  std::vector<std::string> ids;
  for (int i = 0; i < kThreads; ++i) ids.push_back(enqueue("meet"));
  for (const std::string& id : ids) EXPECT_EQ(finished(id).result, "true");
}

TEST_F(RuntimeHandlers, a_thousand_jobs_on_four_threads_each_run_once) {
  RuntimeOptions options;
  options.concurrency = 4;
  Runtime pool = runtime(options);
  std::mutex mutex;
  std::vector<std::string> seen;
  ASSERT_TRUE(pool.handle("count", [&](JobContext& context) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(context.job().id());
    return std::string();
  }));
  Running running(pool);

  std::vector<std::string> ids;
  for (int round = 0; round < 10; ++round) {
    const std::size_t begun = ids.size();
    for (int i = 0; i < 100; ++i) ids.push_back(enqueue("count"));
    for (std::size_t i = begun; i < ids.size(); ++i)
      ASSERT_EQ(finished(ids[i]).state, State::kCompleted);
  }
  const std::lock_guard lock(mutex);
  std::sort(seen.begin(), seen.end());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(seen, ids);
}

// The runtime holds no job in reserve: what it fetches is chosen when a thread has become free.
TEST_F(RuntimeHandlers, QO_18_a_worker_finishes_its_job_before_it_claims_the_next) {
  Runtime pool = runtime();
  Tally begun, allowed;
  std::vector<std::string> order;
  ASSERT_TRUE(pool.handle("step", [&](JobContext& context) {
    order.emplace_back(context.job().id());
    begun.add();
    allowed.wait_for(static_cast<int>(order.size()));
    return std::string();
  }));
  Running running(pool);

  const std::string first = enqueue("step", 4);
  ASSERT_TRUE(begun.wait_for(1));
  const std::string low = enqueue("step", 3), urgent = enqueue("step", 0);
  EXPECT_EQ(now(first).state, State::kActive);
  EXPECT_EQ(now(first).attempt, 1);
  EXPECT_EQ(now(urgent).state, State::kAvailable);
  allowed.add(3);

  finished(low);
  EXPECT_EQ(running.stop().code(), Code::kOk);
  EXPECT_EQ(order, (std::vector<std::string>{first, urgent, low}));
}

TEST_F(RuntimeHandlers, an_unknown_type_is_discarded_at_once_with_the_code_no_handler) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.handle("known", nothing));
  Running running(pool);

  const JobInfo job = finished(enqueue("unknown"));
  EXPECT_EQ(job.state, State::kDiscarded);
  EXPECT_EQ(job.attempt, 1);
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors[0].code, "no_handler");
  EXPECT_FALSE(job.errors[0].retryable);
  EXPECT_NE(job.errors[0].message.find("unknown"), std::string::npos);
}

TEST_F(RuntimeHandlers, an_exception_is_a_failure_with_its_text_and_is_retried) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.handle("odd", [](JobContext& context) -> std::string {
    if (context.job().attempt() == 1) throw std::out_of_range("one too many");
    return "\"second\"";
  }));
  Running running(pool);

  JobSpec spec;
  spec.type = "odd";
  spec.retry.initial_ms = 1;
  spec.retry.jitter = false;
  const JobInfo job = finished(enqueue(spec));
  EXPECT_EQ(job.state, State::kCompleted);
  EXPECT_EQ(job.attempt, 2);
  EXPECT_EQ(job.result, "\"second\"");
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors[0].message, "one too many");
  EXPECT_EQ(job.errors[0].type, "std::out_of_range");
}

TEST_F(RuntimeHandlers, a_handler_may_choose_its_error_and_forbid_the_retry) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.handle("strict", [](JobContext&) -> std::string {
    throw HandlerFailure{.code = "bad_address",
                         .message = "nobody lives there",
                         .details = R"({"line":7})",
                         .retryable = false};
  }));
  ASSERT_TRUE(pool.handle("careless", [](JobContext&) -> std::string { throw 42; }));
  Running running(pool);

  const JobInfo job = finished(enqueue("strict"));
  EXPECT_EQ(job.state, State::kDiscarded);
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors[0].code, "bad_address");
  EXPECT_EQ(job.errors[0].message, "nobody lives there");
  EXPECT_EQ(job.errors[0].details, R"({"line":7})");

  JobSpec spec;
  spec.type = "careless";
  spec.retry.max_attempts = 1;
  EXPECT_EQ(finished(enqueue(spec)).state, State::kDiscarded);
}

TEST_F(RuntimeHandlers, progress_is_seen_while_the_job_runs) {
  Runtime pool = runtime();
  Tally told, go_on;
  ASSERT_TRUE(pool.handle("walk", [&](JobContext& context) {
    context.progress(0.5);
    told.add();
    go_on.wait_for(1);
    return std::string("1");
  }));
  Running running(pool);

  const std::string id = enqueue("walk");
  ASSERT_TRUE(told.wait_for(1));
  EXPECT_DOUBLE_EQ(now(id).progress, 0.5);
  go_on.add();
  EXPECT_EQ(finished(id).state, State::kCompleted);
}

TEST_F(RuntimeHandlers, cancelling_a_running_job_is_seen_by_its_handler) {
  Runtime pool = runtime();
  Tally begun, seen;
  ASSERT_TRUE(pool.handle("long", [&](JobContext& context) -> std::string {
    EXPECT_FALSE(context.cancel_requested());
    begun.add();
    if (eventually([&] { return context.cancel_requested(); })) seen.add();
    throw std::runtime_error("stopped half-way");
  }));
  Running running(pool);

  const std::string id = enqueue("long");
  ASSERT_TRUE(begun.wait_for(1));
  ASSERT_TRUE(producer_->cancel(id).ok());
  EXPECT_TRUE(seen.wait_for(1));
  EXPECT_EQ(finished(id).state, State::kCancelled);
}

TEST_F(RuntimeHandlers, registering_wrongly_is_refused) {
  Runtime pool = runtime();
  EXPECT_EQ(pool.handle("", nothing).code(), Code::kInvalid);
  EXPECT_EQ(pool.handle("empty", nullptr).code(), Code::kInvalid);
  EXPECT_EQ(pool.handle("once", nothing, 256).code(), Code::kInvalid);
  EXPECT_TRUE(pool.handle("once", nothing));
  EXPECT_EQ(pool.handle("once", nothing).code(), Code::kInUse);

  RuntimeOptions options;
  options.concurrency = 0;
  EXPECT_EQ(Runtime::create(*segment_, options).code(), Code::kInvalid);
  pool.stop();
  EXPECT_TRUE(pool.run());
  EXPECT_EQ(pool.handle("late", nothing).code(), Code::kWrongState);
  EXPECT_EQ(pool.run().code(), Code::kWrongState);
}

TEST_F(RuntimeHandlers, QO_16_a_type_registered_with_a_default_priority_gives_it_to_its_jobs) {
  begin("qo");
  Runtime pool = runtime();
  ASSERT_TRUE(pool.handle("cleanup_old_files", nothing, 50));
  ASSERT_TRUE(pool.handle("send_alert", nothing, 255));
  EXPECT_EQ(now(enqueue("cleanup_old_files")).priority, 50);
  EXPECT_EQ(now(enqueue("send_alert")).priority, 255);
  EXPECT_EQ(now(enqueue("send_alert", 10)).priority, 10) << "an explicit priority wins";
  EXPECT_EQ(now(enqueue("send_email")).priority, 128) << "other types keep the default";

  auto observer = Observer::attach(*segment_);
  ASSERT_TRUE(observer.ok());
  EXPECT_EQ(observer->default_priority("cleanup_old_files"), 50);
  EXPECT_EQ(observer->default_priority("send_email"), std::nullopt);
}

}  // namespace
}  // namespace ojs_shm::test
