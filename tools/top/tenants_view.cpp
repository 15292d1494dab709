// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "tools/shell/quantity.hpp"
#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {

Grid tenants_grid(const Sample& sample, const Subject& subject) {
  Grid grid;
  grid.nothing = "no job has a tenant (meta.tenant_id)";
  grid.columns = {{"TENANT"},         {"QUEUE"},        {"DEPTH", true},    {"ACTIVE", true},
                  {"OLDEST", true},   {"WEIGHT", true}, {"ENTITLED", true}, {"ACTUAL", true},
                  {"BEGUN 1M", true}, {"BOUND", true}};
  for (const TenantCensus& tenant : sample.census.tenants) {
    if (!subject.queue.empty() && tenant.queue != subject.queue) continue;
    const bool full = tenant.max_depth != 0 && tenant.depth >= tenant.max_depth;
    std::string bound = tenant.max_depth == 0 ? "" : std::to_string(tenant.max_depth);
    if (tenant.max_size_bytes != 0)
      bound += (bound.empty() ? "" : ", ") + shell::bytes_text(tenant.max_size_bytes);
    if (full) bound += " full";
    Row row{tenant.queue + " " + tenant.tenant, {}, {}};
    row.cells = {
        text_cell(tenant.tenant.empty() ? "(none)" : tenant.tenant),
        text_cell(tenant.queue),
        count_cell(tenant.depth),
        count_cell(tenant.active),
        age_cell(tenant.oldest_age_ms, tenant.oldest_age_ms != 0),
        tenant.entitled ? count_cell(tenant.weight) : text_cell("-"),
        share_cell(tenant.entitled),
        share_cell(tenant.begun_1m == 0 && tenant.actual == 0 ? std::nullopt
                                                              : std::optional(tenant.actual)),
        count_cell(tenant.begun_1m),
        text_cell(bound.empty() ? "none" : bound,
                  full ? Style{Tone::kBad, true, false, false} : Style{})};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

}  // namespace ojs_shm::top
