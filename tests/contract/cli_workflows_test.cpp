// SPDX-License-Identifier: Apache-2.0
// Workflows on the command line, and what their commands get.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

constexpr const char* kChain =
    R"({"type":"chain","name":"order","steps":[{"type":"a","args":[]},{"type":"b","args":[]}]})";

std::string run_workflow(const LiveSegment& segment, const std::string& text) {
  const Finished made = segment.cli({"workflow", "run", "-"}, text);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  return made.out.substr(0, 36);
}

TEST(CliWorkflows, one_is_run_shown_listed_and_worked_off) {
  const LiveSegment segment;
  const std::string id = run_workflow(segment, kChain);
  EXPECT_NE(segment.cli({"workflow", "get", id}).out.find("`- b  waiting"), std::string::npos);
  EXPECT_NE(segment.cli({"workflow", "list", "--state", "running"}).out.find(id),
            std::string::npos);
  const Finished worked =
      segment.cli({"work", "--until-empty", "--", "sh", "-c",
                   "if test $OJS_TYPE = a; then echo '{\"n\":1}'; else cat $OJS_PARENT_RESULTS; "
                   "fi; test -n \"$OJS_WORKFLOW_ID\""});
  EXPECT_EQ(worked.exit_code, 0) << worked.err;
  const std::string got = segment.cli({"workflow", "get", id, "--json"}).out;
  EXPECT_EQ(member(got, "state"), "completed");
  EXPECT_NE(got.find(R"("result":[{"n":1}])"), std::string::npos)
      << "the second job printed what it got: " << got;
  const Finished followed = segment.cli({"workflow", "get", id, "--follow"});
  EXPECT_EQ(followed.exit_code, 0);
  EXPECT_NE(followed.out.find("2 of 2 jobs completed"), std::string::npos);
}

TEST(CliWorkflows, priorities_may_be_names_in_each_part) {
  const LiveSegment segment;
  const std::string high =
      member(segment.cli({"get", segment.enqueue({"-t", "a", "--priority", "high"}), "--json"}).out,
             "priority");
  const std::string id = run_workflow(segment, R"({"type":"group","priority":"low","jobs":[
      {"type":"a","args":[{"priority":"high"}],"priority":"high"},
      {"type":"b","args":[],"meta":{"priority":"mine"},"options":{"priority":"high"}},
      {"type":"c","args":[]}]})");
  const std::vector<std::string> jobs = lines_of(segment.cli({"list", "--json"}).out);
  int seen = 0;
  for (const std::string& job : jobs) {
    if (member(job, "workflow_id") != id) continue;
    ++seen;
    EXPECT_EQ(member(job, "priority") == high, member(job, "type") != "c") << job;
    if (member(job, "type") == "a") {
      EXPECT_EQ(member(job, "args"), R"([{"priority":"high"}])");
    }
    if (member(job, "type") == "b") {
      EXPECT_EQ(member(job, "meta.priority"), "mine");
    }
  }
  EXPECT_EQ(seen, 3);
  const Finished wrong = segment.cli({"workflow", "run", "-"}, R"({"type":"chain","steps":[
      {"type":"a","args":[],"priority":"hihg"}]})");
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("hihg"), std::string::npos) << wrong.err;
}

/// The descriptor itself is not handed on to them.
TEST(CliWorkflows, those_whom_a_command_starts_can_read_the_results_before_it) {
  const LiveSegment segment;
  const std::string id = run_workflow(segment, kChain);
  const Finished worked = segment.cli(
      {"work", "--until-empty", "--", "python3", "-c",
       "import os, subprocess\n"
       "path = os.environ.get('OJS_PARENT_RESULTS', '/dev/null')\n"
       "print('7' if os.environ['OJS_TYPE'] == 'a' else\n"
       "      subprocess.run(['cat', path], capture_output=True, check=True, text=True).stdout)"});
  EXPECT_EQ(worked.exit_code, 0) << worked.err;
  const std::string got = segment.cli({"workflow", "get", id, "--json"}).out;
  EXPECT_EQ(member(got, "state"), "completed");
  EXPECT_NE(got.find(R"("result":[7])"), std::string::npos) << got;
}

TEST(CliWorkflows, events_name_it_and_its_steps) {
  const LiveSegment segment({"--events"});
  const std::string id = run_workflow(segment, kChain);
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  const Finished told = segment.cli({"events"});
  for (const char* type : {"workflow.started", "workflow.step_completed", "workflow.completed"})
    EXPECT_NE(told.out.find(type), std::string::npos) << told.out;
  EXPECT_NE(told.out.find(id + ": "), std::string::npos) << "with the step: " << told.out;
  const std::string printed = segment.cli({"events", "--json"}).out;
  EXPECT_NE(printed.find(R"("step_type":"b")"), std::string::npos) << printed;
}

TEST(CliWorkflows, misspelt_members_are_told_or_refused) {
  const LiveSegment segment;
  const std::string text =
      R"({"prioritty":1,"steps":[{"id":"a","type":"a","args":[]},)"
      R"({"id":"b","type":"b","args":[],"dependson":["a"],"options":{"priorty":1}}]})";
  const Finished told = segment.cli({"workflow", "run", "-"}, text);
  EXPECT_EQ(told.exit_code, 0) << told.err;
  for (const char* place : {"`$.prioritty`, did you mean `priority`?",
                            "`$.steps[1].dependson`, did you mean `depends_on`?",
                            "`$.steps[1].options.priorty`, did you mean `priority`?"})
    EXPECT_NE(told.err.find(place), std::string::npos) << place << " in " << told.err;
  const Finished refused = segment.cli({"workflow", "run", "--strict", "-"}, text);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("$.prioritty"), std::string::npos) << refused.err;
  EXPECT_EQ(lines_of(segment.cli({"workflow", "list"}).out).size(), 1U);
  const Finished sound = segment.cli({"workflow", "run", "--strict", "-"}, kChain);
  EXPECT_EQ(sound.exit_code, 0) << sound.err;
  EXPECT_EQ(sound.err, "");
}

TEST(CliWorkflows, a_tenants_jobs_say_so) {
  const LiveSegment segment;
  run_workflow(segment, kChain);
  const std::string id = run_workflow(
      segment, R"({"type":"group","meta":{"tenant_id":"acme"},"jobs":[{"type":"a","args":[]}]})");
  const auto listed = lines_of(segment.cli({"workflow", "list", "--tenant", "acme"}).out);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].rfind(id, 0), 0U) << listed[0];
  EXPECT_EQ(member(segment.cli({"workflow", "get", id, "--json"}).out, "tenant_id"), "acme");
  EXPECT_EQ(lines_of(segment.cli({"list", "--tenant", "acme"}).out).size(), 1U);
}

TEST(CliWorkflows, one_is_cancelled_once) {
  const LiveSegment segment;
  const std::string id = run_workflow(segment, kChain);
  EXPECT_EQ(segment.cli({"workflow", "cancel", id}).exit_code, 0);
  EXPECT_EQ(segment.cli({"workflow", "cancel", id}).exit_code, 5);
  EXPECT_EQ(segment.cli({"workflow", "get", id, "--follow"}).exit_code, 1);
  EXPECT_EQ(segment.cli({"workflow", "get", "01961234-5678-7abc-8def-0123456789ab"}).exit_code, 4);
  for (const char* command : {"get", "cancel"}) {
    const Finished no_id = segment.cli({"workflow", command, "nope"});
    EXPECT_EQ(no_id.exit_code, 4);
    EXPECT_EQ(no_id.err.rfind("'nope' is not a workflow id: one is a UUIDv7", 0), 0U) << no_id.err;
  }
}

TEST(CliWorkflows, an_export_takes_a_running_one_along) {
  const LiveSegment from, to;
  const std::string id = run_workflow(from, kChain);
  ASSERT_EQ(from.cli({"work", "--count", "1", "--", "echo", "7"}).exit_code, 0);
  const Finished out = from.cli({"export"});
  ASSERT_EQ(out.exit_code, 0) << out.err;
  ASSERT_EQ(to.cli({"import", "-"}, out.out).exit_code, 0);
  ASSERT_EQ(
      to.cli({"work", "--count", "1", "--", "sh", "-c", "cat \"$OJS_PARENT_RESULTS\""}).exit_code,
      0);
  const std::string got = to.cli({"workflow", "get", id, "--json"}).out;
  EXPECT_EQ(member(got, "state"), "completed") << got;
  EXPECT_NE(got.find("\"result\":[7]"), std::string::npos) << got;
  EXPECT_EQ(to.cli({"audit"}).exit_code, 0);
}

TEST(CliWorkflows, what_cannot_run_is_refused_with_its_place) {
  const LiveSegment segment;
  const Finished refused = segment.cli({"workflow", "run", "-"},
                                       R"({"type":"chain","steps":[{"type":"group","jobs":[]}]})");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("$.steps[0].jobs"), std::string::npos) << refused.err;
  EXPECT_EQ(segment.cli({"workflow", "list"}).out, "");
}

TEST(CliWorkflows, a_job_brings_what_follows_it) {
  const LiveSegment segment;
  run_workflow(segment, R"({"type":"first","args":[],"priority":1,
                            "workflow":{"chain":[{"type":"second","args":[]}]}})");
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_NE(segment.cli({"list", "--state", "completed"}).out.find("second"), std::string::npos);
}

}  // namespace
}  // namespace ojs_shm::test
