// SPDX-License-Identifier: Apache-2.0
// Programs whose stdin, stdout or stderr are closed or cannot be written: they do their work, and
// say by their status when an answer got lost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

/// `ojs-shm WORDS... REDIRECTIONS` in a shell. The words hold nothing that a shell would read.
Finished cli(const LiveSegment& segment, const std::string& words, const std::string& input = {}) {
  ProcessOptions options;
  options.input = input;
  options.environment = {{"OJS_SHM_NAME", "test"}, {"OJS_SHM_DIR", segment.folder().path()}};
  return run({"sh", "-c", "\"$0\" " + words, program("ojs-shm")}, options);
}

TEST(StandardStreams, a_broken_stderr_changes_no_status) {
  const LiveSegment segment;
  for (const std::string broken : {"2>&-", "2>/dev/full"}) {
    EXPECT_EQ(cli(segment, "get zz " + broken).exit_code, 4) << broken;
    EXPECT_EQ(cli(segment, "bogus " + broken).exit_code, 2) << broken;
    EXPECT_EQ(cli(segment, "audit --mend " + broken).exit_code, 0) << broken;
    const std::string id = segment.enqueue({"-t", "a"});
    ASSERT_EQ(segment.cli({"cancel", id}).exit_code, 0);
    EXPECT_EQ(cli(segment, "wait " + id + " " + broken).exit_code, 5) << broken;
    const Finished broker =
        run({"sh", "-c", "\"$0\" --bogus " + broken, program("ojs-shm-broker")});
    EXPECT_EQ(broker.exit_code, 2) << broken;
  }
}

TEST(StandardStreams, a_refused_line_with_a_broken_stderr_does_not_keep_the_others_out) {
  const LiveSegment segment;
  for (const char* broken : {"2>&-", "2>/dev/full"}) {
    const Finished done =
        cli(segment, std::string("enqueue ") + broken,
            "bad\n{\"type\":\"a\",\"args\":[1]}\n{\"type\":\"a\",\"args\":[2]}\n");
    EXPECT_EQ(done.exit_code, 1) << broken;
    EXPECT_EQ(lines_of(done.out).size(), 2U) << broken;
  }
  EXPECT_EQ(lines_of(segment.cli({"list"}).out).size(), 4U);
}

TEST(StandardStreams, an_answer_that_cannot_be_written_is_status_1_or_6_with_a_message) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  for (const std::string command : {"enqueue -t a -i 1", "list", "stats --json", "segments",
                                    "queue list", "--help", "--version"}) {
    for (const std::string broken : {" >/dev/full", " >&-"}) {
      const Finished done = cli(segment, command + broken);
      EXPECT_EQ(done.exit_code, broken == " >/dev/full" ? 6 : 1) << command << broken;
      EXPECT_NE(done.err.find("output"), std::string::npos)
          << command << broken << ": " << done.err;
    }
  }
  EXPECT_EQ(member(cli(segment, "list --json >/dev/full").err, "error.code"), "no_space");
  const Finished version =
      run({"sh", "-c", "\"$0\" --version >/dev/full", program("ojs-shm-broker")});
  EXPECT_EQ(version.exit_code, 6);
  EXPECT_NE(version.err.find("output"), std::string::npos) << version.err;
  EXPECT_EQ(cli(segment, "audit >&-").exit_code, 0) << "it has nothing to say";
}

TEST(StandardStreams, no_file_of_a_broker_becomes_its_stdin_stdout_or_stderr) {
  ScratchDirectory folder;
  Process broker = Process::start({"sh", "-c", "exec \"$0\" --name test --dir \"$1\" <&- >&- 2>&-",
                                   program("ojs-shm-broker"), folder.path()});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder / "ojs-shm.test"); }));
  for (const char* fd : {"0", "1", "2"}) {
    const auto link = "/proc/" + std::to_string(broker.pid()) + "/fd/" + fd;
    EXPECT_EQ(std::filesystem::read_symlink(link), "/dev/null") << fd;
  }
  broker.signal(SIGTERM);
  EXPECT_EQ(broker.wait().exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

/// `COMMAND --dir DIR FLAGS` of a program whose READY finds no room; it has said so when this
/// returns.
Process with_ready_lost(const std::string& name, const std::string& dir, const std::string& flags,
                        const std::string& command = {}) {
  Process process = Process::start(
      {"sh", "-c", "exec \"$0\" " + command + " --dir \"$1\" " + flags + " >/dev/full",
       program(name), dir});
  EXPECT_TRUE(eventually([&] {
    return process.err().find("READY could not be written: ") != std::string::npos;
  })) << name;
  return process;
}

TEST(StandardStreams, a_broker_whose_ready_gets_lost_serves_and_says_so_at_the_end) {
  ScratchDirectory folder;
  Process broker = with_ready_lost("ojs-shm-broker", folder.path(), "--name test --remove");
  EXPECT_EQ(
      run({program("ojs-shm"), "enqueue", "-t", "a", "--name", "test", "--dir", folder.path()})
          .exit_code,
      0);
  broker.signal(SIGTERM);
  EXPECT_EQ(broker.wait().exit_code, 6);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(StandardStreams, a_gateway_or_exporter_whose_ready_gets_lost_says_so_at_the_end) {
  const LiveSegment segment;
  for (const char* service : {"ojs-shm-gateway", "ojs-shm-exporter"}) {
    Process process =
        with_ready_lost(service, segment.folder().path(), "--name test --listen 127.0.0.1:0");
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait().exit_code, 6) << service;
  }
}

TEST(StandardStreams, a_broker_and_a_gateway_whose_common_ready_gets_lost_say_so_at_the_end) {
  ScratchDirectory folder;
  Process up = with_ready_lost("ojs-shm", folder.path(), "--name test --listen 127.0.0.1:0", "up");
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait().exit_code, 6);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace ojs_shm::test
