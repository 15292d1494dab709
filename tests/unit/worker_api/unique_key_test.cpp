// SPDX-License-Identifier: Apache-2.0
// Unique keys: the canonical JSON of what counts, and which policies are none.
#include "worker_api/json/unique_key.hpp"

#include <gtest/gtest.h>

#include "worker_api/json/canonical.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::test {
namespace {

using json::canonical;

std::string key(std::string_view policy, std::string_view args = "[1]",
                std::string_view extra = "") {
  JobSpec spec;
  spec.type = "email.send";
  spec.args = args;
  spec.extra = extra;
  const auto unique = JobUnique::of(spec, policy);
  return unique ? unique->key() : "refused: " + unique.error().subject;
}

/// The examples of RFC 8785 3.2.2 and appendix B.
TEST(UniqueKey, canonical_json_is_that_of_the_rfc) {
  EXPECT_EQ(
      canonical(R"({"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
    "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]})"),
      "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
      "\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
  EXPECT_EQ(canonical("[0, -0, 5e-324, 1.7976931348623157e308, 9007199254740992, 1e21, "
                      "999999999999999900000, 1e-7, 123456.789, -1.50]"),
            "[0,0,5e-324,1.7976931348623157e+308,9007199254740992,1e+21,"
            "999999999999999900000,1e-7,123456.789,-1.5]");
  EXPECT_EQ(
      canonical(R"({"\u20ac":1,"\r":2,"\ufb01":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7})"),
      "{\"\\r\":2,\"1\":4,\"\xC2\x80\":6,\"ö\":7,\"€\":1,\"😀\":5,\"ﬁ\":3}");
}

TEST(UniqueKey, texts_are_composed_and_large_integers_keep_their_digits) {
  EXPECT_EQ(canonical("\"e\xCC\x81\""), "\"é\"");
  EXPECT_NE(canonical("9007199254740993"), canonical("9007199254740992"));
}

/// printf '{"args":[1],"type":"email.send"}' | sha256sum
TEST(UniqueKey, is_the_sha256_of_what_counts) {
  EXPECT_EQ(key(R"({"keys":["args"]})"),
            "2ba65bfc85557bb2418d39273d7ef03ff7143a761c79e2b1b63c1b6db2df506d");
}

TEST(UniqueKey, counts_only_what_the_policy_names) {
  const std::string by_user = R"({"keys":["args"],"args_keys":["user"]})";
  EXPECT_EQ(key(by_user, R"([{"user":7,"text":"a"}])"),
            key(by_user, R"([{"text":"b","user":7.0}])"));
  EXPECT_NE(key(by_user, R"([{"user":7}])"), key(by_user, R"([{"user":"7"}])"));
  const std::string by_meta = R"({"keys":["type","meta"],"meta_keys":["site"]})";
  EXPECT_EQ(key(by_meta, "[1]", R"({"meta":{"site":"a","trace":1}})"),
            key(by_meta, "[2]", R"({"meta":{"site":"a","trace":2}})"));
  EXPECT_EQ(key(R"({"keys":["type"]})", "[1]"), key("{}", "[2]"));
}

TEST(UniqueKey, a_policy_that_is_none_is_refused_with_its_member) {
  EXPECT_EQ(key(R"({"keys":["argz"]})"), "refused: unique.keys");
  EXPECT_EQ(key(R"({"keys":["meta"]})"), "refused: unique.meta_keys");
  EXPECT_EQ(key(R"({"keys":["args"],"args_keys":["absent"]})"), "refused: unique.args_keys");
  EXPECT_EQ(key(R"({"keys":["meta"],"meta_keys":["absent"]})"), "refused: unique.meta_keys");
  EXPECT_EQ(key(R"({"period":"soon"})"), "refused: unique.period");
  EXPECT_EQ(key(R"({"period":3600})"), "refused: unique.period");
  EXPECT_EQ(key(R"({"states":["waiting"]})"), "refused: unique.states");
  EXPECT_EQ(key(R"({"states":[]})"), "refused: unique.states");
  EXPECT_EQ(key(R"({"on_conflict":"merge"})"), "refused: unique.on_conflict");
  EXPECT_EQ(key(R"({"perod":"PT1H"})"), "refused: unique");
  EXPECT_EQ(key(R"({"fingerprint":"short"})"), "refused: unique.fingerprint");
}

/// Clients write it in several ways. Source: requirements B.2.
TEST(UniqueKey, other_spellings_mean_the_same) {
  EXPECT_EQ(key(R"({"key":["args"]})"), key(R"({"keys":["type","args"]})"));
  EXPECT_EQ(key(R"({"key":"queue"})"), key(R"({"keys":["queue"]})"));
  EXPECT_EQ(key(R"({"key":["user"]})", R"([{"user":7,"n":1}])"),
            key(R"({"keys":["args"],"args_keys":["user"]})", R"([{"user":7,"n":2}])"));
  const auto read = [](std::string_view policy) {
    json::Complaint complaint;
    const UniquePolicy one = json::read_unique(policy, complaint);
    EXPECT_FALSE(complaint.raised());
    return one;
  };
  EXPECT_EQ(read(R"({"on_conflict":"use_existing"})").on_conflict, OnConflict::kIgnore);
  EXPECT_EQ(read(R"({"on_conflict":null,"raise_priority":null})").on_conflict, OnConflict::kReject);
  EXPECT_EQ(read(R"({"within":"PT1H"})").period_ms, 3'600'000U);
  EXPECT_EQ(read(R"({"period_ms":5})").period_ms, 5U);
  EXPECT_EQ(read("{}").states, 0b10'1111);
}

TEST(UniqueKey, a_job_that_was_printed_is_read_with_the_same_key) {
  JobInfo job;
  job.id = "01961234-5678-7abc-8def-0123456789ab";
  job.type = "email.send";
  job.queue = "default";
  job.args = "[1]";
  job.unique_key = "0123456789abcdef0123456789abcdef";
  job.unique.period_ms = 60'000;
  job.unique.on_conflict = OnConflict::kReplace;
  const auto read = parse_envelope(print_job(job), 0);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read->unique.has_value());
  EXPECT_EQ(read->unique->key().substr(0, 32), job.unique_key);
  EXPECT_EQ(read->unique->policy().period_ms, 60'000U);
  EXPECT_EQ(read->unique->on_conflict(), OnConflict::kReplace);
}

}  // namespace
}  // namespace ojs_shm::test
