// SPDX-License-Identifier: Apache-2.0
// What `ojs-shm enqueue` and `import` make of input that is misspelt or does not fit, and what they
// say when no process reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// `ojs-shm WORDS | TAIL` or `> FILE`, by a shell.
Finished shell(const LiveSegment& segment, const std::string& words, const std::string& rest) {
  return run(
      {"sh", "-c",
       program("ojs-shm") + " " + words + " --name test --dir " + segment.folder().path() + rest});
}

TEST(CliInput, a_tenant_that_is_not_a_text_is_refused_by_name_everywhere) {
  const LiveSegment segment;
  const Finished line = segment.cli({"enqueue"}, R"({"type":"a","args":[],"meta":{"tenant_id":7}})"
                                                 "\n");
  EXPECT_EQ(line.exit_code, 1);
  EXPECT_THAT(line.err, HasSubstr("line 1: meta.tenant_id must be a text, not 7"));
  const Finished none = segment.cli({"enqueue"}, R"({"type":"a","args":[],"meta":{"tenant_id":""}})"
                                                 "\n");
  EXPECT_THAT(none.err, HasSubstr("line 1: meta.tenant_id must not be empty"));
  const Finished flag = segment.cli({"enqueue", "-t", "a", "--meta", R"({"tenant_id":[1]})"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("meta.tenant_id"));
  auto producer = Producer::attach(segment.where()).value();
  const auto native = producer.enqueue({.type = "a", .extra = R"({"meta":{"tenant_id":7}})"});
  ASSERT_FALSE(native);
  EXPECT_EQ(native.error().subject, "meta.tenant_id");
  EXPECT_EQ(segment.cli({"list"}).out, "");
}

TEST(CliInput, members_that_mean_nothing_are_counted_once_and_stay_with_the_job) {
  const LiveSegment segment;
  std::string input;
  for (int i = 0; i < 3; ++i)
    input += R"({"type":"a","args":[],"max_attemps":5,"x_mine":1})"
             "\n";
  const Finished done = segment.cli({"enqueue"}, input);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err,
            "warning: 3 jobs have members that mean nothing here and stay with the job: "
            "`max_attemps` (3), did you mean "
            "`max_attempts`?; `x_mine` (3)\n");
  EXPECT_EQ(segment.job(lines_of(done.out).at(0), "max_attemps"), "5");
}

TEST(CliInput, strict_refuses_them_by_the_flag_or_the_segments_switch) {
  const std::string input = R"({"type":"a","args":[],"options":{"priorty":1}})"
                            "\n"
                            R"({"type":"b","args":[]})"
                            "\n";
  const auto expect_refused = [](const Finished& done) {
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_THAT(
        done.err,
        HasSubstr("line 1: a job has no member `options.priorty`, did you mean `priority`?"));
    EXPECT_EQ(lines_of(done.out).size(), 1U);
  };
  const LiveSegment lenient, strict({"--strict-envelopes"});
  EXPECT_EQ(lenient.cli({"enqueue"}, input).exit_code, 0);
  expect_refused(lenient.cli({"enqueue", "--strict"}, input));
  expect_refused(strict.cli({"enqueue"}, input));
  for (const char* job : {R"({"type":"a","args":[],"retry":{"max_attemps":5}})",
                          R"({"type":"a","args":[],"options":{"retry":{"max_attemps":5}}})"}) {
    EXPECT_THAT(lenient.cli({"enqueue"}, job).err,
                HasSubstr("`retry.max_attemps` (1), did you mean `max_attempts`?"));
    EXPECT_THAT(strict.cli({"enqueue"}, job).err, HasSubstr("`retry.max_attemps`"));
  }
  const ScratchDirectory folder;
  std::ofstream(folder / "b.toml") << "strict_envelopes = true\n";
  const LiveSegment by_file({"--config", folder / "b.toml"});
  expect_refused(by_file.cli({"enqueue"}, input));
}

TEST(CliInput, PRI_T06_a_line_may_name_its_priority_as_the_flag_does) {
  const LiveSegment segment;
  const Finished done = segment.cli({"enqueue"}, R"({"type":"a","args":[],"priority":"high"})"
                                                 "\n"
                                                 R"({"type":"a","args":[],"priority":"hgih"})"
                                                 "\n"
                                                 R"({"type":"a","args":[],"priority":300})"
                                                 "\n"
                                                 R"({"type":"a","args":[],"priority":"1"})"
                                                 "\n");
  EXPECT_EQ(done.exit_code, 1);
  ASSERT_EQ(lines_of(done.out).size(), 1U);
  EXPECT_EQ(segment.job(lines_of(done.out)[0], "priority"), "1");
  EXPECT_THAT(done.err, HasSubstr("line 2: ")) << done.err;
  EXPECT_THAT(
      done.err,
      HasSubstr("line 3: priority 300 is out of range: the minimum is 0 and the maximum is 255"));
  EXPECT_THAT(done.err, HasSubstr("line 4: priority must be an integer"));
}

TEST(CliInput, an_import_counts_what_is_there_when_it_ends) {
  const LiveSegment from, to({"--slots", "1000"});
  std::string input;
  for (int i = 0; i < 1500; ++i)
    input += R"({"type":"a","args":[]})"
             "\n";
  ASSERT_EQ(from.cli({"enqueue"}, input).exit_code, 0);
  auto worker = Worker::attach(from.where(), {}).value();
  Job job;
  for (int i = 0; i < 900; ++i) ASSERT_TRUE(worker.try_fetch(job) && worker.ack(job));
  const std::string exported = from.cli({"export"}).out;
  const Finished in = to.cli({"import", "-", "--json"}, exported);
  EXPECT_EQ(in.exit_code, 0) << in.err;
  const std::uint64_t there = lines_of(to.cli({"list"}).out).size();
  EXPECT_EQ(member(in.out, "jobs"), std::to_string(there));
  EXPECT_EQ(member(in.out, "displaced"), std::to_string(1500 - there));
  EXPECT_LE(there, 1000U);
  EXPECT_THAT(in.err, HasSubstr("gave their room to others"));
}

TEST(CliInput, an_import_that_finds_no_room_still_says_what_is_there) {
  const LiveSegment from, to({"--slots", "100"});
  std::string input;
  for (int i = 0; i < 150; ++i)
    input += R"({"type":"a","args":[]})"
             "\n";
  ASSERT_EQ(from.cli({"enqueue"}, input).exit_code, 0);
  const Finished in = to.cli({"import", "-", "--json"}, from.cli({"export"}).out);
  EXPECT_EQ(in.exit_code, 6) << in.err;
  EXPECT_EQ(member(lines_of(in.out).at(0), "jobs"),
            std::to_string(lines_of(to.cli({"list"}).out).size()));
}

TEST(CliInput, a_reader_that_goes_away_is_told_what_is_stored) {
  const LiveSegment segment;
  const std::string file = segment.folder() / "lines";
  std::string make =
      "i=0; while [ $i -lt 5000 ]; do echo '{\"type\":\"a\",\"args\":[]}'; i=$((i+1)); done > " +
      file;
  ASSERT_EQ(run({"sh", "-c", make}).exit_code, 0);
  const std::string err = segment.folder() / "err";
  const Finished done =
      run({"bash", "-c",
           "set -o pipefail; " + program("ojs-shm") + " enqueue --name test --dir " +
               segment.folder().path() + " < " + file + " 2> " + err + " | head -n 1"});
  EXPECT_EQ(done.exit_code, 1) << "not by a signal";
  const std::string said = run({"cat", err}).out;
  const std::size_t stored = lines_of(segment.cli({"list"}).out).size();
  EXPECT_THAT(said, HasSubstr(std::to_string(stored) + " jobs are stored")) << said;
  EXPECT_THAT(said, HasSubstr("Broken pipe"));
}

TEST(CliInput, an_id_that_cannot_be_printed_is_in_the_error) {
  const LiveSegment segment;
  const Finished done = shell(segment, "enqueue -t a", " >/dev/full");
  EXPECT_EQ(done.exit_code, 6);
  const auto rows = lines_of(segment.cli({"list"}).out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(done.err, HasSubstr("job " + rows[0].substr(0, 36) + " is stored, but")) << done.err;
}

TEST(CliInput, a_job_s_bytes_never_command_a_terminal) {
  const LiveSegment segment;
  auto producer = Producer::attach(segment.where()).value();
  auto worker = Worker::attach(segment.where(), {}).value();
  const auto id = producer.enqueue({.type = "a", .retry = {.max_attempts = 1}});
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  Failure failure;
  failure.code =
      "\x1b[2J\xC2\x9B"
      "31m\xE2\x80\xAE\xFF";
  ASSERT_TRUE(worker.nack(job, failure));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list"}, {"get", id->str()}, {"wait", id->str()}}) {
    const Finished done = segment.cli(words);
    for (const char* raw : {"\x1b", "\xC2\x9B", "\xE2\x80\xAE", "\xFF"})
      EXPECT_THAT(done.out + done.err, Not(HasSubstr(raw))) << words[0];
  }
  EXPECT_THAT(segment.cli({"list"}).out, HasSubstr(R"(\x1b[2J\u009b31m\u202e\xff)"));
}

TEST(CliInput, output_that_is_not_text_is_kept_as_base64) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "printf", "\\377\\000x"}).exit_code, 0);
  EXPECT_EQ(segment.job(id, "result.encoding"), "base64");
  EXPECT_EQ(segment.job(id, "result.data"), "/wB4");
}

TEST(CliInput, a_job_can_bring_a_limit_by_a_flag) {
  const LiveSegment segment;
  const std::string id =
      segment.enqueue({"-t", "a", "--rate-limit", "api,concurrency=2,rate=100/minute"});
  EXPECT_EQ(segment.job(id, "rate_limit.key"), "api");
  EXPECT_EQ(member(segment.cli({"limit", "get", "api", "--json"}).out, "concurrency.limit"), "2");
  for (const char* wrong : {"concurrency=2", "api,concurency=2", "api,rate=100"}) {
    const Finished done = segment.cli({"enqueue", "-t", "a", "--rate-limit", wrong});
    EXPECT_EQ(done.exit_code, 2) << wrong;
    EXPECT_THAT(done.err, HasSubstr("--rate-limit")) << wrong;
  }
  EXPECT_THAT(segment.cli({"enqueue", "-t", "a", "--rate-limit", "/,concurrency=2"}).err,
              testing::StartsWith("rate_limit.key '/' must be"));
}

}  // namespace
}  // namespace ojs_shm::test
