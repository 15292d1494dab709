// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm {
namespace {

using json::ObjectWriter;

std::string_view parts_name(WorkflowKind kind) {
  return kind == WorkflowKind::kChain || kind == WorkflowKind::kGraph ? "steps" : "jobs";
}

void write_time(ObjectWriter& out, std::string_view name, std::uint64_t ms) {
  if (ms != 0) out.text(name, print_timestamp(ms));
}

void write_texts(ObjectWriter& out, std::string_view name, const std::vector<std::string>& texts) {
  std::string& array = out.open(name);
  array += '[';
  for (const std::string& text : texts) {
    if (&text != texts.data()) array += ',';
    json::append_quoted(array, text);
  }
  array += ']';
}

void write_error(ObjectWriter& out, const WorkflowStep& step) {
  out.text("job_id", step.job_id);
  if (step.error) {
    out.text("code", step.error->code);
    out.text("message", step.error->message);
    out.number("attempt", std::int64_t{step.error->attempt});
  } else {
    out.text("code", "discarded");
    out.text("message", step.job_id.empty()
                            ? "the job is not kept any more"
                            : "the job ended without success and was retried since");
    out.number("attempt", std::int64_t{0});
  }
  if (!step.callback.empty()) out.text("callback", step.callback);
}

void write_step(ObjectWriter& out, const WorkflowStep& step, std::size_t index,
                const std::string& before);

/// An array of the steps that are not callbacks.
std::string steps_text(const WorkflowStep& whole) {
  std::string steps = "[", before;
  std::size_t index = 0;
  for (const WorkflowStep& step : whole.steps) {
    if (!step.callback.empty()) continue;
    if (index != 0) steps += ',';
    ObjectWriter one(steps);
    write_step(one, step, index, before);
    one.close();
    if (whole.kind == WorkflowKind::kChain) before = workflow_part_id(step, index);
    ++index;
  }
  return steps + ']';
}

void write_steps(ObjectWriter& out, const WorkflowStep& whole) {
  out.value(parts_name(whole.kind), steps_text(whole));
  if (std::ranges::all_of(whole.steps, &std::string::empty, &WorkflowStep::callback)) return;
  ObjectWriter all(out.open("callbacks"));
  for (const WorkflowStep& step : whole.steps) {
    if (step.callback.empty()) continue;
    ObjectWriter one(all.open(step.callback));
    write_step(one, step, 0, "");
    one.close();
  }
  all.close();
}

/// `before`: the id of the step of a chain that it comes after.
void write_step(ObjectWriter& out, const WorkflowStep& step, std::size_t index,
                const std::string& before) {
  if (step.callback.empty()) out.number("index", static_cast<std::int64_t>(index));
  out.text("id", workflow_part_id(step, index));
  if (!step.name.empty()) out.text("name", step.name);
  const bool job = step.kind == WorkflowKind::kJob;
  out.text("type", job ? std::string_view(step.type) : workflow_kind_name(step.kind));
  out.text("state", step_state_name(step.state));
  if (!job) return write_steps(out, step);
  out.text("queue", step.queue);
  if (step.job_id.empty())
    out.value("job_id", "null");
  else
    out.text("job_id", step.job_id);
  write_texts(out, "depends_on", before.empty() ? step.depends_on : std::vector{before});
  if (!step.result.empty() && json::check(step.result)) out.value("result", step.result);
  write_time(out, "started_at", step.started_at_ms);
  write_time(out, "completed_at", step.completed_at_ms);
  if (!step.error) return;
  ObjectWriter error(out.open("error"));
  write_error(error, step);
  error.close();
}

void collect_failed(const WorkflowStep& step, std::vector<const WorkflowStep*>& failed) {
  if (step.kind == WorkflowKind::kJob && step.state == StepState::kFailed) failed.push_back(&step);
  for (const WorkflowStep& part : step.steps) collect_failed(part, failed);
}

void write_failures(ObjectWriter& out, const WorkflowInfo& workflow) {
  std::vector<const WorkflowStep*> failed;
  collect_failed(workflow.root, failed);
  if (failed.empty()) return;
  if (workflow.root.kind == WorkflowKind::kChain) {
    const auto& steps = workflow.root.steps;
    const auto first = std::find_if(steps.begin(), steps.end(), [](const WorkflowStep& step) {
      return step.state == StepState::kFailed;
    });
    if (first != steps.end()) out.number("failed_step_index", std::int64_t{first - steps.begin()});
  }
  std::vector<std::string> ids;
  for (const WorkflowStep* step : failed)
    if (!step->job_id.empty()) ids.push_back(step->job_id);
  write_texts(out, "failed_job_ids", ids);
  std::string& errors = out.open("errors");
  errors += '[';
  for (const WorkflowStep* step : failed) {
    if (step != failed.front()) errors += ',';
    ObjectWriter one(errors);
    write_error(one, *step);
    one.close();
  }
  errors += ']';
}

}  // namespace

std::string workflow_part_id(const WorkflowStep& part, std::size_t index) {
  if (!part.name.empty()) return part.name;
  return part.callback.empty() ? "step-" + std::to_string(index) : part.callback;
}

std::string print_workflow(const WorkflowInfo& workflow) {
  std::string out;
  ObjectWriter writer(out);
  const WorkflowStep& root = workflow.root;
  writer.text("id", workflow.id);
  writer.text("name", root.name);
  // One of steps that name what they depend on has no type. Source: ojs-workflows 3.1.
  if (root.kind != WorkflowKind::kGraph) writer.text("type", workflow_kind_name(root.kind));
  writer.text("state", workflow_state_name(workflow.state));
  if (!workflow.tenant.empty()) writer.text("tenant_id", workflow.tenant);
  std::int64_t total = 0, completed = 0;
  for (const WorkflowStep& step : root.steps) {
    if (!step.callback.empty()) continue;
    ++total;
    completed += step.state == StepState::kCompleted ? 1 : 0;
  }
  writer.number("steps_total", total);
  writer.number("steps_completed", completed);
  if (parts_name(root.kind) == "jobs") {  // by either name
    writer.number("jobs_total", total);
    writer.number("jobs_completed", completed);
  }
  write_steps(writer, root);
  if (parts_name(root.kind) != "steps") writer.value("steps", steps_text(root));  // by either name
  write_failures(writer, workflow);
  ObjectWriter metadata(writer.open("metadata"));
  write_time(metadata, "created_at", workflow.created_at_ms);
  write_time(metadata, "started_at", workflow.started_at_ms);
  const bool cancelled = workflow.state == WorkflowState::kCancelled;
  if (cancelled) write_time(metadata, "cancelled_at", workflow.ended_at_ms);
  write_time(metadata, "completed_at", workflow.ended_at_ms);
  metadata.number("job_count", std::int64_t{workflow.jobs});
  metadata.number("completed_count", std::int64_t{workflow.completed});
  metadata.number("failed_count", std::int64_t{workflow.failed});
  write_failures(metadata, workflow);  // ojs-workflows 9.2
  metadata.close();
  write_time(writer, "created_at", workflow.created_at_ms);
  write_time(writer, "started_at", workflow.started_at_ms);
  write_time(writer, cancelled ? "cancelled_at" : "completed_at", workflow.ended_at_ms);
  writer.close();
  return out;
}

}  // namespace ojs_shm
