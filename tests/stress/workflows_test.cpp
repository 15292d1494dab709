// SPDX-License-Identifier: Apache-2.0
// Method: one process creates nested workflows, five work them off, and all of them are killed
// again and again, while the broker is stopped half of the time. What each callback saw is written
// outside of the segment, in memory that survives every death: the id of the job, which must stay
// the same however often its workers die, and whether a result was missing. Of each fifth workflow
// a job fails for good: its batch calls on_failure, the others' on_success, all on_complete. No
// threads, and nothing depends on time. OJS_SHM_STORM_WORKFLOWS=N: so many instead of 10,000.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint32_t kMostWorkflows = 10'000, kChildren = 6;
constexpr std::uint32_t kWorkflowsPerKill = 150;
/// so that slots are used again and again meanwhile
constexpr std::uint32_t kMostAtOnce = 400;

std::uint32_t wanted() {
  const char* text = std::getenv("OJS_SHM_STORM_WORKFLOWS");
  const unsigned long number = text == nullptr ? kMostWorkflows : std::stoul(text);
  return static_cast<std::uint32_t>(std::clamp<unsigned long>(number, 1000, kMostWorkflows));
}
const std::uint32_t workflows_wanted = wanted();

struct Books {
  std::atomic<std::uint64_t> callback[kMostWorkflows];  ///< the id of its job
  std::atomic<std::uint64_t> other[kMostWorkflows];     ///< the same of on_success or on_failure
  std::atomic<std::uint8_t> created[kMostWorkflows], completed[kMostWorkflows];
  std::atomic<std::uint32_t> next, called, offences, stop;
};
Books* books = nullptr;

WorkflowSpec job(std::string_view type, std::string_view args) {
  WorkflowSpec part;
  part.job.type = type;
  part.job.args = args;
  part.job.retry.max_attempts = 1000;
  return part;
}

void create(const SegmentName& where) {
  Producer producer = Producer::attach(where).value();
  while (books->stop.load() == 0) {
    const std::uint32_t n = books->next.load();
    if (n >= workflows_wanted) return;
    if (n > books->called.load() + kMostAtOnce) {
      ::sched_yield();
      continue;
    }
    books->next = n + 1;  // what a killed creator had in hand is not created again
    const std::string args = "[" + std::to_string(n) + "]";
    const std::string bad = n % 5 == 0 ? "storm.bad" : "storm.job";
    WorkflowSpec inner, batch, whole;
    inner.kind = WorkflowKind::kChain;
    inner.steps = {job("storm.job", args), job("storm.job", args)};
    batch.kind = WorkflowKind::kBatch;
    batch.steps = {job("storm.job", args), inner, job(bad, args)};
    batch.on_complete = {job("storm.callback", args)};
    batch.on_success = {job("storm.success", args)};
    batch.on_failure = {job("storm.failure", args)};
    whole.kind = WorkflowKind::kChain;
    whole.steps = {job("storm.job", args), batch, job("storm.last", args)};
    const auto id = producer.create_workflow(whole);
    if (id)
      books->created[n] = 1;
    else if (id.code() != Code::kSegmentFull)
      ++books->offences;
  }
}

/// Whether it is the first job that is seen in that place, or the same again.
bool once(std::atomic<std::uint64_t>& place, std::string_view id, bool& first) {
  std::uint64_t before = 0;
  const auto own = static_cast<std::uint64_t>(std::hash<std::string_view>{}(id)) | 1;
  first = place.compare_exchange_strong(before, own);
  return first || before == own;
}

void work(const SegmentName& where) {
  Worker worker = Worker::attach(where, {}).value();
  Job held;
  while (books->stop.load() == 0) {
    if (!worker.fetch(held, std::chrono::milliseconds(50))) continue;
    const std::string args(held.args());
    const auto n = static_cast<std::uint32_t>(std::stoul(args.substr(1)));
    const std::string one = std::to_string(n);
    if (held.type() == "storm.bad") {
      Failure failure;
      failure.code = "bad";
      failure.type = "storm";
      failure.message = "no";
      failure.retryable = false;
      (void)worker.nack(held, failure);
      continue;
    }
    if (held.type() == "storm.callback") {
      const std::string third =
          n % 5 == 0 ? R"({"error":{"code":"bad","type":"storm","message":"no"}})" : one;
      if (held.parent_results() != "[" + one + "," + one + "," + third + "]") ++books->offences;
      bool first = false;
      if (!once(books->callback[n], held.id(), first)) ++books->offences;
      if (first) ++books->called;
    }
    if (held.type() == "storm.success" || held.type() == "storm.failure") {
      bool first = false;
      const bool expected = (held.type() == "storm.failure") == (n % 5 == 0);
      if (!expected || !once(books->other[n], held.id(), first)) ++books->offences;
    }
    if (held.type() == "storm.last") books->completed[n] = 1;
    (void)worker.ack(held, one);
  }
}

pid_t start(const SegmentName& where, unsigned self) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  self == 0 ? create(where) : work(where);
  ::_exit(0);
}

void end(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST(WorkflowStorm, each_callback_comes_once_and_no_result_is_missing_under_kills) {
  Seeded random;
  void* memory =
      ::mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  books = new (memory) Books;
  LiveSegment segment({"--slots", "16384"});
  const SegmentName where = segment.where();
  pid_t children[kChildren];
  for (unsigned i = 0; i < kChildren; ++i) children[i] = start(where, i);

  const auto bound = std::chrono::steady_clock::now() + 6 * kBound;
  const auto in_time = [&] { return std::chrono::steady_clock::now() < bound; };
  const std::uint32_t most_kills = workflows_wanted / kWorkflowsPerKill;
  for (std::uint32_t kills = 0; kills < most_kills; ++kills) {
    while (books->called.load() < workflows_wanted / 10 * 9 / most_kills * kills && in_time())
      ::sched_yield();
    if (kills % 4 == 1) segment.broker().signal(SIGSTOP);
    if (kills % 4 == 3) segment.broker().signal(SIGCONT);
    const auto victim = static_cast<unsigned>(random.between(0, kChildren - 1));
    ::kill(children[victim], SIGKILL);
    end(children[victim]);
    children[victim] = start(where, victim);
  }
  segment.broker().signal(SIGCONT);

  const Observer observer = Observer::attach(where).value();
  while ((books->next.load() < workflows_wanted ||
          !observer.workflows({.state = WorkflowState::kRunning, .most = 1}).empty()) &&
         in_time())
    ::sched_yield();
  books->stop = 1;
  for (const pid_t child : children) end(child);

  EXPECT_EQ(books->next.load(), workflows_wanted);
  EXPECT_EQ(books->offences.load(), 0U);
  std::uint32_t missing = 0, half = 0;
  for (std::uint32_t n = 0; n < workflows_wanted; ++n) {
    missing += books->created[n] != 0 && (books->callback[n] == 0 || books->other[n] == 0) ? 1 : 0;
    half += (books->callback[n] != 0) != (books->completed[n] != 0) ? 1 : 0;
  }
  EXPECT_EQ(missing, 0U) << "workflows without their callback";
  EXPECT_EQ(half, 0U) << "workflows without their last job";
  for (const WorkflowInfo& workflow : observer.workflows({.state = WorkflowState::kRunning}))
    ADD_FAILURE() << "workflow " << workflow.id << " still runs";
  for (const Violation& v : observer.audit()) ADD_FAILURE() << "I" << v.invariant << " " << v.text;
  std::cout << books->called.load() << " callbacks of " << workflows_wanted << " workflows, "
            << most_kills << " kills\n";
  books->~Books();
  ::munmap(memory, sizeof(Books));
}

}  // namespace
}  // namespace ojs_shm::test
