// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::top {
namespace {

/// A list is for a person: no one reads further.
constexpr std::size_t kMostJobs = 500;

JobFilter filter_of(const Subject& subject) {
  JobFilter filter;
  filter.queue = subject.queue;
  if (!subject.tenant.empty()) filter.tenant = subject.tenant;
  switch (subject.jobs) {
    case JobChoice::kWaiting: filter.waiting = true; break;
    case JobChoice::kActive: filter.state = State::kActive; break;
    case JobChoice::kDead: filter.dead_letter = true; break;
    case JobChoice::kAll: break;
  }
  filter.limit = kMostJobs;
  return filter;
}

/// How long the job has been what it is.
std::uint64_t since_of(const JobInfo& job) {
  switch (job.state) {
    case State::kActive: return job.started_at_ms;
    case State::kCompleted: return job.completed_at_ms;
    case State::kCancelled: return job.cancelled_at_ms;
    case State::kDiscarded: return job.discarded_at_ms;
    default: return job.enqueued_at_ms;
  }
}

Style style_of(const JobInfo& job) {
  if (job.dead_letter) return {Tone::kBad, false, false, false};
  if (job.state == State::kActive) return {Tone::kGood, false, false, false};
  return {};
}

void add(Grid& grid, const std::string& member, const std::string& value) {
  Row row{member, {}, {}};
  row.cells = {text_cell(member, {Tone::kNote, false, false, false}), text_cell(value)};
  grid.rows.push_back(std::move(row));
}

}  // namespace

Grid jobs_grid(const Observer& observer, std::uint64_t now_ms, const Subject& subject) {
  Grid grid;
  grid.nothing = "no such job; `s` chooses which jobs are shown";
  grid.columns = {{"ID"},
                  {"STATE"},
                  {"PRIORITY", true},
                  {"QUEUE"},
                  {"TYPE"},
                  {"AGE", true, kTimeWidth},
                  {"ATTEMPT", true},
                  {"TENANT"},
                  {"LAST ERROR"}};
  for (const JobInfo& job : observer.list(filter_of(subject))) {
    const std::string state = job.dead_letter ? "dead letter" : std::string(state_name(job.state));
    const std::uint64_t since = since_of(job);
    const std::string tenant = tenant_of(job.extra);
    Row row{job.id, {}, {}};
    row.cells = {text_cell(job.id),
                 text_cell(state, style_of(job)),
                 {std::to_string(job.priority), static_cast<double>(job.priority), {}},
                 text_cell(job.queue),
                 text_cell(job.type),
                 age_cell(now_ms - std::min(now_ms, since), since != 0),
                 count_cell(job.attempt),
                 text_cell(tenant.empty() ? "-" : tenant),
                 text_cell(job.errors.empty() ? "-" : job.errors.back().code)};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

Grid job_grid(const Observer& observer, const Subject& subject) {
  Grid grid;
  grid.columns = {{"MEMBER"}, {"VALUE"}};
  grid.wraps = true;
  const Result<JobInfo> job = observer.get(subject.job);
  if (!job) {
    grid.nothing = job.error().message;
    return grid;
  }
  const std::string text = print_job(job.value());
  for (const json::Member& member : json::members_of(text)) {
    if (member.name == "errors") continue;
    add(grid, member.name, json::string_of(member.value).value_or(std::string(member.value)));
  }
  for (const JobError& error : job.value().errors)
    add(grid, "error of attempt " + std::to_string(error.attempt),
        print_timestamp(error.occurred_at_ms) + "  " + error.code + "  " + error.message +
            (error.details.empty() ? "" : "  " + error.details));
  return grid;
}

}  // namespace ojs_shm::top
