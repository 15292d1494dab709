// SPDX-License-Identifier: Apache-2.0
// `ojs-shm enqueue --unique` and `unique` in lines of envelopes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

class CliUnique : public testing::Test {
 protected:
  Finished enqueue(std::vector<std::string> more, const std::string& input = "") const {
    std::vector<std::string> words = {"enqueue", "-t", "once"};
    words.insert(words.end(), more.begin(), more.end());
    return segment_.cli(words, input);
  }
  LiveSegment segment_;
};

TEST_F(CliUnique, a_duplicate_is_refused_with_the_others_id) {
  const Finished first =
      enqueue({"--unique", "args", "-i", R"({"user":1,"n":1})", "--unique-args", "user"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Finished second =
      enqueue({"--unique", "args", "-i", R"({"user":1,"n":2})", "--unique-args", "user"});
  EXPECT_EQ(second.exit_code, 5) << second.err;
  EXPECT_THAT(second.err, HasSubstr(lines_of(first.out).front()));
  EXPECT_THAT(second.err, HasSubstr("available"));
  EXPECT_EQ(enqueue({"--unique", "args", "-i", R"({"user":2})", "--unique-args", "user"}).exit_code,
            0);
}

TEST_F(CliUnique, ignore_prints_the_others_id) {
  const std::vector<std::string> content = {"--unique",        "type", "--on-conflict", "ignore",
                                            "--unique-period", "1h"};
  const Finished first = enqueue(content), second = enqueue(content);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(first.out, second.out);
  std::vector<std::string> json = content;
  json.emplace_back("--json");
  EXPECT_EQ(member(enqueue(json).out, "deduplicated"), "true");
}

TEST_F(CliUnique, SUM_10_replace_cancels_the_other) {
  const std::vector<std::string> words = {"--unique",
                                          R"({"keys":["type"],"on_conflict":"replace"})"};
  const Finished old = enqueue(words), fresh = enqueue(words);
  ASSERT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(segment_.job(lines_of(old.out).front(), "state"), "cancelled");
  EXPECT_EQ(segment_.job(lines_of(fresh.out).front(), "state"), "available");
}

TEST_F(CliUnique, flags_that_are_none_are_refused) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--unique", "argz"},
           {"--on-conflict", "ignore"},
           {"--unique", "{"},
           {"--unique", R"({"keys":["type"]})", "--raise-priority"}}) {
    const Finished refused = enqueue(words);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("unique"));
  }
}

TEST_F(CliUnique, a_duplicate_among_lines_of_envelopes_is_told_and_the_rest_goes_in) {
  const std::string line = R"({"type":"once","args":[],"unique":{"keys":["type"]}})";
  const Finished put =
      segment_.cli({"enqueue"}, line + "\n" + line + "\n" + R"({"type":"a","args":[]})" + "\n");
  EXPECT_NE(put.exit_code, 0);
  EXPECT_THAT(put.err, HasSubstr("unique key"));
  EXPECT_EQ(lines_of(put.out).size(), 2U);
}

TEST_F(CliUnique, an_export_brings_the_key_into_another_segment) {
  const Finished first = enqueue({"--unique", "type"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Finished text = segment_.cli({"export"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  const LiveSegment other;
  const Finished in = other.cli({"import", "-"}, text.out);
  ASSERT_EQ(in.exit_code, 0) << in.err;
  EXPECT_EQ(other.cli({"enqueue", "-t", "once", "--unique", "type"}).exit_code, 5);
}

TEST_F(CliUnique, an_import_refuses_a_job_whose_key_another_has_and_goes_on) {
  ASSERT_EQ(enqueue({"--unique", "type"}).exit_code, 0);
  const std::string text = segment_.cli({"export"}).out;
  const LiveSegment other;
  const std::string there = other.enqueue({"-t", "once", "--unique", "type"});
  const Finished in =
      other.cli({"import", "-", "--json"}, text + R"({"job":{"type":"b","priority":1}})" + "\n");
  EXPECT_EQ(in.exit_code, 1);
  EXPECT_EQ(member(in.out, "refused"), "1");
  EXPECT_EQ(member(in.out, "jobs"), "1");
  EXPECT_THAT(in.err, HasSubstr(there));
}

}  // namespace
}  // namespace ojs_shm::test
