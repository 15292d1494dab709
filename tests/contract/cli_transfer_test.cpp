// SPDX-License-Identifier: Apache-2.0
// `ojs-shm export` and `ojs-shm import`: from segment to segment, and from versions that are gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <sstream>

#include "shm/layout.hpp"
#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Everything behind the first line, which names segment and time.
std::string without_head(const std::string& text) { return text.substr(text.find('\n') + 1); }

/// Without what an import changes: fences go on, and the order of fetching is told by the lines.
std::string without_fences(std::string text) {
  for (std::size_t at = text.find("\"fence\":"); at != std::string::npos;
       at = text.find("\"fence\":", at))
    text.erase(at, text.find(',', at) + 1 - at);
  return text;
}

TEST(CliTransfer, an_export_goes_into_a_new_segment_and_comes_out_the_same) {
  const LiveSegment from, to;
  for (const char* priority : {"low", "high", "critical", "9"})
    from.enqueue({"-t", "a.b", "--priority", priority});
  from.enqueue({"-t", "a.b", "--queue", "mail", "--delay", "10h", "-i", "{\"x\":[1,2]}"});
  from.cli({"queue", "set", "mail", "--max-depth", "5"});
  from.cli({"pool", "set", "web", "--queue", "mail:3,default:1", "--concurrency", "7"});
  from.cli({"limit", "set", "type:a.b", "--concurrency", "9"});
  from.cli({"work", "--count", "1", "--", "echo", "7"});
  const Finished out = from.cli({"export"});
  ASSERT_EQ(out.exit_code, 0) << out.err;
  EXPECT_THAT(out.out, testing::StartsWith("{\"ojs_shm_export\":2,\"convention\":\"ojs\""));
  const Finished in = to.cli({"import", "-", "--json"}, out.out);
  ASSERT_EQ(in.exit_code, 0) << in.err;
  EXPECT_EQ(in.out,
            "{\"jobs\":5,\"existing\":0,\"refused\":0,\"queues\":2,\"default_priorities\":0,"
            "\"defaulted\":0,"
            "\"clamped\":0,\"pools\":1,\"limits\":1,\"crons\":0,\"displaced\":0}\n");
  EXPECT_EQ(without_fences(without_head(to.cli({"export"}).out)),
            without_fences(without_head(out.out)));
  const Finished again = to.cli({"import", "-"}, out.out);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, testing::StartsWith("jobs\t0\nexisting\t5\n"));
  EXPECT_EQ(to.cli({"audit"}).exit_code, 0);
}

TEST(CliTransfer, crons_go_along_and_are_counted) {
  const LiveSegment from, to;
  for (const char* name : {"hourly", "nightly"})
    ASSERT_EQ(from.cli({"cron", "set", name, "30 4 * * *", "--type", "a.b"}).exit_code, 0);
  const Finished in = to.cli({"import", "-", "--json"}, from.cli({"export"}).out);
  EXPECT_EQ(member(in.out, "crons"), "2") << in.err;
  EXPECT_EQ(member(to.cli({"cron", "get", "hourly", "--json"}).out, "expression"), "30 4 * * *");
}

TEST(
    CliTransfer,
    QO_17_jobs_move_to_qo_by_rank_and_those_without_priority_are_normal_and_behind_the_normal_ones) {
  const LiveSegment from, to({"--convention", "qo"});
  const std::string high = from.enqueue({"-t", "a", "--priority", "high"});
  // 127 ranks behind the first, as 128 is
  const std::string normal = from.enqueue({"-t", "a", "--priority", "127"});
  const std::string file = from.folder() / "export", bare = "01961234-5678-7abc-8def-000000000001";
  const std::string text = from.cli({"export"}).out;
  const std::size_t head = text.find('\n') + 1;
  std::ofstream(file) << text.substr(0, head) << "{\"job\":{\"type\":\"a\",\"id\":\"" << bare
                      << "\"}}\n"
                      << text.substr(head);
  const Finished done = to.cli({"import", file, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(member(done.out, "defaulted"), "1");
  EXPECT_EQ(to.job(high, "priority"), "254");
  EXPECT_EQ(to.job(bare, "priority"), "128");
  std::vector<std::string> ids;
  for (const std::string& line : lines_of(to.cli({"list", "--json"}).out))
    ids.push_back(member(line, "id"));
  EXPECT_EQ(ids, (std::vector<std::string>{high, normal, bare}));
}

TEST(CliTransfer, a_line_that_is_refused_is_named_and_the_others_go_on) {
  const LiveSegment segment;
  const std::string file = segment.folder() / "export";
  std::ofstream(file) << "{\"ojs_shm_export\":1,\"convention\":\"ojs\"}\n"
                         "{\"job\":{\"type\":\"a\",\"priority\":999}}\n"
                         "{\"job\":{\"type\":\"a\",\"priority\":1}}\n"
                         "{\"job\":{\"type\":\"NO\"}}";
  const Finished done = segment.cli({"import", file, "--json"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(member(done.out, "jobs"), "1");
  EXPECT_EQ(member(done.out, "refused"), "2");
  const auto said = lines_of(done.err);
  ASSERT_EQ(said.size(), 2U) << done.err;
  EXPECT_THAT(member(said[0], "error.message"), testing::StartsWith("line 2: priority 999"));
  EXPECT_THAT(member(said[1], "error.message"), testing::StartsWith("line 4: type"));
}

TEST(CliTransfer, what_ends_an_import_has_its_own_status) {
  const LiveSegment segment({"--slots", "64"});
  const Finished foreign = segment.cli({"import", "-"}, "{\"type\":\"a\"}\n");
  EXPECT_EQ(foreign.exit_code, 3);
  EXPECT_THAT(foreign.err, HasSubstr("ojs-shm export"));
  EXPECT_EQ(segment.cli({"import", "-"}, "{\"ojs_shm_export\":99}\n").exit_code, 3);
  for (const char* nothing : {"", "\n \n"}) {
    const Finished empty = segment.cli({"import", "-"}, nothing);
    EXPECT_EQ(empty.exit_code, 3);
    EXPECT_EQ(empty.out, "");
    EXPECT_THAT(empty.err, HasSubstr("an export begins with"));
  }
  const Finished aged = segment.cli({"import", "-"},
                                    "{\"ojs_shm_export\":1,\"convention\":\"ojs\"}\n"
                                    "{\"aging\":{\"floor\":300}}\n"
                                    "{\"queue\":{\"name\":\"a\",\"settings\":{\"shards\":0}}}\n");
  EXPECT_EQ(aged.exit_code, 1);
  EXPECT_THAT(aged.err, HasSubstr("line 2: the ageing limit 300"));
  EXPECT_THAT(aged.err, HasSubstr("shards must be an integer from 1 to 16, not 0"));
  EXPECT_EQ(segment.cli({"import", segment.folder() / "nowhere"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"import"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"export", "nobody"}).exit_code, 3);
  std::string many = "{\"ojs_shm_export\":1,\"convention\":\"ojs\"}\n";
  for (int i = 0; i < 65; ++i) many += "{\"job\":{\"type\":\"a\",\"priority\":1}}\n";
  const Finished full = segment.cli({"import", "-"}, many);
  EXPECT_EQ(full.exit_code, 6);
  EXPECT_THAT(full.err, HasSubstr("line 66: "));
}

TEST(CliTransfer, a_segment_of_another_format_is_refused_with_the_two_commands_that_move_its_jobs) {
  const LiveSegment segment;
  const std::string name = "old", file = segment.folder() / "ojs-shm.old";
  std::string bytes = text_in(segment.file());
  bytes[offsetof(shm::Header, format)] = 99;
  std::ofstream(file) << bytes;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"stats"}, {"enqueue", "-t", "a"}, {"export"}}) {
    std::vector<std::string> command = {program("ojs-shm"), "--name", name, "--dir",
                                        segment.folder().path()};
    command.insert(command.end(), words.begin(), words.end());
    const Finished done = run(command);
    EXPECT_EQ(done.exit_code, 3) << words.front();
    EXPECT_THAT(done.err, HasSubstr("has segment format 99"));
    EXPECT_THAT(done.err, HasSubstr("`ojs-shm export old --dir " + segment.folder().path() +
                                    " > old.ndjson`"));
    EXPECT_THAT(done.err, HasSubstr("`ojs-shm import old.ndjson --name NEW --dir " +
                                    segment.folder().path() + "`"));
  }
}

TEST(CliTransfer, another_convention_is_refused_with_the_same_commands) {
  LiveSegment segment;
  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  const Finished other = run({program("ojs-shm-broker"), "--name", "test", "--dir",
                              segment.folder().path(), "--convention", "qo"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("ojs-shm import test.ndjson --name NEW"));
}

/// The text of version 1 is read by every later version, by what the first one wrote.
TEST(CliTransfer, the_first_version_of_the_text_is_still_read) {
  const LiveSegment segment;
  const std::string file = OJS_SHM_SOURCE_DIR "/tests/fixtures/export_1.ndjson";
  const Finished done = segment.cli({"import", file, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(member(done.out, "jobs"), "9");
  EXPECT_EQ(member(done.out, "queues"), "2");
  EXPECT_EQ(member(done.out, "default_priorities"), "2");
  // Members without a value are left out, so each line comes out again as it went in.
  const std::string again = segment.cli({"export"}).out;
  for (const std::string& line : lines_of(without_fences(without_head(text_in(file)))))
    EXPECT_THAT(lines_of(without_fences(again)), testing::Contains(line));
  EXPECT_EQ(segment.cli({"dead", "list", "--json"}).out.empty(), false);
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "never.seen"}), "priority"), "4");
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

TEST(CliTransfer, the_second_version_brings_unique_jobs_workflows_and_crons) {
  const LiveSegment segment;
  const std::string file = OJS_SHM_SOURCE_DIR "/tests/fixtures/export_2.ndjson";
  const Finished done = segment.cli({"import", file, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(segment.cli({"enqueue", "-t", "report.daily", "--queue", "reports", "--unique", "type"})
                .exit_code,
            5);
  EXPECT_THAT(segment.cli({"cron", "list"}).out, HasSubstr("nightly"));
  EXPECT_THAT(segment.cli({"workflow", "list"}).out, HasSubstr("running"));
  ASSERT_EQ(segment.cli({"work", "--queue", "steps", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_THAT(segment.cli({"workflow", "list"}).out, HasSubstr("completed"));
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

}  // namespace
}  // namespace ojs_shm::test
