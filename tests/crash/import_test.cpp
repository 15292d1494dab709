// SPDX-License-Identifier: Apache-2.0
// Method: a child imports one line and is killed after each of its shared writes in turn. Each time
// the parent imports the same line again, at once and without a repair before it: the job, or the
// workflow, is there then, once and whole. No threads, no random numbers.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ojs_shm/transfer.hpp>

#include "tests/catalogue/operations.hpp"
#include "tests/crash/scene.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

constexpr const char* kHead = R"({"ojs_shm_export":1,"convention":"ojs"})";
constexpr const char* kJob =
    R"({"job":{"id":"01961234-5678-7abc-8def-0123456789ab","type":"crash.test","state":"completed","priority":1,)"
    R"("attempt":2,"args":[1],"completed_at":"2026-01-02T00:00:00Z","result":{"kept":true}}})";
/// One of its three jobs has ended, the second may run, the third waits for it.
constexpr const char* kWorkflow =
    R"({"workflow":{"id":"01961234-5678-7abc-8def-0123456789aa","created_at":"2026-01-01T00:00:00Z",)"
    R"("tree":{"k":1,"steps":[{"type":"crash.test","queue":"default"},{},{"queue":"other"}]},)"
    R"("sets":[[0],[1],[2]],"result":2,"members":[)"
    R"({"job":{"id":"01961234-5678-7abc-8def-0123456789ab","type":"crash.test","state":"completed","priority":1,)"
    R"("args":[1],"completed_at":"2026-01-02T00:00:00Z","result":{"kept":true}}},)"
    R"({"waits":0,"job":{"id":"01961234-5678-7abc-8def-0123456789ac","type":"crash.test","priority":1}},)"
    R"({"waits":1,"waiting":true,"job":{"id":"01961234-5678-7abc-8def-0123456789ad","type":"crash.test",)"
    R"("queue":"other","priority":1}}]}})";

std::uint32_t kill_at = 0, writes = 0;

void on_access(shm::Access access, shm::Point, const void*) {
  if (access == shm::Access::kWritten && ++writes == kill_at) ::kill(::getpid(), SIGKILL);
}

/// True when the child was killed before it was done.
bool killed_import(const SegmentName& where, std::uint32_t at, const char* line) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto* segment = new auto(Segment::attach(where));
    // never destroyed: a killed process closes nothing
    auto* import = new auto(Import::attach(segment->value()));
    if (!(*import)->take(kHead)) ::_exit(3);
    kill_at = at;
    shm::thread_hook = on_access;
    ::_exit((*import)->take(line) ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

TEST(CrashImport, run_again_after_any_kill_it_leaves_the_job_once_and_whole) {
  const ScratchDirectory folder;
  const SegmentName where{"import", folder.path()};
  std::uint32_t kills = 0, there = 0;
  for (bool killed = true; killed; ++kills) {
    SCOPED_TRACE("killed after write " + std::to_string(kills + 1));
    {
      Quiet quiet(where);
      killed = killed_import(where, kills + 1, kJob);
      Import again = Import::attach(quiet.segment).value();
      ASSERT_TRUE(again.take(kHead).ok());
      const Status taken = again.take(kJob);
      ASSERT_TRUE(taken.ok()) << taken.error().message;
      ASSERT_EQ(again.report().jobs + again.report().existing, 1U);
      there += again.report().existing != 0 ? 1 : 0;
      const Observer observer = Observer::attach(quiet.segment).value();
      const auto jobs = observer.list({});
      ASSERT_EQ(jobs.size(), 1U);
      EXPECT_EQ(jobs[0].state, State::kCompleted);
      EXPECT_EQ(jobs[0].attempt, 2);
      EXPECT_EQ(jobs[0].result, R"({"kept":true})");
      quiet.segment.attachment()->repair_the_dead();
      ASSERT_EQ(observer.list({}).size(), 1U) << "a repair took it away again";
      EXPECT_EQ(findings(observer), "");
    }
    ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  }
  EXPECT_GT(kills, 20U);
  EXPECT_GT(there, 0U) << "some kills come after the job is whole";
  EXPECT_LT(there, kills) << "and some before";
}

/// What the next job gets from those before it; its result is 7.
std::string run_one(Worker& worker) {
  Job job;
  if (!worker.try_fetch(job)) return "no job";
  const std::string parents = job.parent_results();
  EXPECT_TRUE(worker.ack(job, "7").ok());
  return parents;
}

TEST(CrashImport, run_again_after_any_kill_it_leaves_the_workflow_once_and_whole) {
  const ScratchDirectory folder;
  const SegmentName where{"import", folder.path()};
  std::uint32_t kills = 0, there = 0;
  for (bool killed = true; killed; ++kills) {
    SCOPED_TRACE("killed after write " + std::to_string(kills + 1));
    {
      Quiet quiet(where);
      killed = killed_import(where, kills + 1, kWorkflow);
      Import again = Import::attach(quiet.segment).value();
      ASSERT_TRUE(again.take(kHead).ok());
      const Status taken = again.take(kWorkflow);
      ASSERT_TRUE(taken.ok()) << taken.error().message;
      there += again.report().existing != 0 ? 1 : 0;
      ASSERT_EQ(again.report().jobs + again.report().existing, 3U);
      quiet.segment.attachment()->repair_the_dead();
      const Observer observer = Observer::attach(quiet.segment).value();
      ASSERT_EQ(observer.list({}).size(), 2U) << "one waits, and is in no list";
      Worker worker = Worker::attach(quiet.segment, {.queues = {"default", "other"}}).value();
      EXPECT_EQ(run_one(worker), R"([{"kept":true}])");
      EXPECT_EQ(run_one(worker), R"([{"kept":true},7])");
      EXPECT_EQ(run_one(worker), "no job");
      const auto workflows = observer.workflows();
      ASSERT_EQ(workflows.size(), 1U);
      EXPECT_EQ(workflows[0].state, WorkflowState::kCompleted);
      EXPECT_EQ(workflows[0].completed, 3U);
      EXPECT_EQ(findings(observer), "");
    }
    ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  }
  EXPECT_GT(kills, 60U);
  EXPECT_GT(there, 0U) << "some kills come after the workflow is whole";
  EXPECT_LT(there, kills) << "and some before";
}

}  // namespace
}  // namespace ojs_shm::test
