// SPDX-License-Identifier: Apache-2.0
// `ojs-shm up`: broker and gateway mean the same segment, also where the broker's file names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

/// Its READY line, once it has ended again.
std::string ready_of(const ScratchDirectory& folder, std::vector<std::string> flags) {
  std::vector<std::string> words = {program("ojs-shm"), "up",
                                    "--config",         folder / "broker.toml",
                                    "--listen",         "unix:" + (folder / "socket")};
  words.insert(words.end(), flags.begin(), flags.end());
  Process up = Process::start(words);
  const std::string ready = up.read_line().value_or("");
  up.signal(SIGTERM);
  const Finished done = up.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return ready;
}

TEST(CliUp, serves_the_segment_that_the_broker_s_file_names_unless_a_flag_names_another) {
  const ScratchDirectory folder;
  std::filesystem::create_directory(folder / "segments");
  std::ofstream(folder / "broker.toml") << "name = \"filed\"\ndir = \"" << folder / "segments"
                                        << "\"\nkeep = true\n";
  EXPECT_THAT(ready_of(folder, {}), HasSubstr("name=filed"));
  EXPECT_TRUE(std::filesystem::exists(folder / "segments/ojs-shm.filed"));
  EXPECT_THAT(ready_of(folder, {"--name", "flagged"}), HasSubstr("name=flagged"));
  EXPECT_TRUE(std::filesystem::exists(folder / "segments/ojs-shm.flagged"));
}

}  // namespace
}  // namespace ojs_shm::test
