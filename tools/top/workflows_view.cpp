// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <ojs_shm/workflow.hpp>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {
namespace {

/// A list is for a person.
constexpr std::size_t kMostWorkflows = 500;

Style style_of_workflow(std::string_view state) {
  if (state == "failed") return {Tone::kBad, false, false, false};
  if (state == "active" || state == "running") return {Tone::kGood, false, false, false};
  return {};
}

std::string label_of(const WorkflowStep& step) {
  std::string label =
      step.kind == WorkflowKind::kJob ? step.type : std::string(workflow_kind_name(step.kind));
  if (!step.name.empty()) label = step.name + " (" + label + ")";
  return step.callback.empty() ? label : step.callback + ": " + label;
}

/// `key`: the numbers of the parts on the way to it.
void add(Grid& grid, const WorkflowStep& step, const std::string& key, const std::string& before,
         const std::string& below) {
  const std::string state(step_state_name(step.state));
  Row row{key, {}, {}};
  row.cells = {text_cell(before + label_of(step)), text_cell(state, style_of_workflow(state)),
               text_cell(step.job_id.empty() ? "-" : step.job_id),
               text_cell(step.queue.empty() ? "-" : step.queue),
               text_cell(step.error ? step.error->code + ": " + step.error->message : "-")};
  grid.rows.push_back(std::move(row));
  for (std::size_t i = 0; i < step.steps.size(); ++i) {
    const bool last = i + 1 == step.steps.size();
    add(grid, step.steps[i], key + "." + std::to_string(i), below + (last ? "`- " : "|- "),
        below + (last ? "   " : "|  "));
  }
}

}  // namespace

Grid workflows_grid(const Observer& observer, std::uint64_t now_ms) {
  Grid grid;
  grid.nothing = "no workflow";
  grid.columns = {{"ID"},         {"NAME"},       {"KIND"},         {"STATE"},
                  {"JOBS", true}, {"DONE", true}, {"FAILED", true}, {"AGE", true, kTimeWidth}};
  for (const WorkflowInfo& workflow : observer.workflows({.most = kMostWorkflows})) {
    const std::string state(workflow_state_name(workflow.state));
    Row row{workflow.id, {}, {}};
    row.cells = {
        text_cell(workflow.id),
        text_cell(workflow.name().empty() ? "-" : workflow.name()),
        text_cell(std::string(workflow_kind_name(workflow.root.kind))),
        text_cell(state, style_of_workflow(state)),
        count_cell(workflow.jobs),
        count_cell(workflow.completed),
        count_cell(workflow.failed, workflow.failed == 0 ? Style{} : style_of_workflow("failed")),
        age_cell(now_ms - std::min(now_ms, workflow.created_at_ms))};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

Grid workflow_grid(const Observer& observer, const Subject& subject) {
  Grid grid;
  grid.columns = {{"PART"}, {"STATE"}, {"JOB"}, {"QUEUE"}, {"ERROR"}};
  const Result<WorkflowInfo> workflow = observer.workflow(subject.workflow);
  if (workflow)
    add(grid, workflow->root, "0", "", "");
  else
    grid.nothing = workflow.error().message;
  return grid;
}

}  // namespace ojs_shm::top
