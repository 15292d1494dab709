// SPDX-License-Identifier: Apache-2.0
#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {

std::string_view name_of(View view) {
  switch (view) {
    case View::kQueues: return "queues";
    case View::kWorkers: return "workers";
    case View::kPools: return "pools";
    case View::kTenants: return "tenants";
    case View::kLimits: return "limits";
    case View::kJobs: return "jobs";
    case View::kEvents: return "events";
    case View::kCounters: return "counters";
    case View::kPast: return "past";
    case View::kWorkflows: return "workflows";
    case View::kCrons: return "crons";
    case View::kWorkflow: return "workflow";
    case View::kJob: return "job";
    case View::kHelp: break;
  }
  return "help";
}

std::string_view short_name_of(View view) {
  switch (view) {
    case View::kQueues: return "queue";
    case View::kWorkers: return "worker";
    case View::kPools: return "pool";
    case View::kTenants: return "tenant";
    case View::kLimits: return "limit";
    case View::kJobs: return "job";
    case View::kEvents: return "event";
    case View::kCounters: return "count";
    case View::kWorkflows: return "flow";
    case View::kCrons: return "cron";
    default: return name_of(view);
  }
}

std::optional<View> view_by_name(std::string_view name) {
  for (const View view : kViews)
    if (name_of(view) == name) return view;
  return std::nullopt;
}

std::string_view name_of(JobChoice choice) {
  switch (choice) {
    case JobChoice::kWaiting: return "waiting";
    case JobChoice::kActive: return "active";
    case JobChoice::kDead: return "dead letters";
    case JobChoice::kAll: break;
  }
  return "all";
}

Grid help_grid(bool admin) {
  Grid grid;
  grid.columns = {{"KEY"}, {"DOES"}};
  const auto add = [&grid](const char* key, const char* does) {
    grid.rows.push_back({key, {text_cell(key), text_cell(does)}, {}});
  };
  add("1 2 3 4", "queues, workers, pools, tenants");
  add("5 6 7 8 9 0 C", "limits, jobs, events, counters, past, workflows, crons");
  add("Tab Shift-Tab", "the next view, the one before");
  add("Up Down PgUp PgDn Home End", "move the cursor");
  add("Left Right", "scroll the columns");
  add("Enter", "into the row: a queue's jobs, a job, a workflow's parts");
  add("Esc, Backspace", "go back; end the filter");
  add("t", "the tenants of the chosen queue");
  add("s", "jobs: waiting, active, dead letters, all");
  add("/", "filter: only rows that contain the text");
  add("F6, < >", "sort by the next, previous, next column; I reverses");
  add("Space", "freeze, and go on");
  add("+ -", "longer or shorter interval between two looks");
  add("? h F1", "this help");
  add("q F10", "quit");
  if (!admin) return grid;
  add("p r", "queues: pause, resume");
  add("c P", "a job: cancel, change its priority");
  add("D", "a job that is over: drop what is kept of it");
  add("R", "a dead letter: retry");
  add("M", "repair after dead processes");
  return grid;
}

Grid grid_of(View view, const Observer& observer, const Sample& sample, const Subject& subject,
             const EventLog& log, bool admin) {
  switch (view) {
    case View::kQueues: return queues_grid(sample, subject);
    case View::kWorkers: return workers_grid(sample);
    case View::kPools: return pools_grid(sample);
    case View::kTenants: return tenants_grid(sample, subject);
    case View::kLimits: return limits_grid(sample);
    case View::kJobs: return jobs_grid(observer, sample.census.at_ms, subject);
    case View::kEvents: return events_grid(sample, log);
    case View::kCounters: return counters_grid(sample);
    case View::kPast: return past_grid(observer);
    case View::kCrons: return crons_grid(observer, sample.census.at_ms);
    case View::kWorkflows: return workflows_grid(observer, sample.census.at_ms);
    case View::kWorkflow: return workflow_grid(observer, subject);
    case View::kJob: return job_grid(observer, subject);
    case View::kHelp: break;
  }
  return help_grid(admin);
}

}  // namespace ojs_shm::top
