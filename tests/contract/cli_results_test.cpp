// SPDX-License-Identifier: Apache-2.0
// How long results are kept, and jobs that are gone, from the command line.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

std::string worked_off(const LiveSegment& segment, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"-t", "a"};
  words.insert(words.end(), flags.begin(), flags.end());
  const std::string id = segment.enqueue(words);
  EXPECT_EQ(segment.cli({"work", "--count", "1", "--", "echo", "7"}).exit_code, 0);
  return id;
}

TEST(CliResults, a_result_is_kept_for_as_long_as_the_job_says) {
  const LiveSegment segment;
  const std::string hour = worked_off(segment, {"--result-ttl", "1h"});
  EXPECT_EQ(segment.job(hour, "result"), "7");
  EXPECT_EQ(segment.job(hour, "result_ttl"), "3600");
  EXPECT_NE(segment.job(hour, "result_expires_at"), "");
  EXPECT_EQ(segment.cli({"wait", hour}).out, "7\n");
  const std::string endless = worked_off(segment, {"--result-ttl", "never"});
  EXPECT_EQ(segment.job(endless, "result_ttl"), "-1");
  EXPECT_EQ(segment.job(endless, "result_expires_at"), "");
  EXPECT_EQ(segment.job(worked_off(segment, {"--result-ttl", "1.5s"}), "result_ttl"), "2");
}

TEST(CliResults, one_that_is_not_kept_is_told_so) {
  const LiveSegment segment;
  const std::string id = worked_off(segment, {"--result-ttl", "0"});
  const Finished waited = segment.cli({"wait", id});
  EXPECT_EQ(waited.exit_code, 0);
  EXPECT_EQ(waited.out, "");
  EXPECT_EQ(waited.err, "job " + id + " was completed; its result is kept no longer\n");
  EXPECT_EQ(segment.job(id, "result_pruned"), "true");
  EXPECT_NE(segment.cli({"get", id}).out.find("result_pruned\ttrue\n"), std::string::npos);
}

TEST(CliResults, lines_of_envelopes_say_it_and_what_is_no_time_is_refused) {
  const LiveSegment segment;
  const Finished lines = segment.cli({"enqueue"},
                                     "{\"type\":\"a\",\"args\":[],\"result_ttl\":60}\n"
                                     "{\"type\":\"a\",\"args\":[],\"result_ttl\":-2}\n");
  EXPECT_EQ(lines.exit_code, 1);
  ASSERT_EQ(lines_of(lines.out).size(), 1U);
  EXPECT_EQ(segment.job(lines_of(lines.out)[0], "result_ttl"), "60");
  EXPECT_NE(lines.err.find("result_ttl must be a whole number of seconds from -1"),
            std::string::npos)
      << lines.err;
  for (const char* wrong : {"-1", "soon", "40000d"})
    EXPECT_EQ(segment.cli({"enqueue", "-t", "a", "--result-ttl", wrong}).exit_code, 2) << wrong;
}

TEST(CliResults, a_job_that_is_gone_is_told_from_one_that_never_was) {
  const LiveSegment segment;
  const std::string id =
      segment.enqueue({"-t", "a", "--retry", "max_attempts=1,on_exhaustion=dead_letter"});
  segment.cli({"work", "--count", "1", "--", "false"});
  ASSERT_EQ(segment.cli({"dead", "drop", id}).exit_code, 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"get", id},
                                                {"wait", id},
                                                {"cancel", id},
                                                {"activate", id},
                                                {"promote", id},
                                                {"reprioritize", id, "1"},
                                                {"dead", "retry", id},
                                                {"dead", "drop", id}}) {
    const Finished gone = segment.cli(words);
    EXPECT_EQ(gone.exit_code, 4) << words[0];
    EXPECT_EQ(gone.err, "job " + id +
                            " is gone: it ended and its room was needed, or it was "
                            "deleted\n")
        << words[0];
  }
  EXPECT_EQ(member(segment.cli({"get", id, "--json"}).err, "error.gone"), "true");
  const Finished never = segment.cli({"get", "01961234-5678-7abc-8def-0123456789ab", "--json"});
  EXPECT_EQ(member(never.err, "error.gone"), "") << never.err;
}

}  // namespace
}  // namespace ojs_shm::test
