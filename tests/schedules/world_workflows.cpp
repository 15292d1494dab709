// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: a workflow, jobs 0 and 1 at once and job 2 after both.
#include "engine/workflows/workflow_look.hpp"
#include "engine/workflows/workflows.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

namespace {

constexpr unsigned kMembers = 3;
constexpr engine::JobId kWorkflow{0x0199'0000'0000'7000, 0x8000'0000'0000'0010};

/// Client-supplied, so that the books know them before the workflow is there.
engine::JobId id_of(unsigned job) { return {kWorkflow.hi, kWorkflow.lo + 1 + job}; }

}  // namespace

void World::make_workflow(std::uint32_t self) {
  workflow_ = true;
  engine::WorkflowGraph graph;
  graph.members.resize(kMembers);
  graph.members[2].waits = 0;
  graph.sets.add(std::vector<std::uint16_t>{0, 1});
  graph.sets.add(std::vector<std::uint16_t>{2});
  graph.result = 1;
  std::vector<engine::NewJob> jobs;
  for (unsigned job = 0; job < kMembers; ++job) {
    jobs.push_back(job_named(job, 1));
    jobs.back().id = books_[job].id = id_of(job);
    books_[job].rank = 1, books_[job].put_by = self;
    books_[job].put_called = Fibers::now();
  }
  engine::NewWorkflow workflow;
  workflow.jobs = jobs;
  workflow.graph = &graph;
  workflow.kind = "chain";
  workflow.id = kWorkflow;
  engine::JobId made;
  if (actor(self).workflows().create(workflow, made) != Outcome::kOk)
    wrong_ += "a workflow was refused; ";
  else
    for (unsigned job = 0; job < 2; ++job) books_[job].put_returned = Fibers::now();
}

/// What has not begun ends; what is active may.
void World::cancel_workflow(std::uint32_t self) {
  for (unsigned job = 0; job < kMembers; ++job) {
    if (books_[job].cancel_called == 0) books_[job].cancel_called = Fibers::now();
    books_[job].end_called = true;
  }
  engine::WorkflowState found{};
  const Outcome outcome = actor(self).workflows().cancel(kWorkflow, found);
  if (outcome != Outcome::kOk && outcome != Outcome::kWrongState)
    wrong_ += "a workflow could not be cancelled; ";
}

/// Once all was worked off. A job that comes twice is known by its own books.
std::string World::workflow_text() const {
  if (!workflow_) return {};
  const std::uint32_t slot = engine::find_workflow(*store_, kWorkflow);
  const bool seen = books_[2].drained != 0 || !books_[2].takes.empty();
  if (slot == engine::kNoIndex) {  // its creator may have died before it was there
    const bool before = !dead_.empty() && books_[0].put_returned == 0 && !seen;
    return before ? "" : "the workflow is gone; ";
  }
  const engine::JobRecord& head = store_->job(slot);
  const engine::WorkflowBits& bits = engine::bits_of(head);
  std::string text;
  if (!engine::all_done(head)) text += "the workflow waits for a job that does not come; ";
  switch (engine::workflow_state(engine::Control(head.control.load()))) {
    case engine::WorkflowState::kRunning: return text + "the workflow still runs; ";
    case engine::WorkflowState::kCancelled: return text;
    case engine::WorkflowState::kCompleted:
      if (bits.has_failed(0) || bits.has_failed(1)) text += "a failure was not seen; ";
      if (!seen) text += "the job after both never came; ";
      return text;
    case engine::WorkflowState::kFailed: break;
  }
  if (seen && (bits.has_failed(0) || bits.has_failed(1))) text += "it went on after a failure; ";
  return text;
}

}  // namespace ojs_shm::test
