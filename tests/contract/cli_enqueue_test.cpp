// SPDX-License-Identifier: Apache-2.0
// `ojs-shm enqueue`: what flags and envelopes become, and how a refusal reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(CliEnqueue, turns_any_json_into_args) {
  const LiveSegment segment;
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "-i", "[1,\"two\",{}]"}), "args"),
            "[1,\"two\",{}]");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "-i", "{\"to\":\"x\"}"}), "args"),
            "[{\"to\":\"x\"}]");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "-i", "7"}), "args"), "[7]");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a"}), "args"), "[]");
}

TEST(CliEnqueue, every_flag_reaches_the_job) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "mail.send", "--queue", "mail", "--priority", "4",
                                          "--timeout", "90s", "--lease", "2m", "--retry",
                                          "max_attempts=7,backoff=linear,initial=2s,max=1m,"
                                          "coefficient=3,jitter=false,on_exhaustion=dead_letter",
                                          "--meta", "{\"trace\":\"x\"}", "--expires", "1h", "--id",
                                          "01890000-0000-7000-8000-000000000001"});
  EXPECT_EQ(id, "01890000-0000-7000-8000-000000000001");
  const std::string job = segment.cli({"get", id, "--json"}).out;
  EXPECT_EQ(member(job, "queue"), "mail");
  EXPECT_EQ(member(job, "priority"), "4");
  EXPECT_EQ(member(job, "timeout_ms"), "90000");
  EXPECT_EQ(member(job, "visibility_timeout_ms"), "120000");
  EXPECT_EQ(member(job, "max_attempts"), "7");
  EXPECT_EQ(member(job, "retry.backoff_strategy"), "linear");
  EXPECT_EQ(member(job, "retry.initial_interval"), "2s");
  EXPECT_EQ(member(job, "retry.jitter"), "false");
  EXPECT_EQ(member(job, "retry.on_exhaustion"), "dead_letter");
  EXPECT_EQ(member(job, "meta.trace"), "x");
  EXPECT_NE(member(job, "expires_at"), "");
}

TEST(CliEnqueue, a_time_out_of_range_is_the_fault_of_its_flag) {
  const LiveSegment segment;
  for (const char* flag : {"--timeout", "--lease", "--enqueue-ttl", "--total-timeout",
                           "--grace-period", "--result-ttl"}) {
    const Finished done = segment.cli({"enqueue", "-t", "a", flag, "40000d"});
    EXPECT_EQ(done.exit_code, 2) << flag;
    EXPECT_THAT(done.err, testing::StartsWith(std::string(flag) + " must ")) << done.err;
  }
}

TEST(CliEnqueue, submit_is_another_name_for_it) {
  const LiveSegment segment;
  const Finished done = segment.cli({"submit", "-t", "a", "--priority", "0"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(segment.job(lines_of(done.out).at(0), "priority"), "0");
}

TEST(CliEnqueue, QO_04_priority_names_are_those_of_the_convention) {
  const LiveSegment qo({"--convention", "qo"});
  const std::pair<const char*, const char*> names[] = {
      {"critical", "255"}, {"urgent", "200"},    {"high", "175"}, {"normal", "128"},
      {"low", "50"},       {"background", "10"}, {"bulk", "0"}};
  for (const auto& [name, number] : names) {
    EXPECT_EQ(qo.job(qo.enqueue({"-t", "a", "--priority", name}), "priority"), number) << name;
  }
  const LiveSegment ojs;
  EXPECT_EQ(ojs.job(ojs.enqueue({"-t", "a", "--priority", "critical"}), "priority"), "0");
  EXPECT_EQ(ojs.job(ojs.enqueue({"-t", "a", "--priority", "bulk"}), "priority"), "4");
  const Finished unknown = ojs.cli({"enqueue", "-t", "a", "--priority", "urgent"});
  EXPECT_EQ(unknown.exit_code, 2);
  for (const char* known : {"critical", "high", "normal", "low", "bulk"}) {
    EXPECT_NE(unknown.err.find(known), std::string::npos) << unknown.err;
  }
}

TEST(CliEnqueue, refuses_priorities_outside_the_range_and_names_the_maximum) {
  const LiveSegment segment;
  for (const char* priority :
       {"-1", "256", "99999999999", "99999999999999999999", "-99999999999999999999"}) {
    const std::string refusal = "priority " + std::string(priority) +
                                " is out of range: the minimum is 0 and the maximum is 255";
    const Finished flag = segment.cli({"enqueue", "-t", "a", "--priority", priority});
    EXPECT_EQ(flag.exit_code, 2) << priority;
    EXPECT_EQ(flag.err, refusal + "\n");
    for (const std::string& line :
         {std::string("{\"type\":\"a\",\"args\":[],\"priority\":") + priority + "}",
          std::string("{\"type\":\"a\",\"args\":[],\"options\":{\"priority\":") + priority +
              "}}"}) {
      const Finished stream = segment.cli({"enqueue"}, line + "\n");
      EXPECT_EQ(stream.exit_code, 1) << line;
      EXPECT_EQ(stream.err, "line 1: " + refusal + "\n");
    }
  }
  EXPECT_EQ(segment.cli({"list"}).out, "");
}

TEST(CliEnqueue, negative_numbers_are_priorities_where_the_convention_has_them) {
  const LiveSegment segment({"--convention", "ojs-core"});
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "--priority", "-100"}), "priority"), "-100");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "--priority=-5"}), "priority"), "-5");
}

TEST(CliEnqueue, scheduled_and_pending_jobs_wait_for_their_time_and_their_activation) {
  const LiveSegment segment;
  const std::string later = segment.enqueue({"-t", "a", "--delay", "1h"});
  EXPECT_EQ(segment.job(later, "state"), "scheduled");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "--at", "2020-01-01T00:00:00Z"}), "state"),
            "available");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "--at", "2199-01-01T00:00:00Z"}), "state"),
            "scheduled");
  const std::string held = segment.enqueue({"-t", "a", "--pending"});
  EXPECT_EQ(segment.job(held, "state"), "pending");
  EXPECT_EQ(segment.cli({"activate", held}).exit_code, 0);
  EXPECT_EQ(segment.job(held, "state"), "available");
  EXPECT_EQ(segment.cli({"activate", held}).exit_code, 5);
}

TEST(CliEnqueue, a_short_delay_ends_by_itself) {
  const LiveSegment segment;
  EXPECT_TRUE(segment.becomes(segment.enqueue({"-t", "a", "--delay", "200ms"}), "available"));
}

TEST(CliEnqueue, reads_envelopes_reports_bad_lines_and_goes_on) {
  const LiveSegment segment;
  const Finished done = segment.cli(
      {"enqueue"},
      "{\"type\":\"a\",\"args\":[1]}\n"
      "not json\n"
      "\n"
      "{\"type\":\"a\",\"args\":[2],\"priority\":999}\n"
      "{\"type\":\"b\",\"args\":[3],\"queue\":\"mail\",\"retry\":{\"max_attempts\":50}}");
  EXPECT_EQ(done.exit_code, 1);
  const auto ids = lines_of(done.out);
  ASSERT_EQ(ids.size(), 2U) << done.out;
  EXPECT_EQ(segment.job(ids[0], "args"), "[1]");
  EXPECT_EQ(segment.job(ids[1], "queue"), "mail");
  EXPECT_EQ(segment.job(ids[1], "max_attempts"), "50");
  const auto errors = lines_of(done.err);
  ASSERT_EQ(errors.size(), 2U) << done.err;
  EXPECT_EQ(errors[0].rfind("line 2: ", 0), 0U) << errors[0];
  EXPECT_EQ(errors[1].rfind("line 4: ", 0), 0U) << errors[1];
}

TEST(CliEnqueue, a_refused_line_has_its_number_as_a_member_in_json) {
  const LiveSegment segment;
  const Finished done = segment.cli({"enqueue", "--json"},
                                    "not json\n{\"type\":\"a\",\"args\":[]}\n"
                                    "{\"type\":\"a\",\"args\":[],\"priority\":999}\n");
  const auto errors = lines_of(done.err);
  ASSERT_EQ(errors.size(), 2U) << done.err;
  for (const auto& [index, line] : {std::pair{0, "1"}, {1, "3"}}) {
    EXPECT_EQ(member(errors[static_cast<std::size_t>(index)], "error.line"), line) << done.err;
  }
}

TEST(CliEnqueue, ids_come_in_the_order_of_the_lines_over_many_batches) {
  const LiveSegment segment;
  std::string input;
  for (int i = 0; i < 1500; ++i) input += "{\"type\":\"a\",\"args\":[" + std::to_string(i) + "]}\n";
  const Finished done = segment.cli({"enqueue"}, input);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto ids = lines_of(done.out);
  ASSERT_EQ(ids.size(), 1500U);
  EXPECT_EQ(segment.job(ids[1499], "args"), "[1499]");
  const auto listed = lines_of(segment.cli({"list", "--json"}).out);
  ASSERT_EQ(listed.size(), 1500U);
  for (std::size_t i = 0; i < ids.size(); i += 97) EXPECT_EQ(member(listed[i], "id"), ids[i]);
}

TEST(CliEnqueue, a_line_does_not_wait_for_the_next_one) {
  const LiveSegment segment;
  ProcessOptions options;
  options.keep_input_open = true;
  Process stream = segment.start_cli({"enqueue"}, options);
  stream.write("{\"type\":\"a\",\"args\":[]}\n");
  const auto id = stream.read_line();
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(segment.job(*id, "state"), "available");
  stream.close_input();
  EXPECT_EQ(stream.wait().exit_code, 0);
}

TEST(CliEnqueue, draws_a_progress_bar_on_a_terminal_and_nowhere_else) {
  const LiveSegment segment;
  const std::string input = segment.folder() / "jobs.ndjson";
  std::ofstream(input)
      << "{\"type\":\"a\",\"args\":[]}\n{\"type\":\"a\",\"args\":[],\"priority\":-1}\n";
  const std::string command =
      program("ojs-shm") + " enqueue --name test --dir " + segment.folder().path() + " <" + input;
  const Finished terminal = run({"script", "-qec", command, "/dev/null"});
  EXPECT_EQ(terminal.exit_code, 1);
  EXPECT_NE(terminal.out.find("100 %"), std::string::npos) << terminal.out;
  EXPECT_NE(terminal.out.find("1 accepted, 1 refused"), std::string::npos) << terminal.out;
  EXPECT_NE(terminal.out.find("line 2: "), std::string::npos) << terminal.out;
  const Finished plain = run({"sh", "-c", command});
  EXPECT_EQ(plain.err.find('%'), std::string::npos) << plain.err;
  EXPECT_EQ(lines_of(plain.out).size(), 1U);
}

TEST(CliEnqueue, a_full_queue_is_status_6_and_takes_what_still_fits) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"queue", "set", "small", "--max-depth", "2"}).exit_code, 0);
  std::string input;
  for (int i = 0; i < 4; ++i) input += "{\"type\":\"a\",\"args\":[],\"queue\":\"small\"}\n";
  const Finished stream = segment.cli({"enqueue"}, input);
  EXPECT_EQ(stream.exit_code, 1);
  EXPECT_EQ(lines_of(stream.out).size(), 2U);
  const Finished one = segment.cli({"enqueue", "-t", "a", "--queue", "small", "--json"});
  EXPECT_EQ(one.exit_code, 6);
  EXPECT_EQ(member(one.err, "error.code"), "QUEUE_FULL") << one.err;
  EXPECT_EQ(member(one.err, "error.depth"), "2");
  EXPECT_EQ(member(one.err, "error.bound"), "2");
}

TEST(CliEnqueue, a_full_segment_is_status_6_and_names_the_pool_and_the_option) {
  const LiveSegment segment({"--slots", "500"});
  std::string input;
  for (int i = 0; i < 3000; ++i) input += "{\"type\":\"a\",\"args\":[]}\n";
  const Finished stream = segment.cli({"enqueue"}, input);
  EXPECT_EQ(stream.exit_code, 1);
  const Finished one = segment.cli({"enqueue", "-t", "a", "--json"});
  ASSERT_EQ(one.exit_code, 6);
  EXPECT_EQ(member(one.err, "error.code"), "SEGMENT_FULL") << one.err;
  EXPECT_EQ(member(one.err, "error.subject"), "slots") << one.err;
  EXPECT_NE(one.err.find("--slots"), std::string::npos) << one.err;
  const Finished doctor = segment.cli({"doctor"});
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_NE(doctor.out.find("pool slots\tproblem"), std::string::npos) << doctor.out;
  // Finished jobs give their room back by themselves.
  const std::size_t accepted = lines_of(stream.out).size();
  EXPECT_EQ(lines_of(segment.cli({"work", "--count", "20", "--", "true"}).out).size(), 20U);
  EXPECT_EQ(segment.cli({"enqueue", "-t", "a"}).exit_code, 0);
  EXPECT_EQ(lines_of(segment.cli({"list", "--state", "available"}).out).size(), accepted - 20 + 1);
}

TEST(CliEnqueue, an_id_is_taken_once) {
  const LiveSegment segment;
  const std::string id = "01890000-0000-7000-8000-00000000000a";
  EXPECT_EQ(segment.enqueue({"-t", "a", "--id", id}), id);
  const Finished again = segment.cli({"enqueue", "-t", "a", "--id", id});
  EXPECT_EQ(again.exit_code, 5);
  EXPECT_NE(again.err.find(id), std::string::npos) << again.err;
}

TEST(CliEnqueue, wait_prints_the_result_and_answers_by_the_state) {
  const LiveSegment segment;
  Process worker = segment.start_cli({"work", "--queue", "good", "--", "cat"});
  const Finished good =
      segment.cli({"enqueue", "-t", "a", "--queue", "good", "-i", "[{\"n\":1}]", "--wait"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "[{\"n\":1}]\n");
  Process failing = segment.start_cli({"work", "--queue", "bad", "--", "false"});
  const Finished bad =
      segment.cli({"enqueue", "-t", "a", "--queue", "bad", "--retry", "max_attempts=1", "--wait"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.err.find("discarded"), std::string::npos) << bad.err;
  const Finished late =
      segment.cli({"enqueue", "-t", "a", "--queue", "nobody", "--wait-timeout", "50ms", "--json"});
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_EQ(member(late.err, "error.code"), "timeout") << late.err;
}

TEST(CliEnqueue, wrong_usage_is_status_2_and_stores_nothing) {
  const LiveSegment segment;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"enqueue", "-t", "Not Valid"},
        {"enqueue", "-t", "a", "-i", "{"},
        {"enqueue", "-t", "a", "--queue", "Bad Queue"},
        {"enqueue", "-t", "a", "--id", "x"},
        {"enqueue", "-t", "a", "--retry", "attempts=3"},
        {"enqueue", "-t", "a", "--retry", "max_attempts=many"},
        {"enqueue", "-t", "a", "--delay", "soon"},
        {"enqueue", "-t", "a", "--delay", "1s", "--at", "2030-01-01T00:00:00Z"},
        {"enqueue", "-t", "a", "--lease", "100d"},
        {"enqueue", "--queue", "mail"},
        {"enqueue", "-t", "a", "--meta", "[1"}}) {
    const Finished done = segment.cli(words);
    EXPECT_EQ(done.exit_code, 2) << words.back() << ": " << done.err;
    EXPECT_NE(done.err, "");
  }
  EXPECT_EQ(segment.cli({"list"}).out, "");
}

TEST(CliEnqueue, an_empty_value_is_no_wish_for_the_default) {
  const LiveSegment segment;
  for (const std::pair<const char*, const char*>& flag : {std::pair{"-i", "--input"},
                                                          {"--priority", "--priority"},
                                                          {"--queue", "--queue"},
                                                          {"--retry", "--retry"},
                                                          {"--delay", "--delay"},
                                                          {"--id", "--id"}}) {
    const Finished done = segment.cli({"enqueue", "-t", "a", flag.first, ""});
    EXPECT_EQ(done.exit_code, 2) << flag.first;
    EXPECT_EQ(done.err, std::string(flag.second) + " is empty\n");
  }
  const Finished type = segment.cli({"enqueue", "-t", "", "-i", "1"});
  EXPECT_EQ(type.exit_code, 2);
  EXPECT_EQ(type.err, "--type is empty\n");
  EXPECT_EQ(segment.cli({"list"}).out, "");
}

TEST(CliEnqueue, waits_for_a_broker_that_is_still_starting) {
  const ScratchDirectory folder;
  const std::vector<std::string> target = {"--name", "test", "--dir", folder.path()};
  const auto words = [&](const char* name, std::vector<std::string> flags) {
    flags.insert(flags.begin(), program(name));
    flags.insert(flags.end(), target.begin(), target.end());
    return flags;
  };
  Process one = Process::start(words("ojs-shm", {"enqueue", "-t", "a", "--attach-timeout", "25s"}));
  Process look = Process::start(words("ojs-shm", {"stats", "--attach-timeout", "25s"}));
  Process broker = Process::start(words("ojs-shm-broker", {}));
  const Finished enqueued = one.wait(), looked = look.wait();
  EXPECT_EQ(enqueued.exit_code, 0) << enqueued.err;
  EXPECT_EQ(looked.exit_code, 0) << looked.err;
}

}  // namespace
}  // namespace ojs_shm::test
