// SPDX-License-Identifier: Apache-2.0
// `ojs-shm work`: a command for each job. Real workers, real commands, real signals.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

std::vector<std::string> shell_worker(const std::string& script,
                                      std::vector<std::string> flags = {}) {
  std::vector<std::string> words = {"work"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", "sh", "-c", script});
  return words;
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Ended; a process that no process has reaped yet has ended too.
bool gone(pid_t pid) {
  const std::string stat = text_in("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos ||
         std::string("ZX").find(stat[name_end + 2]) != std::string::npos;
}

TEST(CliWork, gives_args_on_stdin_and_the_job_in_the_environment_and_keeps_stdout_as_the_result) {
  const LiveSegment segment;
  const std::string id = segment.enqueue(
      {"-t", "mail.send", "--queue", "mail", "-i", "{\"to\":\"x\"}", "--priority", "1"});
  const Finished done =
      segment.cli(shell_worker("printf "
                               "'{\"args\":%s,\"id\":\"%s\",\"type\":\"%s\",\"attempt\":%s,"
                               "\"fence\":%s,\"queue\":\"%s\",\"priority\":%s}' "
                               "\"$(cat)\" \"$OJS_JOB_ID\" \"$OJS_TYPE\" \"$OJS_ATTEMPT\" "
                               "\"$OJS_FENCE\" \"$OJS_QUEUE\" \"$OJS_PRIORITY\"",
                               {"--queue", "mail", "--until-empty"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::string result = segment.job(id, "result");
  EXPECT_EQ(member(result, "args"), "[{\"to\":\"x\"}]");
  EXPECT_EQ(member(result, "id"), id);
  EXPECT_EQ(member(result, "type"), "mail.send");
  EXPECT_EQ(member(result, "attempt"), "1");
  EXPECT_EQ(member(result, "queue"), "mail");
  EXPECT_EQ(member(result, "priority"), "1");
  EXPECT_FALSE(member(result, "fence").empty());
  EXPECT_EQ(segment.job(id, "state"), "completed");
  EXPECT_EQ(done.out.substr(0, id.size()), id);
  EXPECT_NE(done.out.find("completed"), std::string::npos);
}

/// The segment is named by flags alone: its name comes to the command through the environment.
TEST(CliWork, a_command_says_how_far_its_job_is) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string report = program("ojs-shm") +
                             R"( progress 0.25 -m 'a quarter' --data '{"files":[7]}' && )" +
                             program("ojs-shm") + R"( get $OJS_JOB_ID --json)";
  const Finished done = segment.cli(shell_worker(report, {"--until-empty"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::string seen = segment.job(id, "result");
  EXPECT_EQ(member(seen, "state"), "active") << done.err;
  EXPECT_EQ(member(seen, "progress"), "0.25");
  EXPECT_EQ(member(seen, "progress_message"), "a quarter");
  EXPECT_EQ(member(seen, "progress_data"), R"({"files":[7]})");
}

TEST(CliWork, the_next_attempt_goes_on_from_the_checkpoint_of_the_last) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a", "--retry", "initial=1ms"});
  const std::string command =
      R"(if [ -n "$OJS_LAST_CHECKPOINT" ]; then echo "$OJS_LAST_CHECKPOINT"; else )" +
      program("ojs-shm") + R"( progress 0.5 --checkpoint '{"row":7}'; exit 1; fi)";
  const Finished done = segment.cli(shell_worker(command, {"--until-empty"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  ASSERT_TRUE(eventually([&] { return segment.job(id, "state") != "retryable"; }));
  const Finished again = segment.cli(shell_worker(command, {"--until-empty"}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(segment.job(id, "result"), R"({"row":7})");
  EXPECT_EQ(segment.job(id, "attempt"), "2");
  EXPECT_EQ(segment.cli({"progress", "0.5", id, "--checkpoint", "{"}).exit_code, 2);
}

TEST(CliWork, progress_of_an_attempt_that_is_over_is_refused) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const Finished other = segment.cli({"progress", "0.5", id});
  EXPECT_EQ(other.exit_code, 5) << "it is not active: " << other.err;
  const Finished late = segment.cli(shell_worker(
      "OJS_FENCE=1 " + program("ojs-shm") + " progress 0.5; echo $?", {"--until-empty"}));
  EXPECT_NE(late.err.find("no longer held"), std::string::npos) << late.err;
  EXPECT_EQ(segment.job(id, "result"), "1");
  EXPECT_EQ(segment.cli({"progress", "0.5"}).exit_code, 2) << "no job is named";
  EXPECT_EQ(segment.cli({"progress", "1.5", id}).exit_code, 2);
}

TEST(CliWork, an_idle_worker_ends_when_its_segment_is_removed_under_it) {
  const LiveSegment segment;
  Process worker = segment.start_cli(shell_worker("true"));
  ASSERT_TRUE(segment.becomes(segment.enqueue({"-t", "a"}), "completed"));  // it is there
  ASSERT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_FALSE(done.timed_out);
  EXPECT_NE(done.err.find("was removed"), std::string::npos) << done.err;
}

TEST(CliWork, text_becomes_a_string_and_silence_no_result) {
  const LiveSegment segment;
  const std::string text = segment.enqueue({"-t", "a", "--queue", "text"});
  const std::string silent = segment.enqueue({"-t", "a", "--queue", "silent"});
  const std::string odd = segment.enqueue({"-t", "a", "--queue", "odd"});
  segment.cli({"work", "--queue", "text", "--until-empty", "--", "echo", "two words \"quoted\""});
  segment.cli({"work", "--queue", "silent", "--until-empty", "--", "true"});
  segment.cli(shell_worker("printf '\\377\\376'", {"--queue", "odd", "--until-empty"}));
  EXPECT_EQ(segment.job(text, "result"), "two words \"quoted\"");
  EXPECT_EQ(segment.job(silent, "result"), "");
  EXPECT_EQ(segment.job(silent, "state"), "completed");
  EXPECT_EQ(segment.job(odd, "state"), "completed");
  EXPECT_NE(segment.job(odd, "result"), "");
}

TEST(CliWork, another_exit_code_fails_the_job_with_the_end_of_its_stderr) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a", "--retry", "max_attempts=5,initial=1h"});
  const Finished done = segment.cli(shell_worker("echo went wrong >&2; exit 3", {"--until-empty"}));
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(segment.job(id, "state"), "retryable");
  EXPECT_EQ(segment.job(id, "error.code"), "exit_3");
  EXPECT_EQ(segment.job(id, "error.message"), "went wrong");
  EXPECT_NE(done.err.find("went wrong"), std::string::npos) << "stderr is passed on";
}

TEST(CliWork, a_failed_job_is_tried_again_until_it_succeeds) {
  const LiveSegment segment;
  const std::string id =
      segment.enqueue({"-t", "a", "--retry", "max_attempts=5,initial=20ms,jitter=false"});
  Process worker = segment.start_cli(shell_worker("test $OJS_ATTEMPT -ge 3 && echo $OJS_FENCE"));
  EXPECT_TRUE(segment.becomes(id, "completed"));
  EXPECT_EQ(segment.job(id, "attempt"), "3");
  const auto log = worker.read_line();
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("retryable"), std::string::npos);
}

TEST(CliWork, a_final_exit_code_ends_the_tries_and_a_signal_is_a_failure_too) {
  const LiveSegment segment;
  const std::string final = segment.enqueue({"-t", "a", "--retry", "max_attempts=9"});
  segment.cli(shell_worker("exit 65", {"--until-empty", "--final-exit", "64,65"}));
  EXPECT_EQ(segment.job(final, "state"), "discarded");
  EXPECT_EQ(segment.job(final, "attempt"), "1");
  const std::string signalled = segment.enqueue({"-t", "a", "--retry", "max_attempts=1"});
  segment.cli(shell_worker("kill -9 $$", {"--until-empty"}));
  EXPECT_EQ(segment.job(signalled, "state"), "discarded");
  EXPECT_EQ(segment.job(signalled, "error.code"), "signal_9");
}

TEST(CliWork, a_final_exit_code_that_no_failure_has_is_refused) {
  const LiveSegment segment;
  for (const char* codes : {"0", "300", "256", "64,300", "-1", "1000000000000", "no", "1.5"}) {
    const Finished done =
        segment.cli({"work", "--until-empty", "--final-exit", codes, "--", "true"});
    EXPECT_EQ(done.exit_code, 2) << codes;
    EXPECT_NE(done.err.find("1 to 255"), std::string::npos) << codes << ": " << done.err;
  }
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--final-exit", "1,255", "--", "true"}).exit_code,
            0);
}

TEST(CliWork, a_count_that_64_bits_do_not_hold_is_refused) {
  const LiveSegment segment;
  for (const char* count : {"18446744073709551616", "-1"}) {
    const Finished done = segment.cli({"work", "--until-empty", "--count", count, "--", "true"});
    EXPECT_EQ(done.exit_code, 2) << count;
    EXPECT_NE(done.err.find(count), std::string::npos) << done.err;
  }
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--count", "18446744073709551615", "--", "true"})
                .exit_code,
            0);
}

TEST(CliWork, stops_after_count_jobs_and_takes_the_best_first) {
  const LiveSegment segment;
  const std::string low = segment.enqueue({"-t", "a", "--priority", "9"});
  const std::string high = segment.enqueue({"-t", "a", "--priority", "1"});
  EXPECT_EQ(segment.cli({"work", "--count", "1", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment.job(high, "state"), "completed");
  EXPECT_EQ(segment.job(low, "state"), "available");
}

TEST(CliWork, runs_as_many_at_once_as_asked) {
  const LiveSegment segment;
  for (int i = 0; i < 3; ++i) segment.enqueue({"-t", "a"});
  // Each waits until all three are there, so that one after the other would never end.
  const std::string script =
      "touch $DIR/here.$OJS_JOB_ID; while [ $(ls $DIR | grep -c here) -lt 3 ]; do :; done";
  ProcessOptions options;
  options.environment = {{"DIR", segment.folder().path()}};
  Process worker =
      segment.start_cli(shell_worker(script, {"--concurrency", "3", "--until-empty"}), options);
  EXPECT_EQ(worker.wait().exit_code, 0);
  EXPECT_EQ(lines_of(segment.cli({"list", "--state", "completed"}).out).size(), 3U);
}

TEST(CliWork, sigterm_lets_the_running_command_finish) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string next = segment.enqueue({"-t", "a"});
  const std::string go = segment.folder() / "go";
  Process worker = segment.start_cli(shell_worker(
      "while ! test -e " + go + "; do sleep 0.01; done; echo done", {"--worker-id", "w"}));
  ASSERT_TRUE(segment.becomes(id, "active"));
  worker.signal(SIGTERM);
  const auto observer = Observer::attach(segment.where()).value();
  EXPECT_TRUE(
      eventually([&] { return observer.registered_worker("w").value().state() == "terminate"; }));
  std::ofstream(go) << "";
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(segment.job(id, "state"), "completed");
  EXPECT_EQ(segment.job(next, "state"), "available") << "no new job after SIGTERM";
}

TEST(CliWork, sigtstp_makes_it_quiet_until_sigcont) {
  const LiveSegment segment;
  const std::string go = segment.folder() / "go";
  const std::string id = segment.enqueue({"-t", "a"});
  Process worker = segment.start_cli(shell_worker("while ! test -e " + go + "; do sleep 0.01; done",
                                                  {"--worker-id", "w", "--count", "2"}));
  ASSERT_TRUE(segment.becomes(id, "active"));
  const auto observer = Observer::attach(segment.where()).value();
  const auto says = [&](std::string_view state) {
    return eventually([&] { return observer.registered_worker("w").value().state() == state; });
  };
  EXPECT_EQ(observer.registered_worker("w").value().active_jobs, 1U);
  worker.signal(SIGTSTP);
  EXPECT_TRUE(says("quiet"));
  const std::string next = segment.enqueue({"-t", "a"});
  std::ofstream(go) << "";
  EXPECT_TRUE(segment.becomes(id, "completed")) << "what runs goes on";
  ASSERT_TRUE(worker.read_line());  // it reports, and then would take the next
  Job job;
  auto other = Worker::attach(Segment::attach(segment.where()).value(), {}).value();
  ASSERT_TRUE(other.fetch(job, kBound));
  EXPECT_EQ(job.id(), next);
  ASSERT_TRUE(other.requeue(job));
  worker.signal(SIGCONT);
  EXPECT_TRUE(segment.becomes(next, "completed"));
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST(CliWork, one_that_runs_until_all_is_done_stays_while_it_is_told_to_be_quiet) {
  const LiveSegment segment;
  const std::string go = segment.folder() / "go";
  const std::string id = segment.enqueue({"-t", "a"}), next = segment.enqueue({"-t", "a"});
  Process worker = segment.start_cli(shell_worker("while ! test -e " + go + "; do sleep 0.01; done",
                                                  {"--worker-id", "w", "--until-empty"}));
  ASSERT_TRUE(segment.becomes(id, "active"));
  ASSERT_EQ(segment.cli({"workers", "quiet", "w"}).exit_code, 0);
  std::ofstream(go) << "";
  ASSERT_TRUE(worker.read_line());
  const auto observer = Observer::attach(segment.where()).value();
  ASSERT_TRUE(eventually([&] {
    const auto found = observer.registered_worker("w");
    return found.ok() && found.value().state() == "quiet" && found.value().active_jobs == 0;
  }));
  EXPECT_EQ(segment.job(next, "state"), "available");
  ASSERT_EQ(segment.cli({"workers", "resume", "w"}).exit_code, 0);
  EXPECT_EQ(worker.wait().exit_code, 0);
  EXPECT_EQ(segment.job(next, "state"), "completed");
}

TEST(CliWork, sigterm_ends_a_quiet_one_also_in_the_middle_of_a_fetch) {
  const LiveSegment segment;
  Process worker =
      segment.start_cli(shell_worker("true", {"--worker-id", "w", "--concurrency", "2"}));
  const auto observer = Observer::attach(segment.where()).value();
  const auto says = [&](std::string_view state) {
    return eventually([&] {
      const auto found = observer.registered_worker("w");
      return found.ok() && found.value().state() == state;
    });
  };
  ASSERT_TRUE(says("running"));
  for (int turn = 0; turn < 3; ++turn) {
    worker.signal(SIGTSTP);
    EXPECT_TRUE(says("quiet")) << turn;
    worker.signal(SIGCONT);
    EXPECT_TRUE(says("running")) << turn;
  }
  worker.signal(SIGTSTP);
  worker.signal(SIGTERM);
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST(CliWork, sigterm_that_came_before_the_command_ended_takes_no_further_job) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string next = segment.enqueue({"-t", "a"});
  const std::string go = segment.folder() / "go";
  Process worker = segment.start_cli(shell_worker("while ! test -e " + go + "; do :; done"));
  ASSERT_TRUE(segment.becomes(id, "active"));
  // The thread that reads signals stands still, the one that runs the command goes on.
  if (::ptrace(PTRACE_SEIZE, worker.pid(), 0, 0) != 0)
    GTEST_SKIP() << "NOT RUN: no ptrace here: " << std::strerror(errno);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, worker.pid(), 0, 0), 0);
  ASSERT_EQ(::waitpid(worker.pid(), nullptr, __WALL), worker.pid());
  const auto threads = [&] {
    const std::filesystem::directory_iterator each("/proc/" + std::to_string(worker.pid()) +
                                                   "/task");
    return std::distance(each, {});
  };
  const auto before = threads();
  worker.signal(SIGTERM);
  std::ofstream(go) << "";
  EXPECT_TRUE(
      eventually([&] { return threads() < before || segment.job(next, "state") != "available"; }));
  EXPECT_EQ(segment.job(id, "state"), "completed");
  EXPECT_EQ(segment.job(next, "state"), "available");
  ASSERT_EQ(::ptrace(PTRACE_DETACH, worker.pid(), 0, 0), 0);
  EXPECT_EQ(worker.wait().exit_code, 0);
}

TEST(CliWork, after_the_grace_time_a_stopped_worker_gives_its_job_back_uncounted) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  Process worker = segment.start_cli(shell_worker("exec tail -f /dev/null", {"--grace", "50ms"}));
  ASSERT_TRUE(segment.becomes(id, "active"));
  worker.signal(SIGTERM);
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("requeued"), std::string::npos) << done.out;
  EXPECT_EQ(segment.job(id, "state"), "available");
  EXPECT_EQ(segment.job(id, "attempt"), "0");
}

TEST(CliWork, a_cancelled_job_s_command_gets_sigterm) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string note = segment.folder() / "note";
  Process worker = segment.start_cli(shell_worker(
      "trap 'echo asked > " + note + "; exit 1' TERM; touch " + note + "; while :; do :; done"));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(note); }));
  EXPECT_EQ(segment.cli({"cancel", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return text_in(note) == "asked\n"; }));
  EXPECT_TRUE(segment.becomes(id, "cancelled"));
  const auto report = worker.read_line();
  ASSERT_TRUE(report);
  EXPECT_NE(report->find("\tcancelled\t"), std::string::npos) << *report;
  EXPECT_TRUE(worker.running()) << "the worker itself goes on";
}

TEST(CliWork, a_command_that_ignores_sigterm_is_killed_after_the_grace_time) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string note = segment.folder() / "note";
  Process worker = segment.start_cli(shell_worker(
      "trap '' TERM; echo $$ > " + note + "; while :; do :; done", {"--grace", "50ms"}));
  ASSERT_TRUE(eventually([&] { return text_in(note).ends_with('\n'); }));
  EXPECT_EQ(segment.cli({"cancel", id}).exit_code, 0);
  const pid_t command = std::stoi(text_in(note));
  EXPECT_TRUE(eventually([&] { return gone(command); }));
}

TEST(CliWork, a_killed_worker_takes_its_command_along_and_the_job_runs_again) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a", "--retry", "max_attempts=5"});
  const std::string note = segment.folder() / "note";
  Process worker =
      segment.start_cli(shell_worker("echo $$ > " + note + "; exec tail -f /dev/null"));
  ASSERT_TRUE(eventually([&] { return text_in(note).ends_with('\n'); }));
  const pid_t command = std::stoi(text_in(note));
  worker.signal(SIGKILL);
  EXPECT_EQ(worker.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return gone(command); }));
  Process second = segment.start_cli({"work", "--count", "1", "--", "true"});
  EXPECT_EQ(second.wait().exit_code, 0);
  EXPECT_EQ(segment.job(id, "state"), "completed");
  EXPECT_EQ(segment.job(id, "attempt"), "2");
  EXPECT_NE(segment.job(id, "errors").find("holder_died"), std::string::npos)
      << segment.job(id, "errors");
}

TEST(CliWork, beats_while_its_command_runs_so_that_the_lease_never_ends) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a", "--lease", "4s"});
  const std::string go = segment.folder() / "go";
  Process worker = segment.start_cli(shell_worker("while ! test -e " + go + "; do :; done"));
  ASSERT_TRUE(segment.becomes(id, "active"));
  // Another job comes due after two of its leases have passed, by the same clock; it must still be
  // held then.
  const std::string clock = segment.enqueue({"-t", "a", "--queue", "clock", "--delay", "9s"});
  ASSERT_TRUE(segment.becomes(clock, "available"));
  EXPECT_EQ(segment.job(id, "state"), "active");
  std::ofstream(go) << "";
  EXPECT_TRUE(segment.becomes(id, "completed"));
  EXPECT_EQ(segment.job(id, "attempt"), "1");
}

TEST(CliWork, a_command_longer_than_its_timeout_is_stopped) {
  const LiveSegment segment;
  const std::string id =
      segment.enqueue({"-t", "a", "--timeout", "100ms", "--retry", "max_attempts=1"});
  Process worker = segment.start_cli(
      shell_worker("exec tail -f /dev/null", {"--grace", "50ms", "--count", "1"}));
  EXPECT_TRUE(segment.becomes(id, "discarded"));
  EXPECT_EQ(segment.job(id, "error.code"), "timeout");
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.out.find("\ttimed_out\t"), std::string::npos) << done.out;
}

TEST(CliWork, a_result_longer_than_the_segment_takes_fails_the_job_for_good) {
  const LiveSegment segment({"--max-body", "64K"});
  const std::string id = segment.enqueue({"-t", "a", "--retry", "max_attempts=5"});
  segment.cli(shell_worker("head -c 200000 /dev/zero | tr '\\0' x", {"--until-empty"}));
  EXPECT_EQ(segment.job(id, "state"), "discarded");
  EXPECT_EQ(segment.job(id, "error.code"), "too_large");
}

TEST(CliWork, a_command_need_not_read_its_args) {
  const LiveSegment segment;
  const Finished sent = segment.cli(
      {"enqueue"}, "{\"type\":\"a\",\"args\":[\"" + std::string(300'000, 'x') + "\"]}\n");
  const std::string id = lines_of(sent.out).at(0);
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment.job(id, "state"), "completed");
}

TEST(CliWork, large_args_arrive_whole) {
  const LiveSegment segment;
  const std::string id =
      segment.enqueue({"-t", "a", "-i", "\"" + std::string(100'000, 'x') + "\""});
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "wc", "-c"}).exit_code, 0);
  EXPECT_EQ(segment.job(id, "result"), "100004");
}

TEST(CliWork, reports_each_job_as_json_when_asked) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const Finished done = segment.cli({"work", "--json", "--until-empty", "--", "true"});
  EXPECT_EQ(member(done.out, "id"), id);
  EXPECT_EQ(member(done.out, "outcome"), "completed");
  EXPECT_EQ(member(done.out, "exit_code"), "0");
}

TEST(CliWork, takes_queues_from_left_to_right) {
  const LiveSegment segment;
  const std::string second = segment.enqueue({"-t", "a", "--queue", "second", "--priority", "0"});
  const std::string first = segment.enqueue({"-t", "a", "--queue", "first", "--priority", "9"});
  EXPECT_EQ(
      segment.cli({"work", "--queue", "first,second", "--count", "1", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment.job(first, "state"), "completed");
  EXPECT_EQ(segment.job(second, "state"), "available");
}

TEST(CliWork, refuses_to_start_without_a_command_that_can_run) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"work"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"work", "--", "no-such-command-anywhere"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"work", "--concurrency", "0", "--", "true"}).exit_code, 2);
  const std::string id = segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", segment.folder().path()}).exit_code, 2)
      << "a directory";
  EXPECT_EQ(segment.job(id, "attempt"), "0");
}

TEST(CliWork, refuses_numbers_that_do_not_fit_instead_of_wrapping_them) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--lease", "100d"},
                                                {"--count", "-1"},
                                                {"--concurrency", "-1"},
                                                {"--queue", ""},
                                                {"--lease", ""}}) {
    std::vector<std::string> words = {"work", "--until-empty"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "true"});
    const Finished done = segment.cli(words);
    EXPECT_EQ(done.exit_code, 2) << flags[0] << flags[1] << done.err;
    EXPECT_NE(done.err.find(flags[0]), std::string::npos) << done.err;
  }
  EXPECT_EQ(segment.job(id, "state"), "available");
}

TEST(CliWork, names_queues_that_do_not_exist_and_makes_none) {
  const LiveSegment segment({"--max-queues", "4"});
  segment.enqueue({"-t", "a"});
  const Finished typo =
      segment.cli({"work", "--queue", "default,defualt,c,d,e", "--until-empty", "--", "true"});
  EXPECT_EQ(typo.exit_code, 0) << typo.err;
  EXPECT_NE(
      typo.err.find(
          "there is no queue 'defualt' yet (did you mean 'default'?); its first job makes it\n"),
      std::string::npos)
      << typo.err;
  EXPECT_EQ(lines_of(segment.cli({"queue", "list"}).out).size(), 1U) << "none was made";
}

TEST(CliWork, takes_from_a_queue_from_its_first_job_on) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--queue", "late"},
        {"--queue", "late:2,later:1", "--strategy", "weighted"}}) {
    const LiveSegment segment;
    std::vector<std::string> words = {"work", "--count", "1"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "true"});
    Process worker = segment.start_cli(words);
    ASSERT_TRUE(eventually([&] { return worker.err().find("'late' yet") != std::string::npos; }));
    const std::string id = segment.enqueue({"-t", "a", "--queue", "late"});
    EXPECT_EQ(worker.wait().exit_code, 0);
    EXPECT_EQ(segment.job(id, "state"), "completed");
  }
}

TEST(CliWork, a_report_that_nobody_takes_does_not_stop_the_jobs) {
  const LiveSegment segment;
  std::string input;
  for (int i = 0; i < 200; ++i) input += "{\"type\":\"a\",\"args\":[]}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, input).exit_code, 0);
  run({"sh", "-c", "exec \"$0\" work --dir \"$1\" --name test --until-empty -- true >/dev/full",
       program("ojs-shm"), segment.folder().path()});
  EXPECT_EQ(lines_of(segment.cli({"list", "--state", "completed"}).out).size(), 200U);
}

}  // namespace
}  // namespace ojs_shm::test
