// SPDX-License-Identifier: Apache-2.0
// The tool that tells how the requirements stand: a phrase that a row quotes must stand in the
// document that it names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>

#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

/// A tree with one row and one document.
class Requirements : public testing::Test {
 protected:
  Requirements() {
    const fs::path from = OJS_SHM_SOURCE_DIR, to = folder_.path();
    fs::create_directories(to / "tools/dev");
    fs::create_directories(to / "docs");
    fs::create_directories(to / "tests/mutants");
    for (const char* tool : {"requirements.py", "mutants.py", "results.py"})
      fs::copy_file(from / "tools/dev" / tool, to / "tools/dev" / tool);
    write("tests/mutants/mutants.tsv", "# none\n");
    write("docs/page.md", "Names are for people,\njobs carry numbers alone.\n");
  }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(fs::path(folder_.path()) / file) << text;
  }
  /// What is said of an informational row with this anchor.
  Finished judge(const std::string& anchor) {
    write("docs/requirements.tsv", "PRI-T06\tA.1\tI\t-\tNames are informational\tnone" +
                                       (anchor.empty() ? "" : "\t" + anchor) + "\n");
    return run({"python3", folder_ / "tools/dev/requirements.py"});
  }

  ScratchDirectory folder_;
};

TEST_F(Requirements, a_quoted_phrase_closes_an_informational_row_however_its_lines_break) {
  const Finished done = judge("docs/page.md: people, jobs carry numbers alone.");
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("PRI-T06\tI\tclosed\t"));
}

TEST_F(Requirements, a_phrase_that_does_not_stand_there_is_refused) {
  for (const auto& [anchor, about] : std::vector<std::pair<std::string, std::string>>{
           {"docs/page.md: people, jobs carry no numbers", "docs/page.md does not say: people,"},
           {"docs/other.md: people, jobs carry numbers alone.", "docs/other.md, which is not"},
           {"docs/page.md: PRI-T06", "at least 5 words"},
           {"", "needs an anchor"}}) {
    const Finished done = judge(anchor);
    EXPECT_EQ(done.exit_code, 1) << anchor;
    EXPECT_THAT(done.out, HasSubstr("PRI-T06\tI\topen\t")) << anchor;
    EXPECT_THAT(done.out, HasSubstr(about)) << anchor;
    EXPECT_THAT(done.out, Not(HasSubstr("closed"))) << anchor;
  }
}

TEST_F(Requirements, a_row_of_HTTP_without_its_test_is_listed_as_not_closed) {
  write("docs/requirements.tsv", "BP-P1\tA.5\tY\thttp\tClients wait\tnone\n");
  fs::create_directories(fs::path(folder_.path()) / "build/results");
  for (const auto& [report, state, status] :
       {std::tuple{"ok Suite.BP_P1_waits\n", "BP-P1\tY\thalf\t", 1},
        std::tuple{"ok Suite.BP_P1_waits\nok http.BP_P1_waits\n", "", 0}}) {
    write("build/results/unit.lines", report);
    const Finished done = run({"python3", folder_ / "tools/dev/requirements.py", "--open"});
    EXPECT_EQ(done.exit_code, status) << done.out;
    EXPECT_THAT(done.out, HasSubstr(state));
    EXPECT_EQ(done.out.find("BP-P1") != std::string::npos, status == 1) << done.out;
  }
}

}  // namespace
}  // namespace ojs_shm::test
