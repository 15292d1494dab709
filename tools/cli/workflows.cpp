// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/priorities.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/colour.hpp"
#include "tools/shell/known_id.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "tools/shell/text_file.hpp"
#include "tools/shell/unknown_members.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

/// How a part stands, and below it its parts.
void draw(const WorkflowStep& step, const std::string& before, const std::string& below,
          bool in_colours, std::string& out) {
  const std::string_view kind = workflow_kind_name(step.kind);
  std::string label = step.kind == WorkflowKind::kJob ? step.type : std::string(kind);
  if (!step.name.empty()) label = step.name + " (" + label + ")";
  if (!step.callback.empty()) label = step.callback + ": " + label;
  const std::string state(step_state_name(step.state));
  out += fmt::format("{}{}  {}", before, shell::printable(label),
                     in_colours ? shell::coloured(state) : state);
  if (!step.job_id.empty()) out += "  " + step.job_id;
  if (step.error) out += "  " + shell::printable(step.error->code + ": " + step.error->message);
  out += '\n';
  for (const WorkflowStep& part : step.steps) {
    const bool last = &part == &step.steps.back();
    draw(part, below + (last ? "`- " : "|- "), below + (last ? "   " : "|  "), in_colours, out);
  }
}

std::string picture(const WorkflowInfo& workflow, bool in_colours) {
  const std::string state(workflow_state_name(workflow.state));
  std::string out =
      fmt::format("{}  {}  {} of {} jobs completed", workflow.id,
                  in_colours ? shell::coloured(state) : state, workflow.completed, workflow.jobs);
  if (workflow.failed != 0) out += fmt::format(", {} failed", workflow.failed);
  out += '\n';
  draw(workflow.root, "", "", in_colours, out);
  return out;
}

/// Draws the tree anew whenever something has changed, until the workflow has ended.
WorkflowInfo follow(const Observer& observer, const std::string& id, bool json) {
  const bool terminal = shell::stdout_is_terminal();
  const bool in_colours = shell::has_colours(1);
  std::string shown;
  for (;;) {
    WorkflowInfo workflow = must(observer.workflow(id));
    const std::string text = json ? print_workflow(workflow) + "\n" : picture(workflow, in_colours);
    if (text != shown) {
      if (terminal && !json)
        for (const char c : shown)
          if (c == '\n') std::fputs("\x1b[A\x1b[2K", stdout);
      json ? print_line(print_workflow(workflow))
           : static_cast<void>(std::fputs(text.c_str(), stdout));
      must(shell::flush_output());
      shown = text;
    }
    if (workflow.state != WorkflowState::kRunning) return workflow;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int exit_of(const WorkflowInfo& workflow) {
  return workflow.state == WorkflowState::kCompleted ? shell::kExitOk : shell::kExitFailed;
}

struct RunOptions {
  std::string file;
  bool follow = false, strict = false;
};

/// Refused when that is wanted, else told.
void judge_unknown(const WorkflowText& workflow, bool strict) {
  if (strict) must(shell::refuse_unknown(shell::Document::kWorkflow, workflow.unknown));
  std::vector<std::string> told;
  for (const std::string& place : workflow.unknown)
    told.push_back(shell::told_member(shell::Document::kWorkflow, place));
  if (!told.empty())
    shell::say("warning: these members mean nothing here: {}\n", fmt::join(told, "; "));
}

int run_workflow(const Request& request, const RunOptions& options) {
  const std::string given = must(shell::read_text_input(options.file));
  await_segment(request, kPatience);
  Producer producer = must(Producer::attach(request.where));
  const Observer observer = must(Observer::attach(producer.segment()));
  const std::string text = number_priorities(observer, given);
  const bool of_job = text.find("\"workflow\"") != std::string::npos && [&text] {
    const auto envelope = parse_envelope(text, shell::unix_now_ms());
    return envelope && envelope->wants_workflow;
  }();
  const WorkflowText workflow = must(of_job ? workflow_of_job(text, shell::unix_now_ms())
                                            : parse_workflow(text, shell::unix_now_ms()));
  judge_unknown(workflow, options.strict || observer.segment_settings().strict_envelopes);
  const std::string id = must(producer.create_workflow(workflow.spec));
  if (options.follow) return exit_of(follow(observer, id, request.json));
  const auto made = observer.workflow(id);
  print_line(request.json && made ? print_workflow(*made) : id);
  return shell::kExitOk;
}

struct WorkflowListOptions {
  std::string state, name, tenant;
};

int list_workflows(const Request& request, const WorkflowListOptions& options) {
  WorkflowFilter filter;
  filter.name = options.name;
  if (!options.tenant.empty()) filter.tenant = options.tenant;
  for (const WorkflowState state : {WorkflowState::kRunning, WorkflowState::kCompleted,
                                    WorkflowState::kFailed, WorkflowState::kCancelled})
    if (workflow_state_name(state) == options.state) filter.state = state;
  if (!options.state.empty() && !filter.state)
    shell::refuse(Code::kInvalid,
                  fmt::format("'{}' is not a state of a workflow: running, completed, failed or "
                              "cancelled",
                              options.state));
  const Observer observer = must(Observer::attach(request.where));
  shell::Table table({"ID", "NAME", "KIND", "STATE!", "JOBS>", "DONE>", "FAILED>", "CREATED"});
  for (const WorkflowInfo& workflow : observer.workflows(filter)) {
    if (request.json) {
      print_line(print_workflow(workflow));
      continue;
    }
    table.row({workflow.id, workflow.name(), std::string(workflow_kind_name(workflow.root.kind)),
               std::string(workflow_state_name(workflow.state)), std::to_string(workflow.jobs),
               std::to_string(workflow.completed), std::to_string(workflow.failed),
               print_timestamp(workflow.created_at_ms)});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct WorkflowGetOptions {
  std::string id;
  bool follow = false;
};

int get_workflow(const Request& request, const WorkflowGetOptions& options) {
  const Observer observer = must(Observer::attach(request.where));
  if (options.follow) return exit_of(follow(observer, options.id, request.json));
  const WorkflowInfo workflow = must(observer.workflow(options.id));
  if (request.json)
    print_line(print_workflow(workflow));
  else
    std::fputs(picture(workflow, shell::has_colours(1)).c_str(), stdout);
  return shell::kExitOk;
}

int cancel_workflow(const Request& request, const WorkflowGetOptions& options) {
  const WorkflowInfo workflow =
      must(must(Producer::attach(request.where)).cancel_workflow(options.id));
  if (request.json)
    print_line(print_workflow(workflow));
  else
    shell::inform("workflow {} is cancelled; active jobs may end", workflow.id);
  return shell::kExitOk;
}

}  // namespace

void add_workflow_commands(CLI::App& app, Request& request) {
  CLI::App* workflow = app.add_subcommand("workflow", "Run, watch and cancel workflows");
  workflow->require_subcommand(1);
  workflow->fallthrough();
  set_footer(*workflow);
  const auto [run, run_options] = add_command<RunOptions>(
      *workflow, request, "run", "Create a workflow and print its id", &run_workflow);
  run->add_option("FILE", run_options->file, "A workflow as JSON, docs/workflows.md; - is stdin")
      ->required();
  run->add_flag("--follow", run_options->follow,
                "Draw it until it has ended; status 1 unless it completed");
  run->add_flag("--strict", run_options->strict,
                "Refuse members that mean nothing; without it they are told on stderr");
  const auto [list, list_options] = add_command<WorkflowListOptions>(
      *workflow, request, "list", "Workflows, the newest first; 1,000 at most", &list_workflows);
  list->add_option("--state", list_options->state, "running, completed, failed or cancelled")
      ->type_name("STATE");
  list->add_option("--tenant", list_options->tenant,
                   "Only those of which all jobs are this tenant's")
      ->type_name("T");
  list->add_option("--called", list_options->name, "Only those of that name")->type_name("NAME");
  const auto [get, get_options] =
      add_command<WorkflowGetOptions>(*workflow, request, "get", "How one stands", &get_workflow);
  get->add_option("ID", get_options->id, "The workflow")->transform(shell::known_id)->required();
  get->add_flag("--follow", get_options->follow,
                "Draw it until it has ended; status 1 unless it completed");
  const auto [cancel, cancel_options] = add_command<WorkflowGetOptions>(
      *workflow, request, "cancel", "Cancel all that has not begun; active jobs may end",
      &cancel_workflow);
  cancel->add_option("ID", cancel_options->id, "The workflow")
      ->transform(shell::known_id)
      ->required();
}

}  // namespace ojs_shm::cli
