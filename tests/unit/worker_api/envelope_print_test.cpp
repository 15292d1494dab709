// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/seed.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm {
namespace {

constexpr std::uint64_t kNow = 1'769'515'200'000;  // 2026-01-27T12:00:00Z

JobInfo smallest() {
  JobInfo job;
  job.id = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f";
  job.type = "email.send";
  job.queue = "default";
  job.args = R"(["a"])";
  job.priority = 2;
  job.created_at_ms = job.enqueued_at_ms = kNow;
  return job;
}

// The printed job as its members; fails when a name comes twice.
std::map<std::string, std::string> printed(const JobInfo& job) {
  const std::string text = print_job(job);
  std::map<std::string, std::string> members;
  if (!json::check(text)) {
    ADD_FAILURE() << "not JSON: " << text;
    return members;
  }
  for (const json::Member& member : json::members_of(text))
    EXPECT_TRUE(members.emplace(member.name, member.value).second)
        << member.name << " twice in " << text;
  return members;
}

TEST(PrintJob, QO_10_PRI_T11_the_priority_stands_at_the_top_of_the_job) {
  EXPECT_EQ(printed(smallest()).at("priority"), "2");
  JobInfo job = smallest();
  job.priority = -100;
  EXPECT_EQ(printed(job).at("priority"), "-100");
}

TEST(PrintJob, unset_members_are_left_out) {
  EXPECT_EQ(
      print_job(smallest()),
      R"({"specversion":"1.0","id":"019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f","type":"email.send","queue":"default",)"
      R"("args":["a"],"meta":{},"priority":2,"state":"available","attempt":0,"max_attempts":3,)"
      R"("retry":{"max_attempts":3,"initial_interval":"PT1S","backoff_coefficient":2,"max_interval":"PT5M",)"
      R"("jitter":true,"non_retryable_errors":[],"backoff_strategy":"exponential","on_exhaustion":"discard"},)"
      R"("created_at":"2026-01-27T12:00:00.000Z","enqueued_at":"2026-01-27T12:00:00.000Z"})");
}

TEST(PrintJob, set_members_are_printed) {
  JobInfo job = smallest();
  job.state = State::kCancelled;
  job.previous_state = State::kRetryable;
  job.attempt = 2;
  job.scheduled_at_ms = kNow + 1;
  job.expires_at_ms = kNow + 2;
  job.started_at_ms = kNow + 3;
  job.completed_at_ms = kNow + 4;
  job.cancelled_at_ms = kNow + 5;
  job.discarded_at_ms = kNow + 6;
  job.next_attempt_at_ms = kNow + 7;
  job.retry_delay_ms = 1'500;
  job.timeout_ms = 60'000;
  job.lease_ms = 30'000;
  job.progress = 0.25;
  job.result = R"({ "sent": true })";
  EXPECT_FALSE(printed(job).contains("retry_delay_ms"))
      << "an operator's retry has no error before it";
  job.errors = {{.attempt = 1,
                 .occurred_at_ms = kNow,
                 .code = "c",
                 .type = "",
                 .message = "m",
                 .details = ""}};
  const auto members = printed(job);
  EXPECT_EQ(members.at("state"), "\"cancelled\"");
  EXPECT_EQ(members.at("previous_state"), "\"retryable\"");
  EXPECT_EQ(members.at("attempt"), "2");
  EXPECT_EQ(members.at("scheduled_at"), "\"2026-01-27T12:00:00.001Z\"");
  EXPECT_EQ(members.at("expires_at"), "\"2026-01-27T12:00:00.002Z\"");
  EXPECT_EQ(members.at("started_at"), "\"2026-01-27T12:00:00.003Z\"");
  EXPECT_EQ(members.at("completed_at"), "\"2026-01-27T12:00:00.004Z\"");
  EXPECT_EQ(members.at("cancelled_at"), "\"2026-01-27T12:00:00.005Z\"");
  EXPECT_EQ(members.at("discarded_at"), "\"2026-01-27T12:00:00.006Z\"");
  EXPECT_EQ(members.at("next_attempt_at"), "\"2026-01-27T12:00:00.007Z\"");
  EXPECT_EQ(members.at("retry_delay_ms"), "1500");
  EXPECT_EQ(members.at("timeout_ms"), "60000");
  EXPECT_EQ(members.at("visibility_timeout_ms"), "30000");
  EXPECT_EQ(members.at("progress"), "0.25");
  EXPECT_EQ(members.at("result"), R"({"sent":true})");
  EXPECT_FALSE(members.contains("timeout")) << "some workers read it as milliseconds";
}

TEST(PrintJob, errors_come_oldest_first_and_the_last_one_by_itself) {
  JobInfo job = smallest();
  job.state = State::kRetryable;
  job.errors = {{.attempt = 1,
                 .occurred_at_ms = kNow,
                 .code = "handler_error",
                 .type = "",
                 .message = "first",
                 .details = ""},
                {.attempt = 2,
                 .occurred_at_ms = kNow + 9,
                 .code = "handler_error",
                 .type = "auth.expired",
                 .message = "sec\"ond",
                 .details = R"({"a": 1})",
                 .retryable = false}};
  const std::string first =
      R"({"code":"handler_error","type":"handler_error","message":"first","retryable":true,"attempt":1,)"
      R"("occurred_at":"2026-01-27T12:00:00.000Z","timestamp":"2026-01-27T12:00:00.000Z"})";
  const std::string second =
      R"({"code":"handler_error","type":"auth.expired","message":"sec\"ond","retryable":false,)"
      R"("details":{"a":1},"attempt":2,"occurred_at":"2026-01-27T12:00:00.009Z",)"
      R"("timestamp":"2026-01-27T12:00:00.009Z"})";
  EXPECT_EQ(printed(job).at("errors"), "[" + first + "," + second + "]");
  EXPECT_EQ(printed(job).at("error"), second);
  job.state = State::kCompleted;
  EXPECT_FALSE(printed(job).contains("error")) << "success clears it";
  EXPECT_TRUE(printed(job).contains("errors"));
}

TEST(PrintJob, a_backtrace_in_the_details_stands_beside_them) {
  JobInfo job = smallest();
  const auto error_with = [&](std::string details) {
    job.errors = {
        {.attempt = 1, .code = "boom", .type = "", .message = "", .details = std::move(details)}};
    return printed(job).at("error");
  };
  EXPECT_THAT(error_with(R"({"a":1,"backtrace":["f","g"]})"),
              testing::HasSubstr(R"("backtrace":["f","g"],"details":{"a":1},)"));
  EXPECT_THAT(error_with(R"({"backtrace":["f"]})"),
              testing::HasSubstr(R"("backtrace":["f"],"attempt")"));
  EXPECT_THAT(error_with(R"({"backtrace":"f"})"),
              testing::HasSubstr(R"("details":{"backtrace":"f"},"attempt")"));
  EXPECT_THAT(error_with("cut off {"), testing::HasSubstr(R"("details":"cut off {")"));
}

TEST(PrintJob, what_a_client_sent_comes_back) {
  const std::string sent =
      R"({"type":"email.send","args":[1.50,{"z":1,"a":2}],"meta":{"tenant_id":"acme"},"x_custom":1e3,
      "tags":["a"],"timeout":60,"unique":{"keys":["type"]},
      "options":{"expires_at":"2099-12-31T23:59:59Z","retry":{"max_attempts":5}}})";
  const Result<Envelope> envelope = parse_envelope(sent, kNow);
  ASSERT_TRUE(envelope) << envelope.error().message;
  JobInfo job = smallest();
  job.args = envelope.value().args;
  job.extra = envelope.value().extra;
  job.retry = envelope.value().retry;
  job.expires_at_ms = envelope.value().expires_at_ms;
  job.timeout_ms = envelope.value().timeout_ms;
  const auto members = printed(job);
  EXPECT_EQ(members.at("args"), R"([1.50,{"z":1,"a":2}])");
  EXPECT_EQ(members.at("meta"), R"({"tenant_id":"acme"})");
  EXPECT_EQ(members.at("x_custom"), "1e3");
  EXPECT_EQ(members.at("tags"), R"(["a"])");
  EXPECT_EQ(members.at("timeout"), "60");
  EXPECT_EQ(members.at("timeout_ms"), "60000");
  EXPECT_EQ(members.at("unique"), R"({"keys":["type"]})");
  EXPECT_EQ(members.at("expires_at"), "\"2099-12-31T23:59:59Z\"");
  EXPECT_EQ(
      members.at("retry"),
      R"({"max_attempts":5,"initial_interval":"PT1S","backoff_coefficient":2,"max_interval":"PT5M",)"
      R"("jitter":true,"non_retryable_errors":[],"backoff_strategy":"exponential","on_exhaustion":"discard"})")
      << "with the defaults that hold beside it";
  EXPECT_EQ(members.at("max_attempts"), "5");
}

TEST(PrintJob, a_printed_job_is_an_envelope_again) {
  JobInfo job = smallest();
  job.state = State::kActive;
  job.attempt = 1;
  job.extra = R"({"meta":{"a":1},"x":2})";
  const Result<Envelope> envelope = parse_envelope(print_job(job), kNow);
  ASSERT_TRUE(envelope) << envelope.error().message;
  EXPECT_EQ(envelope.value().id, job.id);
  EXPECT_EQ(envelope.value().priority, job.priority);
  EXPECT_EQ(envelope.value().retry.max_attempts, job.retry.max_attempts);
}

TEST(PrintJob, a_native_clients_extra_cannot_pose_as_the_systems_members) {
  JobInfo job = smallest();
  job.extra = R"({"state":"completed","id":"x","priority":0,"errors":[],"y":1})";
  const auto members = printed(job);
  EXPECT_EQ(members.at("state"), "\"available\"");
  EXPECT_EQ(members.at("priority"), "2");
  EXPECT_EQ(members.at("y"), "1");
  EXPECT_FALSE(members.contains("errors"));
}

TEST(PrintJob, a_native_clients_time_comes_back_only_when_it_is_a_text) {
  for (const std::string_view word : {"7", "1e300", "true", "{}", "[1]", "null"}) {
    JobInfo job = smallest();
    job.extra =
        R"({"scheduled_at":)" + std::string(word) + R"(,"expires_at":)" + std::string(word) + "}";
    EXPECT_FALSE(printed(job).contains("scheduled_at")) << word;
    job.scheduled_at_ms = job.expires_at_ms = kNow;
    const auto members = printed(job);
    EXPECT_EQ(members.at("scheduled_at"), "\"2026-01-27T12:00:00.000Z\"") << word;
    EXPECT_EQ(members.at("expires_at"), "\"2026-01-27T12:00:00.000Z\"") << word;
  }
}

TEST(PrintJob, texts_that_are_no_json_are_shown_as_strings) {
  JobInfo job = smallest();
  job.args = "[1,";
  job.result = "done\n\xff";
  job.extra = "[broken";
  job.errors = {{.attempt = 1, .code = "c", .type = "", .message = "\x01", .details = "trace: x"}};
  const auto members = printed(job);
  EXPECT_EQ(members.at("args"), "\"[1,\"");
  EXPECT_EQ(members.at("result"), "\"done\\n\xef\xbf\xbd\"");
  EXPECT_EQ(members.at("meta"), "{}");
  EXPECT_NE(members.at("errors").find(R"("details":"trace: x")"), std::string::npos);
}

TEST(PrintJob, any_bytes_in_any_text_still_print_as_json) {
  test::Seeded random;
  const auto bytes = [&] {
    std::string text(static_cast<std::size_t>(random.between(0, 12)), ' ');
    for (char& c : text) c = static_cast<char>(random.between(0, 255));
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    JobInfo job;
    job.id = bytes(), job.type = bytes(), job.queue = bytes(), job.args = bytes(),
    job.extra = bytes(), job.result = bytes();
    job.state = static_cast<State>(random.between(0, 255));
    job.retry.backoff = static_cast<RetryBackoff>(random.between(0, 255));
    job.retry.coefficient = random.coin() ? std::numeric_limits<float>::quiet_NaN() : 1e30F;
    job.progress = random.coin() ? std::nan("") : std::numeric_limits<double>::infinity();
    job.created_at_ms = random.bits();
    job.errors = {{.occurred_at_ms = random.bits(),
                   .code = bytes(),
                   .type = bytes(),
                   .message = bytes(),
                   .details = bytes()}};
    ASSERT_TRUE(json::check(print_job(job))) << print_job(job);
  }
}

TEST(PrintJob, progress_is_never_above_one) {
  JobInfo job = smallest();
  job.progress = 7;
  EXPECT_EQ(printed(job).at("progress"), "1");
  job.progress = 0;
  EXPECT_EQ(printed(job).at("progress"), "0");
}

TEST(WithTenant, keeps_all_other_members_and_what_is_no_object) {
  EXPECT_EQ(with_tenant("", "a"), R"({"meta":{"tenant_id":"a"}})");
  EXPECT_EQ(with_tenant(R"({"tags":["x"],"meta":{"tenant_id":"b","t":1}})", "a"),
            R"({"meta":{"tenant_id":"a","t":1},"tags":["x"]})");
  EXPECT_EQ(with_tenant(R"({"meta":7})", "a"), R"({"meta":{"tenant_id":"a"}})");
  for (const std::string_view extra : {"[broken", "[1]", "7"})
    EXPECT_EQ(with_tenant(extra, "a"), extra);
}

TEST(ForbidsRetry, by_the_jobs_own_list) {
  const std::string extra =
      R"({"retry":{"max_attempts":3,"non_retryable_errors":["auth.*","fatal"]}})";
  EXPECT_TRUE(forbids_retry(extra, "fatal"));
  EXPECT_TRUE(forbids_retry(extra, "auth.expired"));
  EXPECT_FALSE(forbids_retry(extra, "auth"));
  EXPECT_FALSE(forbids_retry(extra, "network"));
}

TEST(ForbidsRetry, nothing_without_a_list) {
  for (const std::string_view extra :
       {"", "{}", R"({"retry":3})", R"({"retry":{"non_retryable_errors":"fatal"}})",
        R"({"retry":{"non_retryable_errors":[3]}})", R"({"non_retryable_errors":["fatal"]})",
        "[broken"})
    EXPECT_FALSE(forbids_retry(extra, "fatal")) << extra;
}

}  // namespace
}  // namespace ojs_shm
