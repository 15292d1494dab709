// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {

Grid crons_grid(const Observer& observer, std::uint64_t now_ms) {
  Grid grid;
  grid.nothing = "no cron: `ojs-shm cron set` makes one";
  grid.columns = {{"NAME"},       {"STATE"},         {"NEXT", true}, {"LAST", true},
                  {"RUNS", true}, {"SKIPPED", true}, {"WHEN"},       {"ZONE"},
                  {"OVERLAP"},    {"TYPE"},          {"QUEUE"},      {"LAST JOB"}};
  const auto until = [now_ms](std::uint64_t time) { return time - std::min(time, now_ms); };
  const auto since = [now_ms](std::uint64_t time) { return now_ms - std::min(time, now_ms); };
  for (const CronInfo& cron : observer.crons()) {
    Row row{cron.name, {}, {}};
    row.cells = {text_cell(cron.name),
                 cron.enabled ? text_cell("enabled")
                              : text_cell("paused", {Tone::kPlain, false, true, false}),
                 age_cell(until(cron.next_run_at_ms), cron.enabled && cron.next_run_at_ms != 0),
                 age_cell(since(cron.last_run_at_ms), cron.last_run_at_ms != 0),
                 count_cell(cron.run_count),
                 count_cell(cron.skipped_count),
                 text_cell(cron.expression),
                 text_cell(cron.timezone),
                 text_cell(std::string(cron_overlap_name(cron.overlap))),
                 text_cell(cron.job.type),
                 text_cell(cron.job.queue),
                 text_cell(cron.last_job.empty() ? "-" : cron.last_job)};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

}  // namespace ojs_shm::top
