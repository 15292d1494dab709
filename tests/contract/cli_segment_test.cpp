// SPDX-License-Identifier: Apache-2.0
// Queues, segments and usage from the command line.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(CliQueue, sets_shows_pauses_and_resumes) {
  const LiveSegment segment;
  const Finished set = segment.cli(
      {"queue", "set", "mail", "--max-depth", "10", "--max-size-bytes", "64K", "--json"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(member(set.out, "backpressure.max_depth"), "10");
  EXPECT_EQ(member(set.out, "backpressure.max_size_bytes"), "65536");
  EXPECT_EQ(segment.cli({"queue", "pause", "mail"}).exit_code, 0);
  EXPECT_EQ(member(segment.cli({"queue", "get", "mail", "--json"}).out, "paused"), "true");
  const std::string id = segment.enqueue({"-t", "a", "--queue", "mail"});
  EXPECT_EQ(segment.cli({"work", "--queue", "mail", "--until-empty", "--", "true"}).out, "");
  EXPECT_EQ(segment.job(id, "state"), "available");
  EXPECT_EQ(segment.cli({"queue", "resume", "mail"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"work", "--queue", "mail", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment.job(id, "state"), "completed");
  const auto rows = lines_of(segment.cli({"queue", "list"}).out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].rfind("mail\trunning\t0\t10\t0\t65536\t0\t1\t", 0), 0U) << rows[0];
}

TEST(CliQueue, a_misspelt_name_makes_no_queue) {
  const LiveSegment segment;
  for (const char* command : {"pause", "resume", "get"}) {
    EXPECT_EQ(segment.cli({"queue", command, "nobody"}).exit_code, 4) << command;
  }
  EXPECT_EQ(segment.cli({"queue", "set", "Not A Name", "--max-depth", "1"}).exit_code, 2);
  const Finished negative = segment.cli({"queue", "set", "mail", "--max-depth", "-1"});
  EXPECT_EQ(negative.exit_code, 2);
  EXPECT_NE(negative.err.find("--max-depth: -1 must not be negative"), std::string::npos)
      << negative.err;
  EXPECT_EQ(segment.cli({"queue", "list"}).out, "");
}

TEST(CliQueue, QO_16_a_type_s_default_priority_is_set_and_shown) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"default-priority", "mail.send"}).out, "2\n");
  EXPECT_EQ(segment.cli({"default-priority", "mail.send", "high"}).out, "1\n");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "mail.send"}), "priority"), "1");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "mail.send", "--priority", "4"}), "priority"), "4");
  EXPECT_EQ(segment.cli({"default-priority", "mail.send", "none"}).out, "2\n");
  EXPECT_NE(segment.cli({"default-priority", "mail.send", "--json"}).out.find("\"set\":false"),
            std::string::npos);
}

TEST(CliSegments, lists_alive_and_stale_and_removes_only_the_stale) {
  LiveSegment segment;
  segment.enqueue({"-t", "a"});
  auto rows = lines_of(segment.cli({"segments"}).out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].rfind("test\t", 0), 0U);
  EXPECT_NE(rows[0].find("\talive\t"), std::string::npos) << rows[0];
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"rm", "test"}).exit_code, 3);
  EXPECT_TRUE(std::filesystem::exists(segment.file()));

  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  EXPECT_EQ(member(segment.cli({"segments", "--json"}).out, "state"), "stale");
  EXPECT_EQ(segment.cli({"rm", "test"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(segment.folder().path()));
  EXPECT_EQ(segment.cli({"rm", "test"}).exit_code, 4);
}

TEST(CliSegments, rm_force_removes_a_living_one) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(segment.file()));
}

TEST(CliSegments, a_file_that_is_no_segment_is_shown_and_not_attached) {
  const LiveSegment segment;
  std::ofstream(segment.folder() / "ojs-shm.junk") << std::string(100'000, 'x');
  const auto rows = lines_of(segment.cli({"segments"}).out);
  ASSERT_EQ(rows.size(), 2U);
  const std::string& junk = rows[0].rfind("junk", 0) == 0 ? rows[0] : rows[1];
  EXPECT_NE(junk.find("unreadable"), std::string::npos) << junk;
  const Finished done =
      run({program("ojs-shm"), "stats", "--name", "junk", "--dir", segment.folder().path()});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_NE(done.err, "");
}

TEST(CliSegments, a_link_that_leads_nowhere_is_named_and_can_be_removed) {
  const ScratchDirectory folder;
  const std::string link = folder / "ojs-shm.lnk",
                    what = link + " is a symbolic link to gone, where no file is";
  std::filesystem::create_symlink("gone", link);
  const std::vector<std::string> target = {"--name", "lnk", "--dir", folder.path()};
  const auto of = [&](const char* name, std::vector<std::string> words) {
    words.insert(words.begin(), program(name));
    words.insert(words.end(), target.begin(), target.end());
    return run(words);
  };
  const std::string way_out = "`ojs-shm rm lnk --dir " + folder.path() + "` removes the link";
  for (const Finished& done : {of("ojs-shm-broker", {}), of("ojs-shm", {"stats"})}) {
    EXPECT_EQ(done.exit_code, 3);
    EXPECT_NE(done.err.find(what), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(way_out), std::string::npos) << done.err;
    EXPECT_EQ(done.err.find("start one"), std::string::npos) << done.err;
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(link + ".lock"));
  const Finished listed = of("ojs-shm", {"segments", "--json"});
  EXPECT_EQ(member(listed.out, "state"), "unreadable") << listed.out;
  EXPECT_NE(member(listed.out, "problem").find(what), std::string::npos) << listed.out;
  const Finished doctor = of("ojs-shm", {"doctor"});
  EXPECT_EQ(doctor.exit_code, 1);
  for (const char* check : {"file lnk\tproblem\t", "segment\tproblem\t"}) {
    const auto begin = doctor.out.find(check);
    ASSERT_NE(begin, std::string::npos) << doctor.out;
    const std::string line = doctor.out.substr(begin, doctor.out.find('\n', begin) - begin);
    EXPECT_NE(line.find(what), std::string::npos) << line;
    EXPECT_NE(line.rfind("\t" + way_out), std::string::npos) << line;
  }
  EXPECT_EQ(of("ojs-shm", {"rm", "lnk"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CliSegments, no_segment_is_status_3_with_a_hint) {
  ScratchDirectory folder;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"stats"},
                                                {"list"},
                                                {"enqueue", "-t", "a"},
                                                {"work", "--", "true"},
                                                {"audit"}}) {
    std::vector<std::string> argv = {program("ojs-shm"), "--name",           "nobody", "--dir",
                                     folder.path(),      "--attach-timeout", "0"};
    argv.insert(argv.end(), words.begin(), words.end());
    const Finished done = run(argv);
    EXPECT_EQ(done.exit_code, 3) << words[0] << done.err;
    EXPECT_EQ(done.err, "no segment 'nobody' in " + folder.path() +
                            "; start one: ojs-shm-broker --name nobody --dir " + folder.path() +
                            "\n");
  }
}

TEST(CliSegments, a_directory_that_is_not_there_is_no_empty_one) {
  const ScratchDirectory folder;
  std::ofstream(folder / "file") << "";
  for (const std::string& dir : {folder / "nowhere", folder / "file"}) {
    const Finished listed = run({program("ojs-shm"), "segments", "--dir", dir, "--json"});
    EXPECT_EQ(listed.exit_code, 3) << listed.out;
    EXPECT_NE(member(listed.err, "error.message").find(dir), std::string::npos) << listed.err;
    const Finished attached = run({program("ojs-shm"), "stats", "--dir", dir});
    EXPECT_EQ(attached.exit_code, 3);
    EXPECT_NE(attached.err.find("which is not a directory"), std::string::npos) << attached.err;
  }
  EXPECT_EQ(run({program("ojs-shm"), "segments", "--dir", folder.path()}).exit_code, 0);
}

TEST(CliSegments, no_permission_is_status_7) {
  const LiveSegment segment({"--mode", "0600"});
  // A process that is neither the owner nor root, and who can reach the programs and the directory.
  ASSERT_EQ(::chmod(segment.folder().path().c_str(), 0755), 0);
  const std::vector<std::string> nobody = {"setpriv", "--reuid=65534", "--regid=65534",
                                           "--clear-groups", program("ojs-shm")};
  const auto as_nobody = [&](std::vector<std::string> words) {
    words.insert(words.begin(), nobody.begin(), nobody.end());
    return run(words);
  };
  if (as_nobody({"--version"}).exit_code != 0)
    GTEST_SKIP() << "NOT RUN: no other user can be taken on here";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"stats"},
                                                  {"enqueue", "-t", "a"},
                                                  {"work", "--", "true"},
                                                  {"list", "--json"}}) {
    std::vector<std::string> words = command;
    words.insert(words.begin(), {"--name", "test", "--dir", segment.folder().path()});
    const Finished done = as_nobody(words);
    EXPECT_EQ(done.exit_code, 7) << command.front() << ": " << done.err;
    EXPECT_NE(done.err.find(segment.file()), std::string::npos) << done.err;
  }
  const Finished doctor = as_nobody({"doctor", "--name", "test", "--dir", segment.folder().path()});
  EXPECT_NE(doctor.out.find("member of its group"), std::string::npos) << doctor.out;
  EXPECT_EQ(doctor.out.find("ojs-shm rm"), std::string::npos)
      << "its file is in order: " << doctor.out;
}

TEST(CliStats, counts_what_happened) {
  const LiveSegment segment;
  for (int i = 0; i < 3; ++i) segment.enqueue({"-t", "a", "--priority", i == 0 ? "0" : "7"});
  segment.cli({"work", "--count", "1", "--", "true"});
  const std::string stats = segment.cli({"stats", "--json"}).out;
  const std::string queues = member(stats, "queues");
  const std::string queue = queues.substr(1, queues.size() - 2);
  EXPECT_EQ(member(queue, "name"), "default");
  EXPECT_EQ(member(queue, "depth"), "2");
  EXPECT_EQ(member(queue, "counts.completed"), "1");
  EXPECT_EQ(member(queue, "totals.enqueued"), "3");
  EXPECT_EQ(member(queue, "available_by_priority.7"), "2");
  EXPECT_NE(member(stats, "processes").find("\"broker\":true"), std::string::npos);
  EXPECT_NE(member(stats, "pools").find("\"slots\""), std::string::npos);
  const auto rows = lines_of(segment.cli({"stats"}).out);
  EXPECT_EQ(rows.at(0).rfind("segment\ttest\t", 0), 0U) << rows.at(0);
}

TEST(CliAudit, a_busy_and_a_mended_segment_are_clean) {
  const LiveSegment segment;
  std::string input;
  for (int i = 0; i < 300; ++i)
    input += "{\"type\":\"a\",\"args\":[],\"priority\":" + std::to_string(i % 256) + "}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, input).exit_code, 0);
  Process worker = segment.start_cli({"work", "--concurrency", "2", "--", "true"});
  Finished audit;
  const auto clean = [&] {
    audit = segment.cli({"audit"});
    return audit.exit_code == 0 && audit.out.empty();
  };
  // A process that stands between two steps for long is found there by several looks.
  EXPECT_TRUE(eventually(clean)) << audit.out;
  worker.signal(SIGKILL);
  worker.wait();
  EXPECT_EQ(segment.cli({"audit", "--mend"}).exit_code, 0);
  EXPECT_TRUE(eventually(clean)) << audit.out;
}

TEST(CliUsage, help_of_every_command_names_its_options) {
  for (const char* command : {"enqueue", "work", "get", "list", "wait", "cancel", "reprioritize",
                              "activate", "dead", "queue", "default-priority", "stats", "drain",
                              "audit", "doctor", "segments", "rm", "export", "import"}) {
    const Finished done = run({program("ojs-shm"), command, "--help"});
    EXPECT_EQ(done.exit_code, 0) << command;
    EXPECT_NE(done.out.find("Usage:"), std::string::npos) << command;
  }
  const Finished all = run({program("ojs-shm"), "--help"});
  EXPECT_NE(all.out.find("EXIT STATUS"), std::string::npos);
  for (const char* group : {"queue", "pool", "limit", "dead"}) {
    const Finished done = run({program("ojs-shm"), group, "--help"});
    EXPECT_EQ(done.out.find("ojs-shm enqueue"), std::string::npos)
        << "an example of another command: " << done.out;
    EXPECT_NE(done.out.find("Every command also takes"), std::string::npos) << done.out;
  }
  const Finished version = run({program("ojs-shm"), "--version"});
  EXPECT_NE(version.out.find("segment format"), std::string::npos);
}

TEST(CliUsage, an_unknown_command_is_named_also_beside_help) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"bogus"},
                                                {"bogus", "--help"},
                                                {"--name", "x", "bogus"},
                                                {"bogus", "--json"}}) {
    std::vector<std::string> argv = {program("ojs-shm")};
    argv.insert(argv.end(), words.begin(), words.end());
    const Finished done = run(argv);
    EXPECT_EQ(done.exit_code, 2) << words.back();
    EXPECT_NE(done.err.find("there is no command `bogus`"), std::string::npos) << done.err;
    EXPECT_EQ(done.out, "");
  }
  const Finished inner = run({program("ojs-shm"), "queue", "bogus"});
  EXPECT_EQ(inner.exit_code, 2);
  EXPECT_NE(inner.err.find("`queue bogus`"), std::string::npos) << inner.err;
}

TEST(CliUsage, wrong_usage_is_status_2_also_in_json) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"no-such-command"},
                                                {"get"},
                                                {"queue"},
                                                {"get", "a", "--no-such-flag"}}) {
    std::vector<std::string> argv = {program("ojs-shm")};
    argv.insert(argv.end(), words.begin(), words.end());
    const Finished text = run(argv);
    EXPECT_EQ(text.exit_code, 2) << text.err;
    EXPECT_EQ(text.out, "");
    argv.push_back("--json");
    const Finished json = run(argv);
    EXPECT_EQ(json.exit_code, 2);
    EXPECT_EQ(member(json.err, "error.code"), "invalid_request") << json.err;
  }
}

}  // namespace
}  // namespace ojs_shm::test
