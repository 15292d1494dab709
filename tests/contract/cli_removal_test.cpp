// SPDX-License-Identifier: Apache-2.0
// Dead letters in time and the end of queues, on the command line and in the broker's file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t dead_letters(const LiveSegment& segment) {
  return lines_of(segment.cli({"dead", "list"}).out).size();
}

void bury(const LiveSegment& segment, int jobs) {
  for (int i = 0; i < jobs; ++i)
    segment.enqueue({"-t", "a", "--retry", "max_attempts=1,on_exhaustion=dead_letter"});
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "false"}).exit_code, 0);
}

TEST(CliRemoval, dead_letters_are_kept_as_it_is_set) {
  const LiveSegment segment;
  std::string kept = segment.cli({"dead", "retention", "--json"}).out;
  EXPECT_EQ(member(kept, "max_age"), "P180D");
  EXPECT_EQ(member(kept, "max_count"), "10000");
  bury(segment, 3);
  EXPECT_EQ(dead_letters(segment), 3U);
  kept = segment.cli({"dead", "retention", "--max-age", "30d", "--max-count", "1", "--json"}).out;
  EXPECT_EQ(member(kept, "max_age"), "P30D");
  EXPECT_EQ(member(kept, "max_count"), "1");
  EXPECT_TRUE(eventually([&] { return dead_letters(segment) == 1; }));
  std::string stats;
  EXPECT_TRUE(eventually([&] {
    stats = segment.cli({"stats", "--json"}).out;
    return stats.find("\"pruned\":2") != std::string::npos;
  })) << stats;
  EXPECT_EQ(member(stats, "segment.dead_max_count"), "1");
  EXPECT_THAT(segment.cli({"stats", "--metrics"}).out,
              HasSubstr("ojs_dead_letter_pruned_total{queue=\"default\",segment=\"test\"} 2"));
  ASSERT_EQ(segment.cli({"dead", "retention", "--max-age", "0", "--max-count", "0"}).exit_code, 0);
  const std::string none = segment.cli({"dead", "retention"}).out;
  EXPECT_THAT(none, HasSubstr("max_age\tnull"));
  EXPECT_THAT(none, HasSubstr("max_count\tnull"));
  EXPECT_EQ(segment.cli({"dead", "retention", "--max-age", "soon"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"dead", "retention", "--max-count", "-1"}).exit_code, 2);
}

TEST(CliRemoval, a_queue_keeps_its_jobs_as_long_as_it_says) {
  const LiveSegment segment;
  const Finished set = segment.cli(
      {"queue", "set", "mail", "--retention", "completed=10ms,discarded=P30D", "--json"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(member(set.out, "retention.discarded"), "P30D");
  const std::string id = segment.enqueue({"-t", "a", "--queue", "mail"});
  EXPECT_EQ(segment.cli({"work", "--queue", "mail", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return segment.cli({"get", id}).exit_code == 4; }));
  const std::string off =
      segment.cli({"queue", "set", "mail", "--retention", "completed=off", "--json"}).out;
  EXPECT_THAT(off, HasSubstr(R"("retention":{"discarded":"P30D"})"));
  EXPECT_THAT(segment.cli({"queue", "set", "mail", "--retention", "off", "--json"}).out,
              HasSubstr(R"("retention":{})"));
  EXPECT_EQ(segment.cli({"queue", "set", "mail", "--retention", "done=1d"}).exit_code, 2);
}

TEST(CliRemoval, lost_jobs_run_again) {
  const LiveSegment segment;
  const std::string lost = segment.enqueue({"-t", "a", "--retry", "max_attempts=1"}),
                    off = segment.enqueue({"-t", "a", "--queue", "other"});
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "false"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"cancel", off}).exit_code, 0);
  EXPECT_EQ(segment.cli({"retry", "--queue", "default"}).out, "1 job available again\n");
  EXPECT_EQ(segment.job(lost, "state"), "available");
  EXPECT_EQ(segment.job(lost, "attempt"), "0");
  EXPECT_EQ(segment.cli({"retry", "--queue", "other"}).out, "0 jobs available again\n");
  EXPECT_EQ(segment.cli({"retry", off}).exit_code, 0);
  EXPECT_EQ(segment.job(off, "state"), "available");
  const Finished again = segment.cli({"retry", off});
  EXPECT_EQ(again.exit_code, 5);
  EXPECT_THAT(again.err, HasSubstr("available"));
}

TEST(CliRemoval, the_broker_sets_how_they_are_kept) {
  const LiveSegment flags({"--dead-max-age", "90d", "--dead-max-count", "0"});
  EXPECT_THAT(flags.cli({"dead", "retention", "--json"}).out,
              HasSubstr(R"("max_age":"P90D","max_count":null)"));
  const LiveSegment setup;  // for the folder
  const std::string file = setup.folder() / "broker.toml";
  std::ofstream(file) << "dead_max_age = \"1d\"\ndead_max_count = 77\n"
                         "[queues.mail]\nretention = { completed = \"7d\", cancelled = 60 }\n";
  const LiveSegment read({"--config", file});
  EXPECT_THAT(read.cli({"dead", "retention", "--json"}).out,
              HasSubstr(R"("max_age":"P1D","max_count":77)"));
  EXPECT_THAT(read.cli({"queue", "get", "mail", "--json"}).out,
              HasSubstr(R"("retention":{"completed":"P7D","cancelled":"PT1M"})"));
}

TEST(CliRemoval, a_queue_is_deleted) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"queue", "delete", "mail"}).exit_code, 4);
  segment.enqueue({"-t", "a", "--queue", "mail"});
  const Finished refused = segment.cli({"queue", "delete", "mail"});
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("queue 'mail' has 1 job that has not finished"));
  const Finished done = segment.cli({"queue", "delete", "mail", "--discard", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "{\"queue\":\"mail\",\"discarded\":1}\n");
  EXPECT_THAT(segment.cli({"queue", "list"}).out, Not(HasSubstr("mail")));
  EXPECT_EQ(segment.cli({"queue", "get", "mail"}).exit_code, 4);
  segment.enqueue({"-t", "a", "--queue", "mail"});
  EXPECT_THAT(segment.cli({"queue", "list"}).out, HasSubstr("mail"));
}

TEST(CliRemoval, plain_stats_show_crons) {
  const LiveSegment segment;
  EXPECT_THAT(segment.cli({"stats"}).out, Not(HasSubstr("cron\t")));
  ASSERT_EQ(segment.cli({"cron", "set", "nightly", "30 4 * * *", "--type", "a"}).exit_code, 0);
  EXPECT_THAT(segment.cli({"stats"}).out, HasSubstr("cron\tnightly\tenabled\t"));
  EXPECT_THAT(segment.cli({"stats", "--json"}).out, HasSubstr(R"("crons":[{"name":"nightly")"));
  const std::string command =
      program("ojs-shm") + " stats --name test --dir " + segment.folder().path();
  const std::string screen = run({"sh", "-c", "script -qec '" + command + "' /dev/null"}).out;
  EXPECT_THAT(screen, HasSubstr("CRON"));
  EXPECT_THAT(screen, HasSubstr("nightly"));
}

}  // namespace
}  // namespace ojs_shm::test
