// SPDX-License-Identifier: Apache-2.0
// The flight recorder from the command line: what processes did before they died, live and from a
// copy of the segment's file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// "from>to by pid" of one job, in order.
std::vector<std::string> life_of(const LiveSegment& segment, const std::string& id,
                                 std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), {"audit", "--recent", "--json"});
  const Finished done = segment.cli(flags);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  std::vector<std::string> steps;
  for (const std::string& line : lines_of(done.out))
    if (member(line, "job") == id)
      steps.push_back(member(line, "from") + ">" + member(line, "to") + " by " +
                      member(line, "pid"));
  return steps;
}

TEST(CliRecorder, tells_what_a_killed_worker_did_and_what_its_repair_gave_back) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "long.work"});
  Process worker = segment.start_cli({"work", "--", "sleep", "60"});
  ASSERT_TRUE(segment.becomes(id, "active"));
  const std::string pid = std::to_string(worker.pid());
  EXPECT_THAT(life_of(segment, id), Contains("available>active by " + pid));
  const std::string copy = segment.folder() / "copy";
  std::filesystem::copy_file(segment.file(), copy);
  worker.signal(SIGKILL);
  worker.wait();
  ASSERT_TRUE(segment.becomes(id, "available"));

  const std::vector<std::string> life = life_of(segment, id);
  ASSERT_EQ(life.size(), 3U);
  EXPECT_THAT(life[0], HasSubstr("new>available"));
  EXPECT_EQ(life[1], "available>active by " + pid);
  EXPECT_EQ(life[2], "active>available by " + pid) << "in the place of the dead";
  EXPECT_EQ(life_of(segment, id, {"--post-mortem", copy}).size(), 2U) << "as the copy has it";

  const Finished table = segment.cli({"audit", "--recent", "--limit", "1"});
  EXPECT_THAT(lines_of(table.out), ElementsAre(HasSubstr(id + "\tdefault\tactive\tavailable")));
}

TEST(CliRecorder, refuses_what_it_cannot_read) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"audit", "--recent", "--mend"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"audit", "--limit", "3"}).exit_code, 2) << "without --recent";
  EXPECT_NE(segment.cli({"audit", "--recent", "--post-mortem", "/dev/null"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"audit", "--recent"}).out, "") << "nothing happened yet";
}

}  // namespace
}  // namespace ojs_shm::test
