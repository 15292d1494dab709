// SPDX-License-Identifier: Apache-2.0
// Crons on the command line and in the broker's file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <array>
#include <fstream>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

Finished set(const LiveSegment& segment, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"cron",       "set",    "nightly",
                                    "30 4 * * *", "--type", "report.night"};
  words.insert(words.end(), more.begin(), more.end());
  return segment.cli(words);
}

TEST(CliCrons, one_is_set_shown_changed_and_removed) {
  const LiveSegment segment;
  const Finished made = set(segment, {"-i", R"({"n":1})", "--queue", "reports", "--timezone",
                                      "Europe/Berlin", "--priority", "high"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const std::string got = segment.cli({"cron", "get", "nightly", "--json"}).out;
  EXPECT_EQ(member(got, "expression"), "30 4 * * *");
  EXPECT_EQ(member(got, "timezone"), "Europe/Berlin");
  EXPECT_EQ(member(got, "overlap_policy"), "skip");
  EXPECT_EQ(member(got, "options.queue"), "reports");
  EXPECT_THAT(got, HasSubstr(R"("args":[{"n":1}])"));
  EXPECT_THAT(got, HasSubstr(R"("priority":1)"));

  EXPECT_EQ(segment.cli({"cron", "set", "nightly", "--overlap", "allow"}).exit_code, 0);
  const std::string changed = segment.cli({"cron", "get", "nightly", "--json"}).out;
  EXPECT_EQ(member(changed, "overlap_policy"), "allow");
  EXPECT_EQ(member(changed, "timezone"), "Europe/Berlin");
  EXPECT_THAT(changed, HasSubstr(R"("args":[{"n":1}])"));

  EXPECT_THAT(segment.cli({"cron", "list"}).out, HasSubstr("nightly\tenabled\t30 4 * * *"));
  EXPECT_EQ(segment.cli({"cron", "pause", "nightly"}).exit_code, 0);
  EXPECT_THAT(segment.cli({"cron", "list"}).out, HasSubstr("nightly\tpaused\t"));
  EXPECT_THAT(segment.cli({"cron", "get", "nightly", "--json"}).out,
              HasSubstr(R"("next_run_at":null)"));
  EXPECT_EQ(segment.cli({"cron", "resume", "nightly"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"cron", "rm", "nightly"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"cron", "rm", "nightly"}).exit_code, 4);
  EXPECT_EQ(segment.cli({"cron", "list"}).out, "");
}

TEST(CliCrons, a_trigger_prints_the_job_that_it_enqueued) {
  const LiveSegment segment;
  ASSERT_EQ(set(segment).exit_code, 0);
  const Finished triggered = segment.cli({"cron", "trigger", "nightly"});
  EXPECT_EQ(triggered.exit_code, 0) << triggered.err;
  const std::string job = segment.cli({"get", triggered.out.substr(0, 36), "--json"}).out;
  EXPECT_EQ(member(job, "type"), "report.night");
  EXPECT_THAT(job, HasSubstr(R"("cron_name":"nightly")"));
  EXPECT_THAT(segment.cli({"stats", "--metrics"}).out,
              HasSubstr("ojs_cron_runs_total{cron=\"nightly\",segment=\"test\"} 1"));
  EXPECT_EQ(segment.cli({"cron", "trigger", "nightly"}).exit_code, 5) << "its job goes on";
  EXPECT_EQ(segment.cli({"cron", "trigger", "none"}).exit_code, 4);
}

TEST(CliCrons, the_next_times_of_an_expression_and_of_a_cron) {
  const LiveSegment segment;
  const Finished next = segment.cli({"cron", "next", "30 1 * * *", "--timezone", "America/New_York",
                                     "--after", "2026-10-31T12:00:00Z", "--times", "2"});
  EXPECT_EQ(next.out, "2026-11-01T05:30:00.000Z\n2026-11-02T06:30:00.000Z\n");
  ASSERT_EQ(set(segment, {"--timezone", "Asia/Tokyo"}).exit_code, 0);
  EXPECT_EQ(segment
                .cli({"cron", "next", "nightly", "--after", "2026-01-01T00:00:00Z", "--times", "1",
                      "--json"})
                .out,
            "\"2026-01-01T19:30:00.000Z\"\n");
}

TEST(CliCrons, a_file_says_all_of_it) {
  const LiveSegment segment;
  const Finished made = segment.cli({"cron", "set", "hourly", "--file", "-"},
                                    R"({"cron":"@hourly","type":"cache.warm","enabled":false})");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(segment.cli({"cron", "list"}).out, HasSubstr("hourly\tpaused\t@hourly"));
}

TEST(CliCrons, a_schedule_is_the_third_spelling) {
  const LiveSegment segment;
  const Finished made = segment.cli({"cron", "set", "c", "--file", "-"},
                                    R"({"schedule":"@hourly","type":"cache.warm"})");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(member(segment.cli({"cron", "get", "c", "--json"}).out, "expression"), "@hourly");
  EXPECT_EQ(segment
                .cli({"cron", "set", "c", "--file", "-"},
                     R"({"schedule":"@hourly","cron":"@daily","type":"cache.warm"})")
                .exit_code,
            2);
}

TEST(CliCrons, a_file_may_name_the_priority_in_both_places) {
  const LiveSegment segment;
  const std::vector<std::string> words = {"cron", "set", "c", "--file", "-"};
  const std::string high =
      segment.job(segment.enqueue({"-t", "a", "--priority", "high"}), "priority");
  for (const char* text :
       {R"({"cron":"@hourly","type":"a","priority":"high"})",
        R"({"cron":"@hourly","job_template":{"type":"a","options":{"priority":"high"}}})"}) {
    const Finished made = segment.cli(words, text);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(member(segment.cli({"cron", "get", "c", "--json"}).out, "options.priority"), high);
  }
  const Finished wrong = segment.cli(words, R"({"cron":"@hourly","type":"a","priority":"hihg"})");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("hihg"));
}

TEST(CliCrons, a_member_that_no_cron_has_is_told_of_and_refused_by_strict) {
  const std::string text = R"({"cron":"@hourly","type":"cache.warm","overlap":"allow"})";
  const std::vector<std::string> words = {"cron", "set", "c", "--file", "-"};
  const LiveSegment lenient, strict({"--strict-envelopes"});
  const Finished warned = lenient.cli(words, text);
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  EXPECT_THAT(warned.err, HasSubstr("`overlap`, did you mean `overlap_policy`?"));
  for (const Finished& refused :
       {lenient.cli({"cron", "set", "d", "--file", "-", "--strict"}, text),
        strict.cli(words, text)}) {
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("a cron has no member `overlap`"));
  }
  EXPECT_EQ(strict.cli({"cron", "list"}).out, "");
  const Finished same = strict.cli(words, R"({"cron":"@hourly","type":"cache.warm"})");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(strict.cli(words, strict.cli({"cron", "get", "c", "--json"}).out).exit_code, 0)
      << "as it was printed";
}

TEST(CliCrons, what_is_wrong_is_named) {
  const LiveSegment segment;
  const Finished field = segment.cli({"cron", "set", "x", "99 * * * *", "--type", "a"});
  EXPECT_EQ(field.exit_code, 2);
  EXPECT_THAT(field.err, HasSubstr("minute: 99"));
  const Finished zone = set(segment, {"--timezone", "EST"});
  EXPECT_EQ(zone.exit_code, 2);
  EXPECT_THAT(zone.err, HasSubstr("EST"));
  EXPECT_EQ(segment.cli({"cron", "set", "x", "@daily"}).exit_code, 2) << "no type";
  EXPECT_EQ(segment.cli({"cron", "set", "x"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"cron", "get", "x"}).exit_code, 4);
  const Finished when = segment.cli({"cron", "next", "@daily", "--after", "yesterday"});
  EXPECT_EQ(when.exit_code, 2);
  EXPECT_THAT(when.err, HasSubstr("such as 2026-03-29T00:00:00Z"));
}

std::string file_in(const ScratchDirectory& folder, const std::string& text) {
  const std::string file = folder / "broker.toml";
  std::ofstream(file) << text;
  return file;
}

TEST(CliCrons, the_brokers_file_sets_crons_and_leaves_alone_what_is_set_already) {
  const ScratchDirectory folder;
  const std::string file = file_in(folder, R"([crons.nightly]
expression = "30 4 * * *"
timezone = "Europe/Berlin"
overlap_policy = "allow"
job_template = { type = "report.night", args = [{ kind = "sales" }], options = { queue = "reports" } }
[crons.hourly]
cron = "@hourly"
type = "cache.warm"
)");
  LiveSegment segment({"--config", file, "--keep"});
  const std::string nightly = segment.cli({"cron", "get", "nightly", "--json"}).out;
  EXPECT_EQ(member(nightly, "timezone"), "Europe/Berlin");
  EXPECT_EQ(member(nightly, "overlap_policy"), "allow");
  EXPECT_THAT(nightly, HasSubstr(R"("args":[{"kind":"sales"}])"));
  EXPECT_THAT(segment.cli({"cron", "list"}).out, HasSubstr("hourly\tenabled\t@hourly"));

  ASSERT_EQ(segment.cli({"cron", "trigger", "nightly"}).exit_code, 0);
  ASSERT_EQ(segment.cli({"cron", "set", "hourly", "--overlap", "enqueue"}).exit_code, 0);
  const std::string before = segment.cli({"cron", "get", "nightly", "--json"}).out;
  segment.broker().signal(SIGTERM);
  ASSERT_EQ(segment.broker().wait().exit_code, 0);
  segment.start_broker({"--config", file});
  EXPECT_EQ(segment.cli({"cron", "get", "nightly", "--json"}).out, before);
  EXPECT_EQ(member(segment.cli({"cron", "get", "hourly", "--json"}).out, "overlap_policy"), "skip");
}

TEST(CliCrons, what_is_wrong_in_the_brokers_file_is_named_with_its_line) {
  for (const auto& [text, line, what] : std::vector<std::array<std::string, 3>>{
           {"[crons.x]\nexpression = \"99 * * * *\"\ntype = \"a\"\n", ":2:", "minute: 99"},
           {"[crons.x]\nexpression = \"@daily\"\ntimezone = \"EST\"\ntype = \"a\"\n", ":3:", "EST"},
           {"[crons.x]\nexpression = \"@daily\"\ntype = \"a\"\ncolour = 1\n", ":4:", "colour"},
           {"crons = 1\n", ":1:", "table"}}) {
    const ScratchDirectory folder;
    const Finished done = run({OJS_SHM_BIN_DIR "/ojs-shm-broker", "--name", "test", "--dir",
                               folder.path(), "--config", file_in(folder, text)});
    EXPECT_NE(done.exit_code, 0) << text;
    EXPECT_THAT(done.err, HasSubstr(line)) << text;
    EXPECT_THAT(done.err, HasSubstr(what)) << text;
  }
}

}  // namespace
}  // namespace ojs_shm::test
