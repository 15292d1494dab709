// SPDX-License-Identifier: Apache-2.0
// `ojs-shm enqueue --on-full`: retries, circuit breaker and local buffer of the command line.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

/// A segment with a queue that has room for one job, which is there.
struct FullSegment : LiveSegment {
  FullSegment() {
    bound(1);
    enqueue({"-t", "first"});
  }
  void bound(int jobs) const {
    const Finished set = cli({"queue", "set", "default", "--max-depth", std::to_string(jobs)});
    EXPECT_EQ(set.exit_code, 0) << set.err;
  }
  std::string rejected() const {
    return member(cli({"queue", "get", "default", "--json"}).out, "totals.rejected");
  }
};

const std::string kTwoLines = "{\"type\":\"a\",\"args\":[1]}\n{\"type\":\"a\",\"args\":[2]}\n";

TEST(CliOnFull, BP_P1_enqueue_tries_again_and_then_says_that_the_queue_is_full) {
  const FullSegment segment;
  const Finished refused = segment.cli({"enqueue", "-t", "a", "--on-full", "retry=1", "--json"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_EQ(member(refused.err, "error.code"), "QUEUE_FULL") << refused.err;
  EXPECT_EQ(segment.rejected(), "2");
  EXPECT_EQ(segment.cli({"enqueue", "-t", "a"}).exit_code, 6);
  EXPECT_EQ(segment.rejected(), "3") << "once unless asked for";
}

TEST(CliOnFull, BP_P1_BP_G2_room_that_appears_meanwhile_is_used) {
  const FullSegment segment;
  Process waiting = segment.start_cli({"enqueue", "-t", "a", "--on-full", "retry=20,max=1s"});
  ASSERT_TRUE(eventually([&] { return segment.rejected() != "0"; }));
  segment.bound(2);
  const Finished done = waiting.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(segment.job(lines_of(done.out).at(0), "type"), "a");
}

TEST(CliOnFull, BP_P2_refusals_in_a_row_open_the_circuit) {
  const FullSegment segment;
  const Finished refused =
      segment.cli({"enqueue", "--on-full", "breaker=2"}, kTwoLines + kTwoLines);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("line 4: "), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("2 refusals in a row"), std::string::npos) << refused.err;
  EXPECT_EQ(segment.rejected(), "2") << "of four lines";
}

TEST(CliOnFull, BP_P3_lines_wait_in_memory_and_are_sent_when_there_is_room) {
  const FullSegment segment;
  ProcessOptions options;
  options.input = kTwoLines;
  Process waiting = segment.start_cli({"enqueue", "--on-full", "buffer=10"}, options);
  const auto one = waiting.read_line(), two = waiting.read_line();
  ASSERT_TRUE(one && two) << waiting.err();
  EXPECT_EQ(segment.job(*one, "args"), "") << "known, but not there yet";
  segment.bound(0);
  const Finished done = waiting.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(segment.job(*one, "args"), "[1]");
  EXPECT_EQ(segment.job(*two, "args"), "[2]");
}

TEST(CliOnFull, BP_P3_lines_that_could_not_be_sent_are_named_at_the_end) {
  const FullSegment segment;
  const Finished done = segment.cli({"enqueue", "--on-full", "buffer=10,flush=1ms"}, kTwoLines);
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.err.find("line 1: "), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("line 2: "), std::string::npos) << done.err;
  const Finished one = segment.cli({"enqueue", "-t", "a", "--on-full", "buffer=1,flush=1ms"});
  EXPECT_EQ(one.exit_code, 6) << one.out;
  EXPECT_EQ(one.out, "");
  EXPECT_EQ(lines_of(segment.cli({"list"}).out).size(), 1U);
}

TEST(CliOnFull, a_policy_that_says_nothing_or_nonsense_is_status_2) {
  const LiveSegment segment;
  for (const char* policy :
       {"retry", "retry=0", "retry=x", "retry=1,max=soon", "max=1s", "patience=3"}) {
    const Finished done = segment.cli({"enqueue", "-t", "a", "--on-full", policy});
    EXPECT_EQ(done.exit_code, 2) << policy << done.err;
  }
  const Finished both =
      segment.cli({"enqueue", "-t", "a", "--on-full", "retry=1", "--block-timeout", "1s"});
  EXPECT_EQ(both.exit_code, 2) << "the one would be without effect";
  EXPECT_EQ(segment.cli({"list"}).out, "");
}

}  // namespace
}  // namespace ojs_shm::test
