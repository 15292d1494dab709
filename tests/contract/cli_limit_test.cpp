// SPDX-License-Identifier: Apache-2.0
// `ojs-shm limit`, `rate_limit` of an envelope, and [limits] of the broker's file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

class CliLimit : public testing::Test {
 protected:
  Finished limit(std::vector<std::string> words, bool json = true) const {
    words.insert(words.begin(), "limit");
    if (json) words.emplace_back("--json");
    return segment_.cli(words);
  }
  LiveSegment segment_;
};

TEST_F(CliLimit, PRI_G4_RL_an_envelope_brings_its_limit_and_gets_it_back) {
  const std::string envelope =
      R"({"type":"payment.process","queue":"payments","args":[{"amount":9999}],"priority":1,)"
      R"("rate_limit":{"key":"payment-api","concurrency":5}})";
  const Finished put = segment_.cli({"enqueue"}, envelope + "\n");
  ASSERT_EQ(put.exit_code, 0) << put.err;
  const std::string id = lines_of(put.out).front();
  EXPECT_EQ(segment_.job(id, "rate_limit.concurrency"), "5");
  const Finished got = limit({"get", "payment-api"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(member(got.out, "concurrency.limit"), "5");
  EXPECT_EQ(member(got.out, "concurrency.available"), "5");
  EXPECT_EQ(member(got.out, "override"), "false");
}

TEST_F(CliLimit, a_limit_is_set_listed_and_removed) {
  const Finished set =
      limit({"set", "queue:mail", "--concurrency", "3", "--rate", "100/minute", "--window",
             "sliding", "--throttle", "10/PT1S", "--burst", "2", "--on-limit", "reschedule"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  for (const auto& [path, value] : {std::pair{"concurrency.limit", "3"},
                                    {"rate.limit", "100"},
                                    {"rate.period", "PT1M"},
                                    {"rate.window", "sliding"},
                                    {"throttle.limit", "10"},
                                    {"throttle.period", "PT1S"},
                                    {"throttle.burst", "2"},
                                    {"on_limit", "reschedule"},
                                    {"override", "true"},
                                    {"waiting_count", "0"}})
    EXPECT_EQ(member(set.out, path), value) << path;
  EXPECT_THAT(limit({"list"}, false).out,
              HasSubstr("queue:mail\t3\t0\t0\t100/60s\t10/1s\treschedule\t0"));
  EXPECT_EQ(limit({"rm", "queue:mail"}).exit_code, 0);
  EXPECT_EQ(member(limit({"get", "queue:mail"}).out, "override"), "false");
  EXPECT_EQ(limit({"rm", "none"}).exit_code, 4);
  EXPECT_EQ(limit({"get", "none"}).exit_code, 4);
}

TEST_F(CliLimit, PRI_T22_PRI_T23_a_key_that_is_set_to_none_holds_its_jobs_back_and_no_others) {
  ASSERT_EQ(limit({"set", "api", "--concurrency", "0"}).exit_code, 0);
  const Finished put =
      segment_.cli({"enqueue"}, R"({"type":"a","args":[],"priority":0,"rate_limit":{"key":"api"}})"
                                "\n"
                                R"({"type":"a","args":[],"priority":4})"
                                "\n");
  ASSERT_EQ(put.exit_code, 0) << put.err;
  const std::string held = lines_of(put.out)[0], plain = lines_of(put.out)[1];
  EXPECT_EQ(segment_.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment_.job(held, "state"), "available");
  EXPECT_EQ(segment_.job(plain, "state"), "completed");
  EXPECT_EQ(member(limit({"get", "api"}).out, "waiting_count"), "1");
  EXPECT_THAT(segment_.cli({"stats", "--metrics"}).out,
              HasSubstr("ojs_rate_limit_waiting{key=\"api\",segment=\"test\"} 1"));
  ASSERT_EQ(limit({"set", "api", "--concurrency", "1"}).exit_code, 0);
  EXPECT_EQ(segment_.cli({"work", "--count", "1", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment_.job(held, "state"), "completed");
}

TEST_F(CliLimit, PRI_T22_a_throttle_lets_jobs_go_when_they_are_due) {
  ASSERT_EQ(limit({"set", "queue:default", "--throttle", "20/second"}).exit_code, 0);
  std::string envelopes;
  for (int i = 0; i < 5; ++i)
    envelopes += R"({"type":"a","args":[]})"
                 "\n";
  ASSERT_EQ(segment_.cli({"enqueue"}, envelopes).exit_code, 0);
  EXPECT_EQ(segment_.cli({"work", "--count", "5", "--", "true"}).exit_code, 0);
}

TEST_F(CliLimit, what_is_no_limit_is_refused_by_the_name_of_the_member) {
  const auto put = [&](const std::string& rule, std::vector<std::string> call = {"enqueue"}) {
    return segment_.cli(call, R"({"type":"a","args":[],"rate_limit":)" + rule + "}\n");
  };
  const auto refused = [&](const std::string& rule) {
    const Finished done = put(rule);
    EXPECT_EQ(done.exit_code, 1) << rule;
    return done.err;
  };
  EXPECT_THAT(refused("{}"), HasSubstr("rate_limit.key"));
  EXPECT_THAT(refused(R"({"key":" x"})"), HasSubstr("rate_limit.key"));
  EXPECT_THAT(refused(R"({"key":"k","concurrency":-1})"), HasSubstr("rate_limit.concurrency"));
  EXPECT_THAT(refused(R"({"key":"k","rate":{"limit":5}})"), HasSubstr("rate_limit.rate.period"));
  EXPECT_THAT(refused(R"({"key":"k","rate":{"limit":9000,"period":"PT1S","window":"sliding"}})"),
              HasSubstr("8192"));
  EXPECT_THAT(refused(R"({"key":"k","on_limit":"explode"})"), HasSubstr("rate_limit.on_limit"));
  const std::string stranger = R"({"key":"k","speed":1})";
  EXPECT_THAT(put(stranger, {"enqueue", "--strict"}).err, HasSubstr("rate_limit.speed"));
  EXPECT_EQ(put(stranger).exit_code, 0);
  EXPECT_EQ(limit({"set", "queue:No!", "--concurrency", "1"}).exit_code, 2);
  EXPECT_EQ(limit({"set", "k", "--rate", "ten"}).exit_code, 2);
  EXPECT_EQ(limit({"set", "k", "--burst", "2"}).exit_code, 2);
}

TEST_F(CliLimit, forms_of_other_suites_are_understood) {
  const auto put = [&](const std::string& rule) {
    const Finished done =
        segment_.cli({"enqueue"}, R"({"type":"a","queue":"q","args":[],"options":{"rate_limit":)" +
                                      rule + "}}\n");
    EXPECT_EQ(done.exit_code, 0) << done.err;
  };
  put(R"({"key":"a","rate":1,"period":"second"})");
  EXPECT_EQ(member(limit({"get", "a"}).out, "rate.period"), "PT1S");
  put(R"({"max_per_second":7})");
  EXPECT_EQ(member(limit({"get", "queue:q"}).out, "rate.limit"), "7");
}

TEST_F(CliLimit, events_name_the_key) {
  ASSERT_EQ(limit({"set", "api", "--concurrency", "0"}).exit_code, 0);
  ASSERT_EQ(segment_.cli({"events", "--on"}).exit_code, 0);
  ASSERT_EQ(segment_
                .cli({"enqueue"}, R"({"type":"a","args":[],"rate_limit":{"key":"api"}})"
                                  "\n")
                .exit_code,
            0);
  EXPECT_EQ(segment_.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  ASSERT_EQ(limit({"set", "api", "--concurrency", "1"}).exit_code, 0);
  const std::string told = segment_.cli({"events", "--json"}).out;
  EXPECT_THAT(told, HasSubstr(R"("type":"rate_limit.exceeded")"));
  EXPECT_THAT(told, HasSubstr(R"("type":"rate_limit.released")"));
  EXPECT_THAT(told, HasSubstr(R"("key":"api")"));
}

TEST(BrokerLimits, limits_stand_in_the_file_and_a_wrong_one_names_its_line) {
  const ScratchDirectory folder;
  const std::string path = folder / "broker.toml";
  std::ofstream(path)
      << "[limits.\"queue:mail\"]\nconcurrency = 2\nrate = {limit = 10, period = \"PT1H\"}\n"
         "[limits.api]\non_limit = \"drop\"\nconcurrency = 1\n";
  const LiveSegment segment({"--config", path});
  EXPECT_EQ(member(segment.cli({"limit", "get", "queue:mail", "--json"}).out, "rate.limit"), "10");
  EXPECT_EQ(member(segment.cli({"limit", "get", "api", "--json"}).out, "on_limit"), "drop");
  std::ofstream(path) << "[limits.api]\nconcurrency = 1\nspeed = 2\n";
  const Finished refused =
      run({program("ojs-shm-broker"), "--name", "other", "--dir", folder.path(), "--config", path});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("broker.toml:3"));
}

}  // namespace
}  // namespace ojs_shm::test
