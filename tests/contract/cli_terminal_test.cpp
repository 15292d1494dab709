// SPDX-License-Identifier: Apache-2.0
// What the programs write to a terminal: colours, progress bars, and never a byte of a job that the
// terminal would obey. script(1) gives them the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kGreen = "\x1b[32m";

std::string jobs_as_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += "{\"type\":\"a\",\"args\":[]}\n";
  return lines;
}

class Terminal : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run({"sh", "-c", "command -v script"}).exit_code != 0)
      GTEST_SKIP() << "NOT RUN: there is no script(1)";
  }
  /// What a terminal gets of stdout and stderr; `rest` may send one of them elsewhere.
  Finished shown(const std::string& words, const std::string& rest = "",
                 const std::string& variables = "TERM=xterm NO_COLOR=") const {
    const std::string command =
        program("ojs-shm") + " " + words + " --name test --dir " + segment_.folder().path() + rest;
    return run({"sh", "-c", variables + " script -qec '" + command + "' /dev/null"});
  }
  static std::ptrdiff_t bars(const std::string& text) {
    std::ptrdiff_t count = 0;
    for (std::size_t at = 0; (at = text.find("\r\x1b[K[", at)) != std::string::npos; ++at) ++count;
    return count;
  }
  LiveSegment segment_;
};

TEST_F(Terminal, shows_states_in_colours_unless_it_is_told_not_to) {
  segment_.enqueue({"-t", "a"});
  ASSERT_EQ(segment_.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  for (const char* words : {"list", "doctor", "stats", "queue list", "segments"}) {
    EXPECT_THAT(shown(words).out, HasSubstr(kGreen)) << words;
    EXPECT_THAT(shown(words, "", "TERM=xterm NO_COLOR=1").out, Not(HasSubstr("\x1b["))) << words;
    EXPECT_THAT(shown(words, "", "TERM=dumb NO_COLOR=").out, Not(HasSubstr("\x1b["))) << words;
    EXPECT_THAT(shown(words, " | cat").out, Not(HasSubstr("\x1b["))) << words;
  }
  EXPECT_THAT(shown("get abc").out, HasSubstr("\x1b[31m'abc' is not a job id"));
  EXPECT_THAT(shown("get abc", "", "NO_COLOR=1").out, Not(HasSubstr("\x1b[")));
}

TEST_F(Terminal, columns_stand_below_each_other_also_in_colours) {
  segment_.enqueue({"-t", "a"});
  const auto plain = [](std::string text) {
    for (std::size_t at = 0; (at = text.find("\x1b[")) != std::string::npos;)
      text.erase(at, text.find('m', at) - at + 1);
    return text;
  };
  EXPECT_EQ(plain(shown("queue list").out), shown("queue list", "", "TERM=xterm NO_COLOR=1").out);
}

TEST_F(Terminal, the_broker_s_log_has_colours_unless_it_is_told_not_to) {
  const auto log = [](const std::string& variables) {
    const ScratchDirectory folder;
    // The pipe tells when it is ready; its log goes to the terminal.
    const std::string command = "mkfifo " + folder.path() + "/fifo; " + program("ojs-shm-broker") +
                                " --slots 100 --name b --dir " + folder.path() + " > " +
                                folder.path() + "/fifo & read line < " + folder.path() +
                                "/fifo; kill $!; wait";
    return run({"sh", "-c", variables + " script -qec '" + command + "' /dev/null"}).out;
  };
  EXPECT_THAT(log("TERM=xterm NO_COLOR="), HasSubstr(kGreen));
  const std::string plain = log("TERM=xterm NO_COLOR=1");
  EXPECT_THAT(plain, HasSubstr("stopping"));
  EXPECT_THAT(plain, Not(HasSubstr("\x1b[")));
}

TEST_F(Terminal, long_commands_draw_a_bar_that_is_not_drawn_for_each_step) {
  ASSERT_EQ(segment_.cli({"enqueue"}, jobs_as_lines(5000)).exit_code, 0);
  const std::string file = segment_.folder() / "export";
  // The bars that the clock allows: ten a second, the first and the last.
  auto begun = std::chrono::steady_clock::now();
  const auto allowed = [&begun] {
    return static_cast<std::ptrdiff_t>((std::chrono::steady_clock::now() - begun) /
                                       std::chrono::milliseconds(100)) +
           2;
  };
  const std::string out = shown("export", " > " + file).out;
  EXPECT_THAT(out, HasSubstr("] 100 %"));
  EXPECT_LE(bars(out), allowed()) << out;

  const LiveSegment to;
  const std::string import =
      program("ojs-shm") + " import " + file + " --name test --dir " + to.folder().path();
  begun = std::chrono::steady_clock::now();
  const Finished imported =
      run({"sh", "-c", "script -qec '" + import + " > " + file + ".report' /dev/null"});
  EXPECT_THAT(imported.out, HasSubstr("] 100 %  5000 jobs, 0 there already, 0 refused"));
  EXPECT_LE(bars(imported.out), allowed());

  begun = std::chrono::steady_clock::now();
  const std::string simulated = shown("simulate --synthetic jobs=5000,rate=0", " > /dev/null").out;
  EXPECT_THAT(simulated, HasSubstr("] 100 %  5000 jobs played"));
  EXPECT_LE(bars(simulated), allowed());
}

TEST_F(Terminal, what_takes_no_time_leaves_no_bar_before_its_answer) {
  segment_.enqueue({"-t", "a"});
  const std::string out = shown("queue clear default --yes").out;
  EXPECT_THAT(out, HasSubstr("1 job cancelled"));
  EXPECT_THAT(out, Not(HasSubstr("%")));
}

TEST_F(Terminal, drain_shows_how_many_jobs_are_left) {
  const std::string go = segment_.folder() / "go";
  const std::string id = segment_.enqueue({"-t", "a"});
  Process worker = segment_.start_cli(
      {"work", "--count", "1", "--", "sh", "-c", "while ! test -e " + go + "; do :; done"});
  ASSERT_TRUE(segment_.becomes(id, "active"));
  EXPECT_THAT(shown("drain --timeout 300ms").out, HasSubstr("1 jobs left"));
  std::ofstream(go) << "";
  EXPECT_EQ(worker.wait().exit_code, 0);
}

TEST(CliBytes, no_command_prints_bytes_that_a_terminal_would_obey) {
  const LiveSegment segment;
  const std::string raw[] = {"\x1b", "\x7f", "\xC2\x9B", "\xE2\x80\xAE"};
  const std::string args = "[\"\\u001bx\x7f\xC2\x9B\xE2\x80\xAEy\"]";
  auto producer = Producer::attach(segment.where()).value();
  const auto id = producer.enqueue({.type = "a", .args = args});
  ASSERT_TRUE(id) << id.error().message;
  auto admin = Admin::attach(segment.where()).value();
  ASSERT_TRUE(admin.set_limit("tenant:x\x1b[31m", {.concurrency = 1}).ok());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"get", id->str(), "--json"},
        {"get", id->str()},
        {"list", "--json"},
        {"export"},
        {"limit", "list"},
        {"limit", "list", "--json"},
        {"stats", "--metrics"},
        {"stats", "--json"},
        {"get", "\x1b[31m"},
        {"\x1b[31m"},
        {"enqueue", "-t", "\x1b[31m"},
        {"enqueue", "-t", "a", "--delay", "\x1b[31m"}}) {
    const Finished done = segment.cli(words);
    for (const std::string& bytes : raw)
      EXPECT_THAT(done.out + done.err, Not(HasSubstr(bytes))) << words[0];
  }
  EXPECT_EQ(segment.job(id->str(), "args"), "[\"\\u001bx\\u007f\\u009b\\u202ey\"]");
}

TEST(CliBytes, texts_of_clients_are_written_out_by_every_command_that_shows_them) {
  const LiveSegment segment({"--events"});
  const std::string hostile =
                        "x\x1b[31m\xC2\x9B"
                        "31my",
                    json = "x\\u001b[31m\\u009b31my";
  const auto cli = [&](const std::vector<std::string>& words, const std::string& text = {}) {
    const Finished done = segment.cli(words, text);
    EXPECT_EQ(done.exit_code, 0) << words[0] << ": " << done.err;
    return done;
  };
  const std::string workflow =
      cli({"workflow", "run", "-"},
          "{\"type\":\"chain\",\"name\":\"" + json + "\",\"steps\":[{\"type\":\"a\",\"args\":[]}]}")
          .out.substr(0, 36);
  cli({"cron", "set", "c", "@hourly", "--type", "a", "--description", hostile});
  const std::string id =
      cli({"enqueue"}, R"({"type":"a","queue":"t","args":[],"meta":{"tenant_id":")" + json + "\"}}")
          .out.substr(0, 36);
  auto worker = Worker::attach(segment.where(), {.queues = {"t"}, .id = hostile}).value();
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  ASSERT_TRUE(worker.nack(job, {.code = "smtp", .message = hostile}));
  int shown = 0;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"workers", "list"},
                                                {"workers", "get", hostile},
                                                {"workflow", "list"},
                                                {"workflow", "get", workflow},
                                                {"cron", "list"},
                                                {"cron", "get", "c"},
                                                {"events"},
                                                {"audit"},
                                                {"doctor"},
                                                {"get", id},
                                                {"list"},
                                                {"stats"}})
    for (const bool as_json : {false, true}) {
      std::vector<std::string> asked = words;
      if (as_json) asked.emplace_back("--json");
      const Finished done = segment.cli(asked);
      for (const char* bytes : {"\x1b", "\xC2\x9B"})
        EXPECT_THAT(done.out + done.err, Not(HasSubstr(bytes))) << words[0] << done.out;
      shown += done.out.find("[31m") != std::string::npos ? 1 : 0;
    }
  EXPECT_GE(shown, 8) << "the texts must have been shown";
}

TEST(CliFiles, what_is_not_a_file_is_written_to_and_a_link_stays) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  const std::string fifo = segment.folder() / "fifo", link = segment.folder() / "link";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Process reader = Process::start({"cat", fifo});
  ASSERT_EQ(segment.cli({"stats", "--metrics", "--out", fifo}).exit_code, 0);
  EXPECT_THAT(reader.wait().out, HasSubstr("ojs_queue_depth"));
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  std::ofstream(segment.folder() / "real") << "old";
  std::filesystem::create_symlink(segment.folder() / "real", link);
  ASSERT_EQ(segment.cli({"stats", "--metrics", "--out", link}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_GT(std::filesystem::file_size(segment.folder() / "real"), 100U);
}

TEST(CliRefusals, a_full_disk_is_answered_with_what_to_do) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  for (const char* words : {"list", "export", "stats --metrics"}) {
    const Finished done = run({"sh", "-c",
                               program("ojs-shm") + " " + words + " --name test --dir " +
                                   segment.folder().path() + " > /dev/full"});
    EXPECT_EQ(done.exit_code, 6) << words;
    EXPECT_THAT(done.err, HasSubstr("No space left on device; make room there")) << words;
  }
}

/// More than one buffer: the write fails long before the last flush, which has nothing to write.
TEST(CliRefusals, a_full_disk_is_no_space_also_for_a_long_answer) {
  const LiveSegment segment;
  const std::string args = "[\"" + std::string(200'000, 'x') + "\"]";
  ASSERT_EQ(segment.cli({"enqueue"}, R"({"type":"a","args":)" + args + "}\n").exit_code, 0);
  const Finished done = run({"sh", "-c",
                             program("ojs-shm") + " list --json --name test --dir " +
                                 segment.folder().path() + " > /dev/full"});
  EXPECT_EQ(done.exit_code, 6);
  EXPECT_THAT(done.err, HasSubstr("\"no_space\""));
}

TEST(CliRefusals, behind_two_dashes_stand_no_flags) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  EXPECT_EQ(member(segment.cli({"get", "--json", "--", id}).out, "id"), id);
  EXPECT_EQ(segment.cli({"queue", "get", "--", "--odd"}).exit_code, 4);
  EXPECT_EQ(segment.cli({"list", "--", "more"}).exit_code, 2);
  EXPECT_EQ(run({program("ojs-shm"), "--name", "work", "--dir", segment.folder().path(), "list",
                 "--", "more"})
                .exit_code,
            2)
      << "a segment's name is not a command";
}

TEST(CliRefusals, a_negative_count_is_refused) {
  const LiveSegment segment;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "--sort", "created", "--offset", "-1"},
        {"audit", "--recent", "--limit", "-1"}}) {
    const Finished done = segment.cli(words);
    EXPECT_EQ(done.exit_code, 2) << words[0];
    EXPECT_THAT(done.err, HasSubstr("must not be negative")) << words[0];
  }
}

TEST(CliRefusals, a_progress_that_is_refused_leaves_no_checkpoint) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  auto worker = Worker::attach(segment.where(), {}).value();
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  for (const char* fraction : {"7", "nan"})
    EXPECT_EQ(segment.cli({"progress", fraction, id, "--checkpoint", "{\"row\":1}"}).exit_code, 2);
  EXPECT_EQ(job.last_checkpoint(), "");
  EXPECT_EQ(segment.cli({"progress", "0.5", id, "--checkpoint", "{\"row\":1}"}).exit_code, 0);
  EXPECT_EQ(job.last_checkpoint(), "{\"row\":1}");
}

/// 2^63 nanoseconds are 292 years.
TEST(CliRefusals, a_time_beyond_the_clock_is_a_long_one) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  auto worker = Worker::attach(segment.where(), {}).value();
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  Process drain = segment.start_cli({"drain", "--empty", "--timeout", "P300Y"});
  Process wait = segment.start_cli({"wait", std::string(job.id()), "--timeout", "P300Y"});
  ASSERT_TRUE(
      eventually([&] { return segment.is_mapped_by(drain) && segment.is_mapped_by(wait); }));
  ASSERT_FALSE(eventually([&] { return !drain.running() || !wait.running(); },
                          std::chrono::milliseconds(300)));
  ASSERT_TRUE(worker.ack(job));
  EXPECT_EQ(drain.wait().exit_code, 0);
  EXPECT_EQ(wait.wait().exit_code, 0);
}

TEST(CliRefusals, what_is_not_a_time_is_answered_with_one_that_is) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"enqueue", "-t", "a", "--delay", "5x"},
        {"enqueue", "-t", "a", "--timeout", "5x"},
        {"wait", id, "--timeout", "5x"},
        {"drain", "--timeout", "5x"},
        {"list", "--older-than", "5x"}}) {
    const Finished done = segment.cli(words);
    EXPECT_NE(done.exit_code, 0) << words[0];
    EXPECT_THAT(done.err, HasSubstr("for example 500ms, 30s")) << words[0];
  }
  EXPECT_THAT(segment.cli({"enqueue", "-t", "a", "--at", "5x"}).err,
              HasSubstr("for example 2026-03-01T12:00:00Z, or a duration"));
  EXPECT_THAT(segment.cli({"enqueue", "-t", "a", "--retry", "initial=5x"}).err,
              HasSubstr("such as \"PT1S\""));
}

}  // namespace
}  // namespace ojs_shm::test
