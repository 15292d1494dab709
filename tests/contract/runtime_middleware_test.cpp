// SPDX-License-Identifier: Apache-2.0
//
// Middlewares around handlers and enqueues: in which order they run, what they may change, and what
// becomes of their errors.
#include <gmock/gmock.h>

#include <stdexcept>
#include <vector>

#include <ojs_shm/middleware.hpp>

#include "tests/contract/runtime_fixture.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string nothing(JobContext&) { return {}; }
Enqueued pass(const JobSpec& job, const EnqueueNext& next) { return next(job); }
std::string step_aside(JobContext&, const HandlerNext& next) { return next(); }

struct RuntimeMiddleware : RuntimeTest {
  /// A job that is not tried again.
  std::string enqueue_once(std::string_view type) {
    JobSpec job;
    job.type = type;
    job.retry.max_attempts = 1;
    return enqueue(job);
  }
  JobError only_error(const std::string& id) {
    const JobInfo job = finished(id);
    EXPECT_EQ(job.errors.size(), 1u);
    return job.errors.empty() ? JobError{} : job.errors[0];
  }
};

TEST_F(RuntimeMiddleware, L0_MW_001_the_first_is_the_outermost_and_all_see_the_job) {
  Runtime pool = runtime();
  std::vector<std::string> order;
  const auto named = [&order](std::string name) {
    return [&order, name](JobContext& context, const HandlerNext& next) {
      order.push_back(name + " before " + std::string(context.job().type()));
      const std::string result = next();
      order.push_back(name + " after " + result);
      return result;
    };
  };
  ASSERT_TRUE(pool.middleware().add("outer", named("outer")));
  ASSERT_TRUE(pool.middleware().add("inner", named("inner")));
  ASSERT_TRUE(pool.handle("walk", [&order](JobContext&) {
    order.emplace_back("handler");
    return std::string("7");
  }));
  Running running(pool);
  EXPECT_EQ(finished(enqueue("walk")).result, "7");
  (void)running.stop();
  EXPECT_THAT(order, ElementsAre("outer before walk", "inner before walk", "handler",
                                 "inner after 7", "outer after 7"));
}

TEST_F(RuntimeMiddleware, metadata_is_shared_within_one_run_and_empty_in_the_next) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.middleware().add("span", [](JobContext& context, const HandlerNext& next) {
    EXPECT_THAT(context.metadata(), IsEmpty());
    context.metadata()["span"] = context.job().id();
    return next();
  }));
  ASSERT_TRUE(pool.handle(
      "tell", [](JobContext& context) { return '"' + context.metadata().at("span") + '"'; }));
  Running running(pool);
  for (int i = 0; i < 3; ++i) {
    const std::string id = enqueue("tell");
    EXPECT_EQ(finished(id).result, '"' + id + '"');
  }
}

TEST_F(RuntimeMiddleware, a_middleware_may_answer_instead_of_the_handler) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.middleware().add(
      "cache", [](JobContext&, const HandlerNext&) { return std::string("\"kept\""); }));
  ASSERT_TRUE(pool.handle("ask", [](JobContext&) -> std::string {
    ADD_FAILURE() << "the handler ran";
    return {};
  }));
  Running running(pool);
  EXPECT_EQ(finished(enqueue("ask")).result, "\"kept\"");
}

TEST_F(RuntimeMiddleware, an_error_of_the_handler_passes_outwards_and_may_be_dealt_with) {
  Runtime pool = runtime();
  std::vector<std::string> seen;
  ASSERT_TRUE(pool.middleware().add("mend", [](JobContext& context, const HandlerNext& next) {
    try {
      return next();
    } catch (const std::runtime_error&) {
      if (context.job().type() == "mended") return std::string("\"mended\"");
      throw;
    }
  }));
  ASSERT_TRUE(pool.middleware().add("report", [&](JobContext&, const HandlerNext& next) {
    try {
      return next();
    } catch (const std::exception& error) {
      seen.emplace_back(error.what());
      throw;
    }
  }));
  const Handler fails = [](JobContext&) -> std::string { throw std::runtime_error("no route"); };
  ASSERT_TRUE(pool.handle("mended", fails));
  ASSERT_TRUE(pool.handle("broken", fails));
  Running running(pool);
  EXPECT_EQ(finished(enqueue("mended")).result, "\"mended\"");
  const JobError error = only_error(enqueue_once("broken"));
  EXPECT_EQ(error.code, "error");
  EXPECT_EQ(error.message, "no route");
  (void)running.stop();
  EXPECT_THAT(seen, ElementsAre("no route", "no route"));
}

TEST_F(RuntimeMiddleware, an_error_of_a_middleware_itself_is_told_from_its_handlers) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.middleware().add("odd", [](JobContext& context, const HandlerNext& next) {
    if (context.job().type() == "early") throw std::out_of_range("before");
    const std::string result = next();
    if (context.job().type() == "late") throw std::out_of_range("after");
    if (context.job().type() == "chosen")
      throw HandlerFailure{.code = "closed", .message = "a breaker", .retryable = false};
    return context.job().type() == "twice" ? next() : result;
  }));
  for (const char* type : {"early", "late", "chosen", "twice"})
    ASSERT_TRUE(pool.handle(type, nothing));
  Running running(pool);
  for (const auto& [type, message] : std::vector<std::pair<std::string, std::string>>{
           {"early", "before"}, {"late", "after"}, {"twice", "second time"}}) {
    const JobError error = only_error(enqueue_once(type));
    EXPECT_EQ(error.code, "middleware_error") << type;
    EXPECT_THAT(error.message, HasSubstr(message));
  }
  EXPECT_EQ(only_error(enqueue_once("chosen")).code, "closed");
}

TEST_F(RuntimeMiddleware, a_chain_is_arranged_by_names) {
  HandlerChain chain;
  ASSERT_TRUE(chain.add("logging", step_aside));
  ASSERT_TRUE(chain.add("timeout", step_aside));
  ASSERT_TRUE(chain.insert_before("timeout", "metrics", step_aside));
  ASSERT_TRUE(chain.prepend("reports", step_aside));
  ASSERT_TRUE(chain.insert_after("reports", "traces", step_aside));
  EXPECT_THAT(chain.names(), ElementsAre("reports", "traces", "logging", "metrics", "timeout"));
  ASSERT_TRUE(chain.remove("reports"));
  EXPECT_THAT(chain.names(), ElementsAre("traces", "logging", "metrics", "timeout"));

  EXPECT_EQ(chain.add("logging", step_aside).code(), Code::kInUse);
  EXPECT_EQ(chain.add("", step_aside).code(), Code::kInvalid);
  EXPECT_EQ(chain.add("empty", {}).code(), Code::kInvalid);
  EXPECT_EQ(chain.insert_before("reports", "late", step_aside).code(), Code::kNotFound);
  EXPECT_EQ(chain.remove("reports").code(), Code::kNotFound);
}

TEST_F(RuntimeMiddleware, a_chain_does_not_change_once_the_runtime_runs) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.middleware().add("first", step_aside));
  ASSERT_TRUE(pool.handle("walk", nothing));
  Running running(pool);
  finished(enqueue("walk"));
  EXPECT_EQ(pool.middleware().add("second", step_aside).code(), Code::kWrongState);
  EXPECT_EQ(pool.middleware().remove("first").code(), Code::kWrongState);
  EXPECT_THAT(pool.middleware().names(), ElementsAre("first"));
}

TEST_F(RuntimeMiddleware, L0_MW_002_an_enqueue_passes_the_chain_which_may_change_the_job) {
  EnqueueChain chain;
  std::vector<std::string> order;
  ASSERT_TRUE(chain.add("trace", [&](const JobSpec& job, const EnqueueNext& next) -> Enqueued {
    order.emplace_back("trace");
    JobSpec changed = job;
    const std::string extra = R"({"meta":{"traceparent":"00-4b"}})";
    changed.extra = extra;
    return next(changed);
  }));
  ASSERT_TRUE(chain.add("route", [&](const JobSpec& job, const EnqueueNext& next) -> Enqueued {
    order.emplace_back(job.extra);
    JobSpec changed = job;
    changed.queue = "other";
    return next(changed);
  }));
  const Enqueued id = enqueue_through(chain, *producer_, JobSpec{.type = "walk"});
  ASSERT_TRUE(id && *id);
  const JobInfo job = now((*id)->str());
  EXPECT_EQ(job.queue, "other");
  EXPECT_EQ(job.extra, R"({"meta":{"traceparent":"00-4b"}})");
  EXPECT_THAT(order, ElementsAre("trace", job.extra));
}

TEST_F(RuntimeMiddleware, an_enqueue_may_be_dropped_or_refused_and_then_nothing_is_stored) {
  EnqueueChain chain;
  ASSERT_TRUE(chain.add("gate", [](const JobSpec& job, const EnqueueNext& next) -> Enqueued {
    if (job.type == "dropped") return std::optional<JobIdText>{};
    if (job.type == "refused") return Error{Code::kInvalid, "not on Sundays"}.about("type");
    if (job.type == "thrown") throw std::runtime_error("odd");
    JobSpec changed = job;
    if (job.type == "renamed") changed.id = "019539a4-b68c-7def-8000-1a2b3c4d5e6f";
    const Enqueued stored = next(changed);
    return job.type == "twice" ? next(job) : stored;
  }));
  ASSERT_TRUE(chain.add("last", pass));
  const Enqueued dropped = enqueue_through(chain, *producer_, JobSpec{.type = "dropped"});
  ASSERT_TRUE(dropped);
  EXPECT_FALSE(*dropped);
  EXPECT_EQ(enqueue_through(chain, *producer_, JobSpec{.type = "refused"}).error().message,
            "not on Sundays");
  EXPECT_THROW((void)enqueue_through(chain, *producer_, JobSpec{.type = "thrown"}),
               std::runtime_error);
  EXPECT_EQ(enqueue_through(chain, *producer_, JobSpec{.type = "renamed"}).error().subject, "id");
  EXPECT_EQ(Observer::attach(*segment_)->list({}).size(), 0u);
  EXPECT_EQ(enqueue_through(chain, *producer_, JobSpec{.type = "twice"}).error().subject,
            "middleware");
}

TEST_F(RuntimeMiddleware, each_job_of_a_batch_passes_the_chain_and_all_or_none_are_stored) {
  EnqueueChain chain;
  ASSERT_TRUE(chain.add("gate", [](const JobSpec& job, const EnqueueNext& next) -> Enqueued {
    if (job.type == "dropped") return std::optional<JobIdText>{};
    if (job.type == "refused") return Error{Code::kInvalid, "not on Sundays"}.about("type");
    const std::string args = '[' + std::string(job.type == "first" ? "1" : "2") + ']';
    JobSpec changed = job;
    changed.args = args;  // gone when this function has returned
    return next(changed);
  }));
  std::vector<JobSpec> jobs(3);
  jobs[0].type = "first", jobs[1].type = "dropped", jobs[2].type = "second";
  const auto ids = enqueue_batch_through(chain, *producer_, jobs);
  ASSERT_TRUE(ids) << ids.error().message;
  ASSERT_EQ(ids->size(), 3u);
  ASSERT_TRUE((*ids)[0] && !(*ids)[1] && (*ids)[2]);
  EXPECT_EQ(now((*ids)[0]->str()).args, "[1]");
  EXPECT_EQ(now((*ids)[2]->str()).args, "[2]");

  jobs[2].type = "refused";
  EXPECT_EQ(enqueue_batch_through(chain, *producer_, jobs).error().message, "not on Sundays");
  EXPECT_EQ(Observer::attach(*segment_)->list({}).size(), 2u);
}

TEST_F(RuntimeMiddleware, an_empty_chain_is_no_chain) {
  Runtime pool = runtime();
  ASSERT_TRUE(pool.handle("walk", [](JobContext&) { return std::string("1"); }));
  Running running(pool);
  const Enqueued id = enqueue_through({}, *producer_, JobSpec{.type = "walk"});
  ASSERT_TRUE(id && *id);
  EXPECT_EQ(finished((*id)->str()).result, "1");
}

}  // namespace
}  // namespace ojs_shm::test
