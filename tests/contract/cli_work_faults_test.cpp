// SPDX-License-Identifier: Apache-2.0
// `ojs-shm work` where something is in its way: a missing program, output that is not read,
// a terminal that was closed, a command inside another one, processes that outlive their command.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string until_there(const std::string& file) {
  return "while ! test -e " + file + "; do sleep 0.01; done";
}

/// Ended; a process that no process has reaped yet has ended too.
bool has_ended(pid_t pid) {
  const std::string stat = text_in("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos || stat[name_end + 2] == 'Z' || stat[name_end + 2] == 'X';
}

TEST(CliWorkFaults, a_command_has_the_variables_of_its_own_job_alone) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "inner", "--retry", "max_attempts=3"});
  const std::vector<std::string> names = {"TYPE",         "QUEUE", "PRIORITY", "ATTEMPT",
                                          "MAX_ATTEMPTS", "FENCE", "JOB_ID"};
  ProcessOptions outer;
  for (const std::string& name : names) outer.environment.emplace_back("OJS_" + name, "outer");
  const Finished done = segment.start_cli({"work", "--until-empty", "--", "env"}, outer).wait();
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::string seen = segment.job(id, "result");
  for (const std::string& name : names) {
    std::size_t found = 0;
    for (const std::string& line : lines_of(seen)) found += line.starts_with("OJS_" + name + "=");
    EXPECT_EQ(found, 1U) << name << " in\n" << seen;
  }
  EXPECT_EQ(seen.find("=outer"), std::string::npos) << seen;
}

TEST(CliWorkFaults, a_program_that_is_gone_costs_no_job_an_attempt) {
  const LiveSegment segment;
  const std::string first = segment.enqueue({"-t", "a", "--priority", "1"});
  const std::string second = segment.enqueue({"-t", "a", "--priority", "2"});
  const std::string third = segment.enqueue({"-t", "a", "--priority", "3"});
  const std::string script = segment.folder() / "once";
  std::ofstream(script) << "#!/bin/sh\nrm \"$0\"\n";
  ASSERT_EQ(::chmod(script.c_str(), 0700), 0);
  const Finished done = segment.cli({"work", "--until-empty", "--", script});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.err.find("once: No such file or directory"), std::string::npos) << done.err;
  EXPECT_NE(done.out.find("\trequeued\t"), std::string::npos) << done.out;
  EXPECT_EQ(segment.job(first, "state"), "completed");
  for (const std::string& id : {second, third}) {
    EXPECT_EQ(segment.job(id, "state"), "available");
    EXPECT_EQ(segment.job(id, "attempt"), "0");
  }
}

TEST(CliWorkFaults, a_closed_terminal_ends_it_once_its_command_is_done) {
  ::signal(SIGHUP, SIG_DFL);  // as this test's own start may not have it
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"}), next = segment.enqueue({"-t", "a"});
  const std::string go = segment.folder() / "go";
  Process worker =
      segment.start_cli({"work", "--worker-id", "w", "--", "sh", "-c", until_there(go)});
  ASSERT_TRUE(segment.becomes(id, "active"));
  worker.signal(SIGHUP);
  const auto observer = Observer::attach(segment.where()).value();
  EXPECT_TRUE(eventually([&] {
    const auto found = observer.registered_worker("w");
    return !found.ok() || found->state() == "terminate";
  }));
  std::ofstream(go) << "";
  const Finished done = worker.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(segment.job(id, "state"), "completed");
  EXPECT_EQ(segment.job(next, "state"), "available");
}

TEST(CliWorkFaults, a_hangup_that_is_ignored_from_the_start_stays_ignored) {
  const LiveSegment segment;
  Process worker = Process::start({"sh", "-c",
                                   "trap '' HUP; exec \"$0\" work --name test --dir \"$1\" "
                                   "--count 2 -- true",
                                   program("ojs-shm"), segment.folder().path()});
  ASSERT_TRUE(segment.becomes(segment.enqueue({"-t", "a"}), "completed"));
  worker.signal(SIGHUP);
  EXPECT_TRUE(segment.becomes(segment.enqueue({"-t", "a"}), "completed"));
  EXPECT_EQ(worker.wait().exit_code, 0);
}

/// Of a page, so that a few reports fill it.
class UnreadPipe {
 public:
  explicit UnreadPipe(const std::string& path) {
    if (::mkfifo(path.c_str(), 0600) == 0) fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ >= 0) ::fcntl(fd_, F_SETPIPE_SZ, 4096);
  }
  UnreadPipe(const UnreadPipe&) = delete;
  ~UnreadPipe() { ::close(fd_); }
  bool there() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

TEST(CliWorkFaults, output_that_is_not_read_stops_neither_the_jobs_nor_the_end) {
  const LiveSegment segment;
  const std::string path = segment.folder() / "unread";
  const UnreadPipe pipe(path);
  ASSERT_TRUE(pipe.there());
  std::string input;
  for (int i = 0; i < 100; ++i) input += "{\"type\":\"a\",\"args\":[]}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, input).exit_code, 0);
  const Finished done =
      run({"sh", "-c",
           "exec \"$0\" work --name test --dir \"$1\" --until-empty -- sh -c 'head -c 9000 "
           "/dev/zero >&2' >\"$2\" 2>\"$2\"",
           program("ojs-shm"), segment.folder().path(), path});
  EXPECT_FALSE(done.timed_out);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(lines_of(segment.cli({"list", "--state", "completed"}).out).size(), 100U);
}

TEST(CliWorkFaults, what_a_cancelled_command_left_running_is_killed_after_the_grace_time) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string note = segment.folder() / "note";
  Process worker = segment.start_cli(
      {"work", "--grace", "50ms", "--count", "1", "--", "sh", "-c",
       "sh -c 'trap \"\" TERM; echo $$ > " + note + "; while :; do sleep 0.01; done' & wait"});
  ASSERT_TRUE(eventually([&] { return text_in(note).ends_with('\n'); }));
  const pid_t left = std::stoi(text_in(note));
  ASSERT_EQ(segment.cli({"cancel", id}).exit_code, 0);
  const bool killed = eventually([&] { return has_ended(left); }, std::chrono::seconds(10));
  EXPECT_TRUE(killed);
  if (!killed) ::kill(left, SIGKILL);
  EXPECT_EQ(worker.wait().exit_code, 0);
}

TEST(CliWorkFaults, a_command_in_another_directory_still_finds_the_segment) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  ProcessOptions there;
  there.directory = segment.folder().path();
  const Finished done = run({program("ojs-shm"), "work", "--name", "test", "--dir", "./.",
                             "--until-empty", "--", "sh", "-c", "cd /; echo $OJS_SHM_DIR"},
                            there);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::filesystem::path handed_on = segment.job(id, "result");
  EXPECT_TRUE(handed_on.is_absolute()) << handed_on;
  EXPECT_TRUE(std::filesystem::equivalent(handed_on, segment.folder().path())) << handed_on;
}

/// 2^63 nanoseconds are 292 years.
TEST(CliWorkFaults, a_grace_time_beyond_the_clock_is_a_long_one) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const std::string go = segment.folder() / "go";
  Process worker = segment.start_cli(
      {"work", "--worker-id", "w", "--grace", "P300Y", "--", "sh", "-c", until_there(go)});
  ASSERT_TRUE(segment.becomes(id, "active"));
  worker.signal(SIGTERM);
  const auto observer = Observer::attach(segment.where()).value();
  EXPECT_TRUE(eventually([&] {
    const auto found = observer.registered_worker("w");
    return !found.ok() || found->state() == "terminate";
  }));
  std::ofstream(go) << "";
  EXPECT_EQ(worker.wait().exit_code, 0);
  EXPECT_EQ(segment.job(id, "state"), "completed");
}

}  // namespace
}  // namespace ojs_shm::test
