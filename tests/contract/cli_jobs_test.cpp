// SPDX-License-Identifier: Apache-2.0
// Looking at jobs and changing them from the command line, and the exit codes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <fstream>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

constexpr const char* kNobody = "01890000-0000-7000-8000-0000000000ff";

TEST(CliJobs, QO_10_get_prints_the_job_unwrapped) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "mail.send", "--priority", "1"});
  const Finished done = segment.cli({"get", id, "--json"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(member(done.out, "id"), id);
  EXPECT_EQ(member(done.out, "priority"), "1");
  EXPECT_EQ(member(done.out, "state"), "available");
  EXPECT_EQ(lines_of(done.out).size(), 1U);
  const Finished text = segment.cli({"get", id});
  EXPECT_NE(text.out.find("state\tavailable\n"), std::string::npos) << text.out;
}

TEST(CliJobs, unknown_ids_are_status_4_for_every_command) {
  const LiveSegment segment;
  for (const char* command : {"get", "cancel", "activate"}) {
    EXPECT_EQ(segment.cli({command, kNobody}).exit_code, 4) << command;
  }
  EXPECT_EQ(segment.cli({"reprioritize", kNobody, "1"}).exit_code, 4);
  EXPECT_EQ(segment.cli({"wait", kNobody, "--timeout", "1s"}).exit_code, 4);
  EXPECT_EQ(segment.cli({"dead", "retry", kNobody}).exit_code, 4);
  EXPECT_EQ(segment.cli({"dead", "drop", kNobody}).exit_code, 4);
  const Finished json = segment.cli({"get", kNobody, "--json"});
  EXPECT_EQ(member(json.err, "error.code"), "not_found") << json.err;
  EXPECT_NE(member(json.err, "error.message"), "");
  EXPECT_EQ(json.out, "");
}

TEST(CliJobs, ids_are_taken_in_upper_case_too) {
  const LiveSegment segment;
  const auto upper = [](std::string id) {
    for (char& c : id) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return id;
  };
  const std::string id = segment.enqueue({"-t", "a", "--pending"});
  EXPECT_EQ(member(segment.cli({"get", upper(id), "--json"}).out, "id"), id);
  EXPECT_EQ(segment.cli({"activate", upper(id)}).exit_code, 0);
  EXPECT_EQ(segment.cli({"reprioritize", upper(id), "1"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"cancel", upper(id)}).exit_code, 0);
  EXPECT_EQ(segment.cli({"wait", upper(id), "--timeout", "30s", "--json"}).exit_code, 5);
  EXPECT_EQ(segment.cli({"drop", upper(id)}).exit_code, 0);
  EXPECT_EQ(segment.cli({"get", id}).exit_code, 4);
}

TEST(CliJobs, lists_available_jobs_in_the_order_of_their_fetching) {
  const LiveSegment segment;
  const std::string third = segment.enqueue({"-t", "a", "--priority", "3"});
  const std::string first = segment.enqueue({"-t", "a", "--priority", "0"});
  const std::string second = segment.enqueue({"-t", "b", "--priority", "0"});
  const auto rows = lines_of(segment.cli({"list"}).out);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].rfind(first + "\tavailable\t0\tdefault\ta\t", 0), 0U) << rows[0];
  EXPECT_EQ(rows[1].rfind(second, 0), 0U);
  EXPECT_EQ(rows[2].rfind(third, 0), 0U);
  EXPECT_EQ(lines_of(segment.cli({"list", "--type", "b"}).out).size(), 1U);
  EXPECT_EQ(lines_of(segment.cli({"list", "--limit", "2"}).out).size(), 2U);
  EXPECT_EQ(segment.cli({"list", "--state", "completed"}).out, "");
  EXPECT_EQ(segment.cli({"list", "--queue", "elsewhere"}).out, "");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "--limit", "-1"}, {"dead", "list", "--limit", "-1"}}) {
    const Finished negative = segment.cli(words);
    EXPECT_EQ(negative.exit_code, 2);
    EXPECT_NE(negative.err.find("--limit: -1 must not be negative"), std::string::npos)
        << negative.err;
  }
  const Finished wrong = segment.cli({"list", "--state", "asleep"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("retryable"), std::string::npos) << wrong.err;
}

TEST(CliJobs, a_page_of_a_sorted_list_says_where_it_lies) {
  const LiveSegment segment;
  const std::string low = segment.enqueue({"-t", "a", "--priority", "9"});
  const std::string high = segment.enqueue({"-t", "a", "--priority", "0"});
  const std::string middle = segment.enqueue({"-t", "a", "--priority", "5"});
  const Finished newest = segment.cli({"list", "--sort", "created", "--limit", "1"});
  EXPECT_EQ(newest.exit_code, 0) << newest.err;
  EXPECT_EQ(newest.out.rfind(middle, 0), 0U) << newest.out;
  EXPECT_NE(newest.err.find("1 of 3 jobs, behind 0"), std::string::npos) << newest.err;
  const auto rows = lines_of(segment.cli({"list", "--sort", "priority", "--offset", "1"}).out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rfind(middle, 0), 0U) << rows[0];
  EXPECT_EQ(rows[1].rfind(high, 0), 0U) << rows[1];
  const auto rising = lines_of(segment.cli({"list", "--sort", "priority", "--rising"}).out);
  ASSERT_EQ(rising.size(), 3U);
  EXPECT_EQ(rising[2].rfind(low, 0), 0U) << rising[2];
  EXPECT_EQ(segment.cli({"list", "--sort", "colour"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"list", "--offset", "1"}).exit_code, 2) << "of no sorted list";
}

TEST(CliJobs, a_terminal_gets_a_table_with_a_heading) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  const Finished done = run(
      {"script", "-qec",
       "NO_COLOR=1 " + program("ojs-shm") + " list --name test --dir " + segment.folder().path(),
       "/dev/null"});
  const auto rows = lines_of(done.out);
  ASSERT_EQ(rows.size(), 2U) << done.out;
  EXPECT_EQ(rows[0].rfind("ID ", 0), 0U) << rows[0];
  EXPECT_EQ(rows[0].find('\t'), std::string::npos);
  EXPECT_EQ(rows[1].rfind(id, 0), 0U) << rows[1];
}

TEST(CliJobs, cancels_and_says_the_state_when_it_is_too_late) {
  const LiveSegment segment;
  const std::string one = segment.enqueue({"-t", "a"});
  const std::string two = segment.enqueue({"-t", "a", "--delay", "1h"});
  EXPECT_EQ(segment.cli({"cancel", one, two}).exit_code, 0);
  EXPECT_EQ(segment.job(one, "state"), "cancelled");
  EXPECT_EQ(segment.job(two, "previous_state"), "scheduled");
  const Finished again = segment.cli({"cancel", one, kNobody});
  EXPECT_EQ(again.exit_code, 5) << "the first failure decides";
  EXPECT_NE(again.err.find("cancelled"), std::string::npos) << again.err;
  EXPECT_EQ(lines_of(again.err).size(), 2U);
}

TEST(CliJobs, reprioritizes_by_number_and_name) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.cli({"reprioritize", id, "critical"}).out, "2\t0\n");
  EXPECT_EQ(segment.job(id, "priority"), "0");
  const Finished json = segment.cli({"reprioritize", id, "200", "--json"});
  EXPECT_EQ(member(json.out, "previous_priority"), "0");
  EXPECT_EQ(member(json.out, "priority"), "200");
  const Finished large = segment.cli({"reprioritize", id, "256"});
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_NE(large.err.find("255"), std::string::npos) << large.err;
  segment.cli({"work", "--until-empty", "--", "true"});
  const Finished late = segment.cli({"reprioritize", id, "1"});
  EXPECT_EQ(late.exit_code, 5);
  EXPECT_NE(late.err.find("completed"), std::string::npos) << late.err;
}

TEST(CliJobs, QO_09_priorities_do_not_change_in_the_qo_convention) {
  const LiveSegment segment({"--convention", "qo"});
  const std::string id = segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.cli({"reprioritize", id, "1"}).exit_code, 5);
  EXPECT_EQ(segment.job(id, "priority"), "128");
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.immutable_priorities"), "true");
}

TEST(CliJobs, QO_09_whether_priorities_change_is_a_setting_of_every_convention) {
  for (const char* convention : {"ojs", "ojs-core"}) {
    const LiveSegment keeps({"--convention", convention, "--immutable-priorities", "true"});
    const Finished refused = keeps.cli({"reprioritize", keeps.enqueue({"-t", "a"}), "1"});
    EXPECT_EQ(refused.exit_code, 5) << convention;
    EXPECT_NE(refused.err.find("--immutable-priorities false"), std::string::npos) << refused.err;
    const LiveSegment changes({"--convention", convention});
    EXPECT_EQ(changes.cli({"reprioritize", changes.enqueue({"-t", "a"}), "1"}).exit_code, 0);
  }
  LiveSegment setup;  // for the folder
  const std::string file = setup.folder() / "broker.toml";
  std::ofstream(file) << "convention = \"qo\"\nimmutable_priorities = false\n";
  const LiveSegment qo({"--config", file});
  EXPECT_EQ(qo.cli({"reprioritize", qo.enqueue({"-t", "a"}), "1"}).exit_code, 0);
}

TEST(CliJobs, wait_answers_by_the_state) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a", "-i", "[5]"});
  Process waiting = segment.start_cli({"wait", id});
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "cat"}).exit_code, 0);
  const Finished completed = waiting.wait();
  EXPECT_EQ(completed.exit_code, 0) << completed.err;
  EXPECT_EQ(completed.out, "[5]\n");
  const std::string cancelled = segment.enqueue({"-t", "a"});
  segment.cli({"cancel", cancelled});
  EXPECT_EQ(segment.cli({"wait", cancelled}).exit_code, 5);
  const std::string never = segment.enqueue({"-t", "a", "--delay", "1h"});
  EXPECT_EQ(segment.cli({"wait", never, "--timeout", "30ms"}).exit_code, 1);
  EXPECT_EQ(member(segment.cli({"wait", id, "--json"}).out, "state"), "completed");
}

TEST(CliJobs, dead_letters_are_listed_retried_and_dropped) {
  const LiveSegment segment;
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(
        segment.enqueue({"-t", "a", "--retry", "max_attempts=1,on_exhaustion=dead_letter"}));
  }
  const std::string plain = segment.enqueue({"-t", "a", "--retry", "max_attempts=1"});
  segment.cli({"work", "--until-empty", "--", "false"});
  EXPECT_EQ(segment.job(plain, "state"), "discarded");
  EXPECT_EQ(lines_of(segment.cli({"dead", "list"}).out).size(), 3U);
  EXPECT_EQ(segment.cli({"dead", "retry", plain}).exit_code == 0, false) << "it is no dead letter";
  ASSERT_EQ(segment.cli({"dead", "retry", ids[0]}).exit_code, 0);
  EXPECT_EQ(segment.job(ids[0], "state"), "available");
  EXPECT_EQ(segment.job(ids[0], "attempt"), "0");
  ASSERT_EQ(segment.cli({"dead", "drop", ids[1]}).exit_code, 0);
  EXPECT_EQ(segment.cli({"get", ids[1]}).exit_code, 4);
  EXPECT_EQ(segment.cli({"dead", "drop"}).exit_code, 2);
  ASSERT_EQ(segment.cli({"dead", "retry", "--all"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"dead", "list"}).out, "");
}

TEST(CliJobs, wait_gives_up_when_the_segment_is_removed) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  Process waiting = segment.start_cli({"wait", id});
  const Observer observer = Observer::attach(segment.where()).value();
  ASSERT_TRUE(eventually([&] {  // it has a handle, so it will not look for the file any more
    const SegmentInfo info = observer.segment_info();
    return std::ranges::any_of(info.processes, [&](const ProcessInfo& each) {
      return each.pid == static_cast<std::uint32_t>(waiting.pid()) && each.handles != 0;
    });
  }));
  ASSERT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  const Finished done = waiting.wait();
  EXPECT_FALSE(done.timed_out);
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_NE(done.err.find(segment.file() + " was removed"), std::string::npos) << done.err;
}

TEST(CliJobs, drain_pauses_and_waits_for_what_is_active) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.cli({"drain", "--empty", "--timeout", "20ms"}).exit_code, 1);
  EXPECT_EQ(segment.cli({"drain"}).exit_code, 0) << "nothing is active";
  EXPECT_EQ(member(segment.cli({"queue", "get", "default", "--json"}).out, "paused"), "true");
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).out, "");
  EXPECT_EQ(segment.cli({"queue", "resume", "default"}).exit_code, 0);
  Process worker = segment.start_cli({"work", "--", "true"});
  EXPECT_EQ(segment.cli({"drain", "default", "--empty"}).exit_code, 0);
  EXPECT_EQ(lines_of(segment.cli({"list", "--state", "completed"}).out).size(), 2U);
  EXPECT_EQ(segment.cli({"drain", "elsewhere"}).exit_code, 4);
}

}  // namespace
}  // namespace ojs_shm::test
