// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {
namespace {

Style style_of(std::string_view state) {
  if (state == "dead") return {Tone::kBad, true, false, false};
  if (state == "stale") return {Tone::kBad, true, false, false};
  if (state == "stopped" || state == "quiet" || state == "terminate")
    return {Tone::kCare, true, false, false};
  return {};
}

std::string role_of(const ProcessInfo& process, const WorkerCensus& worker) {
  std::string role = process.broker ? "broker" : "";
  const auto add = [&role](const char* word) {
    role += (role.empty() ? "" : ", ") + std::string(word);
  };
  if (process.supervisor) add("supervisor");
  if (process.active_jobs != 0 || !worker.queues.empty()) add("worker");
  return role.empty() ? "-" : role;
}

/// Registered workers, behind the processes: of a worker that a gateway serves no process is seen.
Row registered_row(const RegisteredWorker& worker, std::uint64_t at_ms) {
  const auto none = [] { return text_cell("-"); };
  const std::string state(worker.ended ? worker.end() : worker.state());
  Row row{key_of(worker), {}, {}};
  row.cells = {worker.pid == 0 ? none() : count_cell(worker.pid),
               text_cell(state, style_of(worker.state())),
               text_cell("worker " + worker.id),
               count_cell(worker.active_jobs),
               none(),
               none(),
               none(),
               age_cell(at_ms - std::min(at_ms, worker.last_sign_ms), worker.last_sign_ms != 0),
               none(),
               text_cell(worker.pool.empty() ? "-" : worker.pool),
               text_cell(list_text(worker.queues))};
  return row;
}

}  // namespace

std::string key_of(const RegisteredWorker& worker) { return "worker " + worker.id; }

Grid workers_grid(const Sample& sample) {
  const Census& census = sample.census;
  Grid grid;
  grid.nothing = "no process is attached";
  grid.columns = {{"PID", true},    {"STATE"},           {"ROLE"},
                  {"JOBS", true},   {"OLDEST TYPE"},     {"AGE", true, kTimeWidth},
                  {"JOBS/S", true}, {"LAST SIGN", true}, {"HANDLES", true},
                  {"POOL"},         {"QUEUES"}};
  for (std::size_t i = 0; i < census.workers.size() && i < census.segment.processes.size(); ++i) {
    const ProcessInfo& process = census.segment.processes[i];
    const WorkerCensus& worker = census.workers[i];
    const std::string_view state = census.state_of(process);
    const auto rate = sample.spans[0].workers.find(worker.process);
    const std::uint64_t quiet = census.at_ms - std::min(census.at_ms, worker.last_sign_ms);
    Row row{std::to_string(worker.process), {}, {}};
    row.cells = {count_cell(process.pid),
                 text_cell(std::string(state), style_of(state)),
                 text_cell(role_of(process, worker)),
                 count_cell(process.active_jobs),
                 text_cell(worker.oldest_type.empty() ? "-" : worker.oldest_type),
                 age_cell(worker.oldest_age_ms, !worker.oldest_job.empty()),
                 rate_cell(rate == sample.spans[0].workers.end() ? std::nullopt : rate->second),
                 age_cell(quiet, worker.last_sign_ms != 0),
                 count_cell(process.handles),
                 text_cell(list_text(worker.pools)),
                 text_cell(list_text(worker.queues))};
    grid.rows.push_back(std::move(row));
  }
  for (const RegisteredWorker& worker : census.registered)
    grid.rows.push_back(registered_row(worker, census.at_ms));
  return grid;
}

}  // namespace ojs_shm::top
