// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/replies/progress_reply.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm::gateway {
namespace {

/// A part as its clients see it, and what the whole takes from it.
struct Part {
  std::string text;
  double progress = 0;
  std::uint64_t reported_at_ms = 0;
};

Part part_of(Desk& desk, const WorkflowStep& step, std::size_t index);

/// The parts but for callbacks, which nothing waits for: their texts, the latest report, and how
/// far they are together. A batch counts those that completed; of any other, parts count as far as
/// they are.
Part all_parts(Desk& desk, const WorkflowStep& whole) {
  Part all;
  std::size_t count = 0;
  for (const WorkflowStep& step : whole.steps) {
    if (!step.callback.empty()) continue;
    const Part part = part_of(desk, step, count);
    all.text += (count++ == 0 ? "" : ",") + part.text;
    if (whole.kind == WorkflowKind::kBatch)
      all.progress += step.state == StepState::kCompleted ? 1 : 0;
    else
      all.progress += part.progress;
    all.reported_at_ms = std::max(all.reported_at_ms, part.reported_at_ms);
  }
  all.text = "[" + all.text + "]";
  if (count != 0) all.progress /= static_cast<double>(count);
  return all;
}

Part job_part(Desk& desk, const WorkflowStep& step, std::size_t index) {
  const auto job = desk.observer.get(step.job_id);
  double progress = job ? progress_of(*job) : -1;
  if (step.state == StepState::kCompleted) progress = 1;
  std::string text = object([&](json::ObjectWriter& writer) {
    writer.text("id", workflow_part_id(step, index));
    if (step.job_id.empty())
      writer.value("job_id", "null");
    else
      writer.text("job_id", step.job_id);
    writer.text("type", step.type);
    writer.text("state", step_state_name(step.state));
    if (progress >= 0)
      writer.number("progress", progress);
    else
      writer.value("progress", "null");
    if (job && !job->progress_message.empty()) writer.text("message", job->progress_message);
    if (job && json::check(job->progress_data)) writer.value("data", job->progress_data);
  });
  return {std::move(text), std::max(progress, 0.0), job ? job->progress_at_ms : 0};
}

Part part_of(Desk& desk, const WorkflowStep& step, std::size_t index) {
  if (step.kind == WorkflowKind::kJob) return job_part(desk, step, index);
  Part part = all_parts(desk, step);
  part.text = object([&](json::ObjectWriter& writer) {
    writer.text("id", workflow_part_id(step, index));
    writer.text("type", workflow_kind_name(step.kind));
    writer.text("state", step_state_name(step.state));
    writer.number("progress", part.progress);
    writer.value("steps", part.text);
  });
  return part;
}

}  // namespace

Reply workflow_progress_reply(Desk& desk, const WorkflowInfo& workflow) {
  const WorkflowKind kind = workflow.root.kind;
  const Part all = all_parts(desk, workflow.root);
  return with_progress(object([&](json::ObjectWriter& writer) {
                         writer.text("workflow_id", workflow.id);
                         if (kind != WorkflowKind::kGraph)
                           writer.text("type", workflow_kind_name(kind));
                         writer.text("state", workflow_state_name(workflow.state));
                         writer.number("progress", all.progress);
                         writer.value("steps", all.text);
                         if (all.reported_at_ms != 0)
                           writer.text("updated_at", print_timestamp(all.reported_at_ms));
                         else
                           writer.value("updated_at", "null");
                       }),
                       all.progress, all.reported_at_ms);
}

}  // namespace ojs_shm::gateway
