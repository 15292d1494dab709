// SPDX-License-Identifier: Apache-2.0
// Commands that watch a segment whose file is removed under them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

void expect_end_with_segment(const LiveSegment& segment, Process& watcher) {
  ASSERT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  const Finished done = watcher.wait();
  EXPECT_FALSE(done.timed_out);
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_THAT(done.err, HasSubstr("was removed"));
}

TEST(CliWatchers, record_ends) {
  const LiveSegment segment;
  Process watcher = segment.start_cli({"record"});
  ASSERT_TRUE(watcher.read_line());
  expect_end_with_segment(segment, watcher);
}

TEST(CliWatchers, events_end) {
  const LiveSegment segment;
  Process watcher = segment.start_cli({"events", "--follow"});
  ASSERT_TRUE(
      eventually([&] { return watcher.err().find("events are off") != std::string::npos; }));
  expect_end_with_segment(segment, watcher);
}

TEST(CliWatchers, a_drain_ends) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  Process watcher = segment.start_cli({"drain", "--empty"});
  ASSERT_TRUE(eventually([&] { return segment.is_mapped_by(watcher); }));
  expect_end_with_segment(segment, watcher);
}

/// A reader that may only look waits by looking again and again.
TEST(CliWatchers, a_wait_of_a_user_that_may_only_look_ends) {
  const LiveSegment segment({"--mode", "0644"});
  ASSERT_EQ(::chmod(segment.folder().path().c_str(), 0755), 0);
  std::vector<std::string> words = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                    program("ojs-shm")};
  if (run({words[0], words[1], words[2], words[3], words[4], "--version"}).exit_code != 0)
    GTEST_SKIP() << "NOT RUN: no other user can be taken on here";
  const std::string id = segment.enqueue({"-t", "a"});
  words.insert(words.end(), {"wait", id, "--name", "test", "--dir", segment.folder().path()});
  Process watcher = Process::start(words);
  ASSERT_TRUE(eventually([&] { return segment.is_mapped_by(watcher); }));
  expect_end_with_segment(segment, watcher);
}

/// True once a look says so.
bool looks_say(Process& top, const char* removed) {
  return eventually([&] {
    const auto look = top.read_line();
    return look && member(*look, "removed") == removed;
  });
}

TEST(CliWatchers, top_says_so_in_json_and_goes_on_with_a_new_segment) {
  const LiveSegment segment;
  const std::vector<std::string> where = {"--name", "test", "--dir", segment.folder().path()};
  std::vector<std::string> words = {program("ojs-shm-top"), "--batch", "--json", "-d", "20ms"};
  words.insert(words.end(), where.begin(), where.end());
  Process top = Process::start(words);
  ASSERT_TRUE(looks_say(top, "false"));
  ASSERT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  ASSERT_TRUE(looks_say(top, "true"));
  words = {program("ojs-shm-broker"), "--remove"};
  words.insert(words.end(), where.begin(), where.end());
  Process broker = Process::start(words);
  ASSERT_TRUE(broker.read_line());
  EXPECT_TRUE(looks_say(top, "false"));
  top.signal(SIGTERM);
  EXPECT_EQ(top.wait().exit_code, 0);
  broker.signal(SIGTERM);
  EXPECT_EQ(broker.wait().exit_code, 0);
}

}  // namespace
}  // namespace ojs_shm::test
