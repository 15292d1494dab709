// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/seed.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm {
namespace {

constexpr std::uint64_t kNow = 1'769'515'200'000;  // 2026-01-27T12:00:00Z
constexpr std::string_view kId = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f";

// A valid envelope with these members besides type and args.
std::string with(std::string_view members) {
  return std::string(R"({"type":"email.send","args":["a"])") + (members.empty() ? "" : ",") +
         std::string(members) + "}";
}
std::string with_option(std::string_view members) {
  return with(R"("options":{)" + std::string(members) + "}");
}

Envelope read(const std::string& json) {
  Result<Envelope> result = parse_envelope(json, kNow);
  if (!result) {
    ADD_FAILURE() << json << ": " << result.error().message;
    return {};
  }
  return std::move(result).value();
}

// The error, whose subject is the member that is to blame.
Error refusal(const std::string& json) {
  Result<Envelope> result = parse_envelope(json, kNow);
  if (!result) return result.error();
  ADD_FAILURE() << json << " was accepted";
  return {};
}

TEST(Envelope, the_smallest_one_gets_the_defaults) {
  const Envelope envelope = read(R"({"type":"email.send","args":["user@example.com", "welcome"]})");
  EXPECT_EQ(envelope.type, "email.send");
  EXPECT_EQ(envelope.args, R"(["user@example.com","welcome"])");
  EXPECT_EQ(envelope.queue, "default");
  EXPECT_EQ(envelope.id, "");
  EXPECT_EQ(envelope.extra, "");
  EXPECT_EQ(envelope.scheduled_at_ms, 0u);
  EXPECT_EQ(envelope.expires_at_ms, 0u);
  EXPECT_EQ(envelope.timeout_ms, 0u);
  EXPECT_EQ(envelope.lease_ms, 0u);
  EXPECT_FALSE(envelope.pending);
  EXPECT_EQ(envelope.retry.max_attempts, 3);
  EXPECT_FALSE(envelope.retry.dead_letter);
}

TEST(Envelope, PRI_001_a_priority_is_any_integer) {
  for (const int priority : {0, 1, 2, 17, 255}) {
    EXPECT_EQ(read(with("\"priority\":" + std::to_string(priority))).priority, priority);
  }
}

TEST(Envelope, PRI_001_what_is_no_integer_is_no_priority) {
  for (const std::string_view value : {"1.5", "\"1\"", "true", "\"null\"", "1e2", "[1]", "{}"}) {
    const Error error = refusal(with("\"priority\":" + std::string(value)));
    EXPECT_EQ(error.code, Code::kInvalid) << value;
    EXPECT_EQ(error.subject, "priority") << value;
    EXPECT_NE(error.message.find("integer"), std::string::npos) << error.message;
  }
}

TEST(Envelope, PRI_002_an_omitted_priority_stays_open_for_the_default) {
  EXPECT_EQ(read(with("")).priority, std::nullopt);
  EXPECT_EQ(read(with("\"priority\":null")).priority, std::nullopt) << "ojs-json-format 14.2";
}

TEST(Envelope, PRI_T11_priority_is_a_member_of_the_top_level) {
  EXPECT_EQ(read(with("\"priority\":1")).priority, 1);
  EXPECT_EQ(read(with_option("\"priority\":1")).priority, 1);
  EXPECT_EQ(read(with(R"("priority":1,"options":{"priority":1})")).priority, 1);
  EXPECT_EQ(refusal(with(R"("priority":1,"options":{"priority":2})")).subject, "priority");
}

TEST(Envelope, PRI_T05_PRI_T14_a_huge_priority_reaches_the_convention_which_refuses_it) {
  EXPECT_EQ(read(with("\"priority\":99999999999999999999")).priority,
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read(with("\"priority\":-2147483648")).priority, -2147483648);
}

TEST(Envelope, a_whole_one_reads_into_its_members) {
  const Envelope envelope = read(R"({
    "specversion": "1.0", "id": "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "type": "report.generate",
    "args": [42, "quarterly", {"include_charts": true}],
    "meta": {"trace_id": "4bf9"}, "schema": "urn:x",
    "options": {"queue": "reports", "priority": 5, "timeout_ms": 120000, "visibility_timeout_ms": 30000,
                "delay_until": "+PT2S", "expires_at": "2099-12-31T23:59:59Z", "tags": ["q4"], "pending": false,
                "metadata": {"team": "x"},
                "retry": {"max_attempts": 5, "initial_interval": "PT0.2S", "backoff_coefficient": 1.5,
                          "max_interval": "PT1M", "jitter": false, "backoff_strategy": "linear",
                          "non_retryable_errors": ["auth.*"], "on_exhaustion": "dead_letter"}}})");
  EXPECT_EQ(envelope.id, kId);
  EXPECT_EQ(envelope.type, "report.generate");
  EXPECT_EQ(envelope.args, R"([42,"quarterly",{"include_charts":true}])");
  EXPECT_EQ(envelope.queue, "reports");
  EXPECT_EQ(envelope.priority, 5);
  EXPECT_EQ(envelope.timeout_ms, 120'000u);
  EXPECT_EQ(envelope.lease_ms, 30'000u);
  EXPECT_EQ(envelope.scheduled_at_ms, kNow + 2'000);
  EXPECT_EQ(envelope.expires_at_ms, 4'102'444'799'000u);
  EXPECT_EQ(envelope.retry.max_attempts, 5);
  EXPECT_EQ(envelope.retry.initial_ms, 200u);
  EXPECT_EQ(envelope.retry.max_ms, 60'000u);
  EXPECT_EQ(envelope.retry.coefficient, 1.5F);
  EXPECT_EQ(envelope.retry.backoff, RetryBackoff::kLinear);
  EXPECT_FALSE(envelope.retry.jitter);
  EXPECT_TRUE(envelope.retry.dead_letter);
  EXPECT_EQ(
      envelope.extra,
      R"({"schema":"urn:x","expires_at":"2099-12-31T23:59:59Z","tags":["q4"],)"
      R"("retry":{"max_attempts":5,"initial_interval":"PT0.2S","backoff_coefficient":1.5,"max_interval":"PT1M",)"
      R"("jitter":false,"backoff_strategy":"linear","non_retryable_errors":["auth.*"],"on_exhaustion":"dead_letter"},)"
      R"("meta":{"trace_id":"4bf9","team":"x"}})");
}

TEST(Envelope, every_option_may_stand_at_the_top_and_has_its_other_spellings) {
  for (const std::string& json :
       {with(R"("timeout_ms":2000)"), with(R"("timeout":2)"), with_option(R"("timeout":"PT2S")")})
    EXPECT_EQ(read(json).timeout_ms, 2'000u) << json;
  for (const std::string& json :
       {with(R"("visibility_timeout":3)"), with(R"("visibility_timeout":"PT3S")"),
        with_option(R"("visibility_timeout":"3s")"), with(R"("visibility_timeout_ms":3000)")})
    EXPECT_EQ(read(json).lease_ms, 3'000u) << json;
  for (const std::string& json :
       {with(R"("scheduled_at":"+PT5S")"), with_option(R"("delay_until":"2026-01-27T12:00:05Z")"),
        with(R"("scheduled_at":"+PT5S","options":{"delay_until":"2026-01-27T13:00:05+01:00"})")})
    EXPECT_EQ(read(json).scheduled_at_ms, kNow + 5'000) << json;
  for (const std::string& json :
       {with(R"("max_attempts":7)"), with(R"("retry":{"max_attempts":7})"),
        with_option(R"("retry_policy":{"max_attempts":7})"),
        with(R"("max_attempts":7,"retry":{"max_attempts":7})")})
    EXPECT_EQ(read(json).retry.max_attempts, 7) << json;
  EXPECT_TRUE(read(with("\"pending\":true")).pending);
}

TEST(Envelope, the_same_option_with_two_values_is_an_error_that_names_it) {
  const std::pair<std::string, std::string_view> contradictions[] = {
      {with(R"("queue":"a","options":{"queue":"b"})"), "queue"},
      {with(R"("timeout":1,"options":{"timeout_ms":2000})"), "timeout_ms"},
      {with(R"("visibility_timeout":1,"visibility_timeout_ms":2000)"), "visibility_timeout_ms"},
      {with(R"("scheduled_at":"+PT1S","delay_until":"+PT2S")"), "delay_until"},
      {with(R"("max_attempts":1,"retry":{"max_attempts":2})"), "retry.max_attempts"},
      {with(R"("retry":{"initial_interval":"PT1S","initial_interval_ms":2000})"),
       "retry.initial_interval_ms"},
      {with(R"("retry":{"jitter":true},"options":{"retry_policy":{"jitter":false}})"),
       "retry.jitter"},
      {with(R"("pending":true,"options":{"pending":false})"), "pending"},
      {with(R"("tags":["a"],"options":{"tags":["b"]})"), "tags"},
      {with(R"("meta":{"a":1},"metadata":{"a":2})"), "a"},
      {with(R"("x":1,"x":2)"), "x"},
      {R"({"type":"a","type":"b","args":[]})", "type"},
      {R"({"type":"a","args":[],"args":[1]})", "args"},
      {R"({"type":"a","args":[],"":1,"":2})", "''"}};
  for (const auto& [json, member] : contradictions) {
    const Error error = refusal(json);
    EXPECT_EQ(error.subject, member) << json;
    EXPECT_NE(error.message.find("twice"), std::string::npos) << error.message;
  }
}

TEST(Envelope, malformed_members_are_named) {
  const std::pair<std::string, std::string_view> malformed[] = {
      {R"({"args":[]})", "type"},
      {R"({"type":"email.send"})", "args"},
      {R"({"type":"Email.Send","args":[]})", "type"},
      {R"({"type":"","args":[]})", "type"},
      {R"({"type":7,"args":[]})", "type"},
      {R"({"type":"a","args":{"email":"x"}})", "args"},
      {R"({"type":"a","args":"x"})", "args"},
      {R"({"type":"a","args":null})", "args"},
      {with(R"("id":"550e8400-e29b-41d4-a716-446655440000")"), "id"},
      {with(R"("id":"")"), "id"},
      {with(R"("id":true)"), "id"},
      {with_option(R"("queue":"Default")"), "queue"},
      {with_option(R"("queue":"my_queue!")"), "queue"},
      {with_option(R"("queue":"")"), "queue"},
      {with(R"("timeout_ms":-1)"), "timeout_ms"},
      {with(R"("timeout_ms":1.5)"), "timeout_ms"},
      {with(R"("timeout_ms":4294967296)"), "timeout_ms"},
      {with(R"("timeout":-1)"), "timeout"},
      {with(R"("timeout":0)"), "timeout"},
      {with(R"("timeout":1.5)"), "timeout"},
      {with(R"("timeout":1e300)"), "timeout"},
      {with(R"("visibility_timeout":"P1Y")"), "visibility_timeout"},
      {with(R"("visibility_timeout":true)"), "visibility_timeout"},
      {with(R"("scheduled_at":"2026-01-27T12:00:00")"), "scheduled_at"},
      {with(R"("delay_until":"soon")"), "delay_until"},
      {with(R"("expires_at":1769515200)"), "expires_at"},
      {with(R"("expires_at":"2026-02-30T00:00:00Z")"), "expires_at"},
      {with(R"("pending":"yes")"), "pending"},
      {with(R"("meta":[])"), "meta"},
      {with(R"("tags":"a")"), "tags"},
      {with(R"("tags":["a",1])"), "tags"},
      {with(R"("options":[])"), "options"},
      {with(R"("unique":true)"), "unique"},
      {with(R"("rate_limit":5)"), "rate_limit"},
      {"[]", "job"},
      {"42", "job"},
      {"{", "json"},
      {"", "json"}};
  for (const auto& [json, member] : malformed) {
    const Error error = refusal(json);
    EXPECT_EQ(error.code, Code::kInvalid) << json;
    EXPECT_EQ(error.subject, member) << json << ": " << error.message;
  }
}

/// Source: ojs-json-format 14.2.
TEST(Envelope, an_optional_member_that_is_null_is_as_good_as_absent) {
  const Envelope absent = read(with(""));
  for (const char* member :
       {"id", "queue", "options", "timeout_ms", "timeout", "visibility_timeout_ms", "scheduled_at",
        "delay_until", "expires_at", "retry", "max_attempts", "pending", "meta", "tags", "unique",
        "rate_limit", "result_ttl", "priority_age_rate", "workflow"}) {
    SCOPED_TRACE(member);
    const Envelope null = read(with("\"" + std::string(member) + "\":null"));
    EXPECT_EQ(null.queue, absent.queue);
    EXPECT_EQ(null.extra, absent.extra);
    EXPECT_FALSE(null.wants_workflow);
  }
  EXPECT_EQ(read(with(R"("retry":{"max_attempts":5,"max_interval":null})")).retry.max_attempts, 5);
}

TEST(Envelope, a_malformed_retry_policy_is_told_by_its_member) {
  const std::pair<std::string_view, std::string_view> malformed[] = {
      {R"("max_attempts":-1)", "retry.max_attempts"},
      {R"("max_attempts":65536)", "retry.max_attempts"},
      {R"("max_attempts":"3")", "retry.max_attempts"},
      {R"("backoff_coefficient":0.5)", "retry.backoff_coefficient"},
      {R"("backoff_coefficient":"2")", "retry.backoff_coefficient"},
      {R"("backoff_coefficient":1e40)", "retry.backoff_coefficient"},
      {R"("initial_interval":"1 second")", "retry.initial_interval"},
      {R"("initial_interval":1)", "retry.initial_interval"},
      {R"("initial_interval_ms":-5)", "retry.initial_interval_ms"},
      {R"("max_interval":"P60D")", "retry.max_interval"},
      {R"("jitter":1)", "retry.jitter"},
      {R"("backoff_strategy":"quadratic")", "retry.backoff_strategy"},
      {R"("backoff_type":7)", "retry.backoff_type"},
      {R"("initial_interval":"PT0S")", "retry.initial_interval"},
      {R"("initial_interval":"PT5S","max_interval":"PT1S")", "retry.max_interval"},
      {R"("non_retryable_errors":["a",""])", "retry.non_retryable_errors"},
      {R"("on_exhaustion":"explode")", "retry.on_exhaustion"},
      {R"("non_retryable_errors":"auth")", "retry.non_retryable_errors"}};
  for (const auto& [members, subject] : malformed) {
    EXPECT_EQ(refusal(with(R"("retry":{)" + std::string(members) + "}")).subject, subject);
  }
  EXPECT_EQ(refusal(with(R"("retry":3)")).subject, "retry");
  EXPECT_EQ(refusal(with(R"("max_attempts":-1)")).subject, "retry.max_attempts");
}

TEST(Envelope, a_partial_retry_policy_keeps_the_other_defaults) {
  const Retry retry = read(with(R"("retry":{"max_attempts":10,"backoff_type":"none"})")).retry;
  EXPECT_EQ(retry.max_attempts, 10);
  EXPECT_EQ(retry.backoff, RetryBackoff::kConstant);
  EXPECT_EQ(retry.initial_ms, 1'000u);
  EXPECT_EQ(retry.max_ms, 300'000u);
  EXPECT_TRUE(retry.jitter);
}

TEST(Envelope, over_long_names_and_meta_have_their_own_code_and_bound) {
  const Error type = refusal(R"({"args":[],"type":")" + std::string(256, 'a') + "\"}");
  EXPECT_EQ(type.code, Code::kTooLarge);
  EXPECT_EQ(type.bound, 255u);
  const Error queue = refusal(with(R"("queue":")" + std::string(129, 'a') + "\""));
  EXPECT_EQ(queue.code, Code::kTooLarge);
  EXPECT_EQ(queue.bound, 128u);
  const Error meta = refusal(with(R"("meta":{"a":")" + std::string(kMaxMetaBytes, 'a') + "\"}"));
  EXPECT_EQ(meta.code, Code::kTooLarge);
  EXPECT_EQ(meta.subject, "meta");
  EXPECT_EQ(meta.bound, kMaxMetaBytes);
}

TEST(Envelope, a_message_quotes_no_more_than_the_beginning_of_a_value) {
  EXPECT_LT(refusal(with(R"("id":")" + std::string(100'000, 'x') + "\"")).message.size(), 200u);
  const std::string message =
      refusal(with("\"id\":\"" + std::string(38, 'x') + "\xe2\x82\xac\xe2\x82\xac\"")).message;
  std::string quoted;
  json::append_quoted(quoted, message);
  EXPECT_EQ(quoted.find("\xef\xbf\xbd"), std::string::npos)
      << "a character was cut in two: " << message;
}

TEST(Envelope, unknown_members_are_preserved_to_the_digit) {
  const Envelope envelope = read(with(R"("x_custom": 1.50, "x_big": 123456789012345678901234567890,
                                        "x_nested": {"b": 1, "a": [ ]}, "options": {"maxAttempts": 3})"));
  EXPECT_EQ(envelope.extra,
            R"({"x_custom":1.50,"x_big":123456789012345678901234567890,"x_nested":{"b":1,"a":[]},)"
            R"("options":{"maxAttempts":3}})");
}

TEST(Envelope, members_that_the_system_manages_are_ignored) {
  const Envelope envelope = read(
      with(R"("state":"completed","attempt":9,"created_at":"never","error":{"code":"x"},"result":1,
                                        "worker_id":"w","progress":2,"specversion":"1.0")"));
  EXPECT_EQ(envelope.extra, "");
}

TEST(Envelope, times_that_print_otherwise_are_kept_in_the_clients_words) {
  EXPECT_EQ(read(with(R"("expires_at":"2099-12-31T23:59:59.000Z")")).extra, "");
  EXPECT_EQ(read(with(R"("expires_at":"+PT2S")")).extra, "");
  EXPECT_EQ(read(with(R"("delay_until":"2099-12-31T23:59:59Z")")).extra,
            R"({"scheduled_at":"2099-12-31T23:59:59Z"})");
}

TEST(Envelope, a_member_of_a_policy_that_means_nothing_is_kept_and_pointed_out) {
  const Envelope envelope = read(with(R"("unique":{"keys":["type"],"x":1})"));
  EXPECT_TRUE(envelope.unique.has_value());
  EXPECT_EQ(envelope.unknown, std::vector<std::string>{"unique.x"});
  EXPECT_EQ(envelope.extra, R"({"unique":{"keys":["type"],"x":1}})");
}

TEST(Envelope, times_before_1970_are_past_and_not_unset) {
  EXPECT_EQ(read(with(R"("expires_at":"1970-01-01T00:00:00Z")")).expires_at_ms, 1u);
  EXPECT_EQ(read(with(R"("scheduled_at":"0000-01-01T00:00:00Z")")).scheduled_at_ms, 1u);
}

TEST(Envelope, what_must_be_granted_elsewhere_is_kept_and_pointed_out) {
  const Envelope envelope =
      read(with(R"("unique":{"keys":["type"]},"rate_limit":{"key":"k","concurrency":5})"));
  EXPECT_TRUE(envelope.unique.has_value());
  EXPECT_TRUE(envelope.wants_rate_limit);
  EXPECT_FALSE(envelope.wants_workflow);
  EXPECT_EQ(envelope.extra,
            R"({"unique":{"keys":["type"]},"rate_limit":{"key":"k","concurrency":5}})");
  EXPECT_TRUE(read(with(R"("workflow":{"chain":[]})")).wants_workflow);
  EXPECT_FALSE(read(with("")).unique.has_value());
}

TEST(Envelope, the_spec_views_the_envelope) {
  const Envelope envelope = read(with(
      R"("id":"019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f","priority":1,"queue":"q","x":1,"timeout_ms":5,
      "visibility_timeout_ms":6,"pending":true,"scheduled_at":"+1s","expires_at":"+2s","max_attempts":9)"));
  const JobSpec spec = envelope.spec();
  EXPECT_EQ(spec.type, "email.send");
  EXPECT_EQ(spec.args, R"(["a"])");
  EXPECT_EQ(spec.queue, "q");
  EXPECT_EQ(spec.id, kId);
  EXPECT_EQ(spec.extra, R"({"x":1})");
  EXPECT_EQ(spec.priority, 1);
  EXPECT_EQ(spec.scheduled_at_ms, kNow + 1'000);
  EXPECT_EQ(spec.expires_at_ms, kNow + 2'000);
  EXPECT_EQ(spec.timeout_ms, 5u);
  EXPECT_EQ(spec.lease_ms, 6u);
  EXPECT_TRUE(spec.pending);
  EXPECT_EQ(spec.retry.max_attempts, 9);
}

TEST(Envelope, QO_05_the_example_types_and_single_arguments_of_qo_are_read) {
  EXPECT_EQ(
      read(R"({"type":"send_alert","args":[{"message":"Server down!"}],"priority":255})").type,
      "send_alert");
  EXPECT_EQ(args_of_input(R"( {"message": "Server down!"} )").value(),
            R"([{"message":"Server down!"}])");
  EXPECT_EQ(args_of_input("[1, 2]").value(), "[1,2]");
  EXPECT_EQ(args_of_input("null").value(), "[null]");
  EXPECT_EQ(args_of_input("oops").code(), Code::kInvalid);
}

TEST(Envelope, many_members_take_no_longer_than_few_each) {
  std::string json = R"({"type":"a","args":[])";
  for (int i = 0; i < 100'000; ++i) json += ",\"k" + std::to_string(i) + "\":" + std::to_string(i);
  EXPECT_EQ(read(json + "}").extra.size(),
            json.size() - std::string_view(R"("type":"a","args":[],)").size() + 1);
}

// One character of a valid envelope changed: it is refused with a subject, or read, but never more
// than that.
TEST(Envelope, any_damaged_envelope_is_read_or_refused) {
  test::Seeded random;
  const std::string whole =
      with(R"("id":"019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f","priority":1,"meta":{"a":"\u00e9"},
      "options":{"queue":"q","retry":{"max_attempts":3,"initial_interval":"PT1S"},
      "scheduled_at":"+PT5S","tags":["x"]})");
  for (int i = 0; i < 100'000; ++i) {
    std::string json = whole;
    for (std::int64_t n = random.between(1, 3); n > 0; --n) {
      const auto place = static_cast<std::size_t>(random.between(0, std::ssize(json) - 1));
      if (random.coin())
        json[place] = static_cast<char>(random.between(0, 255));
      else
        json.erase(place, static_cast<std::size_t>(random.between(1, 8)));
    }
    const Result<Envelope> result = parse_envelope(json, kNow);
    if (result) {
      ASSERT_TRUE(json::check(result.value().args)) << json;
      const std::string& extra = result.value().extra;
      ASSERT_TRUE(extra.empty() || json::check(extra)) << json;
    } else {
      ASSERT_FALSE(result.error().message.empty()) << json;  // the member it names may itself be ""
    }
  }
}

}  // namespace
}  // namespace ojs_shm
