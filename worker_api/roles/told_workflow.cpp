// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/told_workflow.hpp"

#include "engine/tables/job_look.hpp"
#include "worker_api/json/last_error.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

using engine::EventKind;

void describe_told_workflow(const engine::EventFacts& facts, Event& event) {
  event.workflow_id = engine::to_string(facts.job);
  event.duration_ms = facts.value;
  if (facts.kind == EventKind::kWorkflowStepCompleted)
    event.steps_remaining = facts.max_attempts;
  else if (facts.kind != EventKind::kWorkflowFailed)
    event.total_steps = facts.attempt;
}

namespace {

const WorkflowTree* find_member(const WorkflowTree& tree, std::uint16_t member) {
  if (tree.kind == WorkflowKind::kJob) return tree.member == member ? &tree : nullptr;
  for (const WorkflowTree& part : tree.steps)
    if (const WorkflowTree* found = find_member(part, member)) return found;
  return nullptr;
}

/// Why a step failed. One that ended without an attempt that failed has no error of its own.
JobError error_of(const JobInfo& job) {
  if (!job.errors.empty() && job.state == State::kDiscarded && job.discard_reason == "failed")
    return job.errors.back();
  return error_without_attempt(job.state == State::kCancelled ? "cancelled" : job.discard_reason,
                               job.attempt, 0);
}

}  // namespace

bool ToldWorkflow::know(const engine::Store& store, engine::JobId id) {
  if (known_ && known_->id == id) return true;
  const std::uint32_t head = engine::find_workflow(store, id);
  if (head == engine::kNoIndex) return false;
  auto found = engine::snapshot_workflow(store, head);
  if (!found || found->id != id) return false;
  auto tree = WorkflowTree::read(found->description);
  if (!tree) return false;
  known_ = std::move(found);
  tree_ = std::move(*tree);
  return true;
}

void ToldWorkflow::add_to(Event& event, const engine::Store& store,
                          const engine::EventFacts& facts) {
  if (!know(store, facts.job)) return;
  event.workflow_name = tree_.name;
  event.workflow_type =
      tree_.kind == WorkflowKind::kGraph ? "workflow" : workflow_kind_name(tree_.kind);
  event.workflow_tenant = tree_.tenant;
  if (facts.kind == EventKind::kWorkflowFailed)
    event.total_steps = static_cast<std::uint32_t>(known_->graph.members.size());
  if (facts.kind == EventKind::kWorkflowFailed || facts.kind == EventKind::kWorkflowStepCompleted)
    add_step(event, store, facts.attempt);
}

void ToldWorkflow::add_step(Event& event, const engine::Store& store, std::uint16_t member) const {
  const WorkflowTree* step = find_member(tree_, member);
  if (step == nullptr) return;
  event.job_type = step->type;
  event.step_id = step->name;
  const std::uint32_t slot = engine::slot_of_member(store, *known_, member);
  const auto job = slot == engine::kNoIndex ? std::nullopt : engine::snapshot(store, slot);
  if (!job || job->generation != known_->graph.members[member].generation) {
    if (event.step_id.empty()) event.step_id = std::to_string(member);
    return;
  }
  if (event.step_id.empty()) event.step_id = engine::to_string(job->id);
  if (event.type == "workflow.failed") event.error = error_of(info_of(store, *job));
}

}  // namespace ojs_shm::internal
