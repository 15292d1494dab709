// SPDX-License-Identifier: Apache-2.0
// How the programs speak: help, versions, guesses at what was meant, one line for what was done,
// quiet, what operators ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kPrograms[] = {"ojs-shm", "ojs-shm-broker", "ojs-shm-exporter",
                                     "ojs-shm-gateway", "ojs-shm-top"};

Finished cli(Words words) {
  words.insert(words.begin(), program("ojs-shm"));
  return run(words);
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(CliHelp, help_with_a_command_is_that_commands_help) {
  EXPECT_EQ(cli({"help"}).out, cli({"--help"}).out);
  for (const Words& command : {Words{"enqueue"}, {"queue", "set"}, {"dead"}}) {
    Words asked = {"help"}, flag = command;
    asked.insert(asked.end(), command.begin(), command.end());
    flag.emplace_back("--help");
    const Finished help = cli(asked);
    EXPECT_EQ(help.exit_code, 0) << command[0];
    EXPECT_EQ(help.out, cli(flag).out) << command[0];
    EXPECT_THAT(help.out, HasSubstr(command.back())) << command[0];
  }
  EXPECT_EQ(cli({"help", "nothing"}).exit_code, 2);
}

TEST(CliHelp, the_short_flag_tells_the_version_of_every_program) {
  for (const char* name : kPrograms) {
    const Finished done = run({program(name), "-V"});
    EXPECT_EQ(done.exit_code, 0) << name;
    EXPECT_THAT(done.out, testing::StartsWith(std::string(name) + " ")) << name;
    EXPECT_EQ(done.out, run({program(name), "--version"}).out) << name;
  }
}

TEST(CliHelp, a_misspelt_flag_of_every_program_is_answered_with_the_one_that_is_near) {
  for (const char* name : kPrograms) {
    Words words = {program(name), "--nmae", "x"};
    if (name == std::string("ojs-shm")) words.insert(words.begin() + 1, "stats");
    const Finished done = run(words);
    EXPECT_EQ(done.exit_code, 2) << name;
    EXPECT_THAT(done.err, HasSubstr("did you mean `--name`?")) << name;
  }
}

TEST(CliHelp, a_misspelt_word_is_answered_with_the_one_that_is_near) {
  EXPECT_THAT(cli({"enqeue"}).err,
              HasSubstr("there is no command `enqeue`; did you mean `enqueue`?"));
  EXPECT_THAT(cli({"queue", "sett"}).err, HasSubstr("did you mean `set`?"));
  EXPECT_THAT(cli({"enqueue", "--priorty", "1"}).err, HasSubstr("did you mean `--priority`?"));
  const Finished far = cli({"florbl"});
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_THAT(far.err, testing::Not(HasSubstr("did you mean")));
}

TEST(CliSetters, say_in_one_line_what_is_so_now_unless_they_are_to_be_quiet) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.cli({"queue", "pause", "default"}).out,
            "queue default is paused: it accepts jobs and gives none\n");
  EXPECT_EQ(segment.cli({"queue", "resume", "default"}).out,
            "queue default gives its jobs again\n");
  EXPECT_EQ(segment.cli({"queue", "pause", "default", "--quiet"}).out, "");
  EXPECT_EQ(segment.cli({"queue", "resume", "default", "--json"}).out, "{\"done\":true}\n");
  EXPECT_EQ(segment.cli({"cancel", id}).out, id + " cancelled\n");
  const std::vector<std::pair<Words, std::string>> setters = {
      {{"queue", "set", "default", "--max-depth", "9"},
       "queue default is set; `queue get default` shows how\n"},
      {{"pool", "set", "p", "--queue", "default"}, "pool p is set; `pool get p` shows how\n"},
      {{"limit", "set", "k", "--concurrency", "1"}, "limit k is set; `limit get k` shows how\n"},
      {{"dead", "retention", "--max-age", "30d"},
       "dead letters are kept as set; `dead retention` shows how\n"},
      {{"maintenance", "on", "--reason", "r"},
       "no job is handed out until `ojs-shm maintenance off`\n"},
      {{"maintenance", "off"}, "jobs are handed out again\n"}};
  for (const auto& [words, said] : setters) {
    EXPECT_EQ(segment.cli(words).out, said);
    Words quietly = words, as_json = words;
    quietly.insert(quietly.begin(), "--quiet");
    EXPECT_EQ(segment.cli(quietly).out, "") << words[0];
    as_json.push_back("--json");
    EXPECT_EQ(lines_of(segment.cli(as_json).out).size(), 1U) << words[0];
  }
  EXPECT_EQ(segment.cli({"limit", "rm", "k"}).out,
            "k has no limit until a job is enqueued with one\n");
  EXPECT_EQ(lines_of(segment.cli({"enqueue", "-t", "a", "-q"}).out).size(), 1U)
      << "an id is an answer";
}

TEST(CliRefusals, a_full_queue_says_when_to_try_again) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"queue", "set", "default", "--max-depth", "1"}).exit_code, 0);
  segment.enqueue({"-t", "a"});
  const Finished refused = segment.cli({"enqueue", "-t", "a"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_THAT(refused.err, testing::ContainsRegex("; try again in [0-9.]+ s"));
}

TEST(CliDoctor, a_queue_that_drops_as_it_was_set_to_is_no_problem) {
  const LiveSegment segment;
  ASSERT_EQ(
      segment.cli({"queue", "set", "q", "--max-depth", "1", "--strategy", "drop_oldest"}).exit_code,
      0);
  for (int i = 0; i < 3; ++i) segment.enqueue({"-t", "a", "--queue", "q"});
  EXPECT_THAT(segment.cli({"doctor"}).out,
              HasSubstr("queue q\tok\tfull with 1 jobs; it drops older ones for new ones, 2"));
}

class ReadOnlyUser : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::chmod(segment_.folder().path().c_str(), 0755), 0);
    if (as_reader({"--version"}).exit_code != 0)
      GTEST_SKIP() << "NOT RUN: no other user can be taken on here";
  }
  Finished as_reader(Words words) const {
    words.insert(words.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                 program("ojs-shm")});
    return run(words);
  }
  Words there(Words words) const {
    words.insert(words.end(), {"--name", "test", "--dir", segment_.folder().path()});
    return words;
  }
  LiveSegment segment_{{"--mode", "0644"}};
};

TEST_F(ReadOnlyUser, is_no_problem_to_doctor) {
  const Finished doctor = as_reader(there({"doctor"}));
  EXPECT_THAT(doctor.out,
              HasSubstr("attach\tok\tthis user may look, but neither enqueue nor work"));
  EXPECT_EQ(doctor.exit_code, 0) << doctor.out;
}

/// As in /dev/shm, which all users of a machine share.
TEST_F(ReadOnlyUser, is_told_of_the_segment_that_it_names_not_of_those_of_others) {
  Process broker = Process::start(
      {program("ojs-shm-broker"), "--name", "other", "--dir", segment_.folder().path()});
  const std::string file = segment_.folder() / "ojs-shm.other";
  ASSERT_TRUE(eventually(
      [&] { return segment_.cli({"segments"}).out.find("other\t") != std::string::npos; }));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const Finished named = as_reader(there({"doctor"}));
  EXPECT_EQ(named.exit_code, 0) << named.out;
  EXPECT_THAT(named.out, testing::Not(HasSubstr("file other")));
  const Finished all = as_reader({"doctor", "--dir", segment_.folder().path()});
  EXPECT_THAT(all.out, HasSubstr("file other\tok\t"));
  EXPECT_EQ(as_reader({"doctor", "--name", "other", "--dir", segment_.folder().path()}).exit_code,
            1)
      << "its own";
  broker.signal(SIGTERM);
  broker.wait();
}

TEST_F(ReadOnlyUser, has_no_permission_to_import_what_it_may_not_read) {
  const std::string file = segment_.folder() / "export";
  std::ofstream(file) << "";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const Finished done = as_reader(there({"import", file}));
  EXPECT_EQ(done.exit_code, 7) << done.err;
  EXPECT_THAT(done.err, HasSubstr("Permission denied"));
}

TEST_F(ReadOnlyUser, may_wait_for_a_job) {
  const std::string id = segment_.enqueue({"-t", "a"});
  EXPECT_EQ(as_reader(there({"wait", id, "--timeout", "10ms"})).exit_code, 1);
  ASSERT_EQ(segment_.cli({"work", "--count", "1", "--", "echo", "7"}).exit_code, 0);
  const Finished done = as_reader(there({"wait", id}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "7\n");
}

TEST(CliMetrics, the_page_replaces_a_file_whole) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  const std::string file = segment.folder() / "ojs.prom";
  std::ofstream(file) << "old";
  ASSERT_EQ(segment.cli({"stats", "--metrics", "--out", file}).exit_code, 0);
  EXPECT_THAT(contents(file), HasSubstr("ojs_queue_depth{queue=\"default\",segment=\"test\"} 1\n"));
  for (const auto& entry : std::filesystem::directory_iterator(segment.folder().path()))
    EXPECT_EQ(entry.path().string().find(".new"), std::string::npos) << entry.path();
  EXPECT_EQ(segment.cli({"stats", "--metrics", "--out", segment.folder() / "no/where"}).exit_code,
            2);
  EXPECT_EQ(segment.cli({"stats", "--out", file}).exit_code, 2);
}

TEST(CliMetrics, every_series_names_its_segment) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a", "--meta", R"({"tenant_id":"t"})"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--worker-id", "w", "--", "true"}).exit_code, 0);
  ASSERT_EQ(segment.cli({"limit", "set", "k", "--concurrency", "1"}).exit_code, 0);
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--queue", "default"}).exit_code, 0);
  ASSERT_EQ(segment.cli({"cron", "set", "c", "@hourly", "--type", "a"}).exit_code, 0);
  int series = 0;
  for (const std::string& line : lines_of(segment.cli({"stats", "--metrics"}).out)) {
    if (line.empty() || line.front() == '#') continue;
    EXPECT_THAT(line, testing::ContainsRegex("[{,]segment=\"test\"[,}]"));
    ++series;
  }
  EXPECT_GT(series, 50);
}

TEST(CliMetrics, promtool_finds_nothing_to_complain_of) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  const Finished checked = run({"sh", "-c",
                                program("ojs-shm") + " stats --metrics --name test --dir " +
                                    segment.folder().path() + " | promtool check metrics 2>&1"});
  if (checked.exit_code == 127) GTEST_SKIP() << "NOT RUN: there is no promtool";
  EXPECT_EQ(checked.out, "");
}

TEST(CliMetrics, oldest_age_dead_letters_and_failed_attempts_are_told_everywhere) {
  const LiveSegment segment;
  auto producer = Producer::attach(segment.where()).value();
  auto worker = Worker::attach(segment.where(), {}).value();
  const auto observer = Observer::attach(segment.where()).value();
  EXPECT_TRUE(observer.queues().empty());
  Job job;
  ASSERT_TRUE(producer.enqueue({.type = "a", .retry = {.max_attempts = 1, .dead_letter = true}}));
  ASSERT_TRUE(worker.try_fetch(job) && worker.nack(job, {}).ok());
  EXPECT_EQ(observer.queue("default")->oldest_age_ms, 0U) << "none waits";
  ASSERT_TRUE(producer.enqueue({.type = "a"}));
  EXPECT_TRUE(eventually([&] { return observer.queue("default")->oldest_age_ms > 20; }));
  EXPECT_EQ(observer.queue("default")->dead_letters, 1U);
  EXPECT_EQ(observer.queue("default")->failed_attempts_total, 1U);
  const std::string page = segment.cli({"stats", "--metrics"}).out;
  EXPECT_THAT(page, HasSubstr("ojs_queue_dead_letters{queue=\"default\",segment=\"test\"} 1\n"));
  EXPECT_THAT(page,
              HasSubstr("ojs_job_failed_attempts_total{queue=\"default\",segment=\"test\"} 1\n"));
  EXPECT_THAT(page, testing::ContainsRegex("ojs_queue_oldest_age_seconds.queue=\"default\","
                                           "segment=\"test\". [0-9.]*[1-9]"));
  const std::string queue = segment.cli({"queue", "get", "default", "--json"}).out;
  EXPECT_EQ(member(queue, "dead_letters"), "1");
  EXPECT_EQ(member(queue, "totals.failed_attempts"), "1");
}

}  // namespace
}  // namespace ojs_shm::test
