// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {
namespace {

/// What a queue may expect of its pool: by its weight, or the same as every other; unset where the
/// backlog or the order of the list decides.
std::optional<double> entitled(const PoolSettings& settings, const std::string& queue) {
  const auto all = static_cast<double>(settings.queues.size());
  switch (settings.strategy) {
    case PoolStrategy::kRoundRobin: return all == 0 ? std::nullopt : std::optional(1 / all);
    case PoolStrategy::kWeighted: break;
    case PoolStrategy::kStrict:
    case PoolStrategy::kLeastLoaded: return std::nullopt;
  }
  double sum = 0, own = 0;
  for (const auto& [name, weight] : settings.weights) {
    sum += weight;
    if (name == queue) own = weight;
  }
  return sum == 0 ? std::nullopt : std::optional(own / sum);
}

const QueueCensus* find(const Census& census, const std::string& name) {
  for (const QueueCensus& queue : census.queues)
    if (queue.info.name == name) return &queue;
  return nullptr;
}

}  // namespace

Grid pools_grid(const Sample& sample) {
  const Census& census = sample.census;
  Grid grid;
  grid.nothing = "no pool of workers: `ojs-shm pool set` makes one";
  grid.columns = {{"POOL"},         {"STRATEGY"},     {"QUEUE"},         {"ENTITLED", true},
                  {"ACTUAL", true}, {"QUEUE STATE"},  {"WORKERS", true}, {"ACTIVE", true},
                  {"LIMIT", true},  {"IN USE", true}, {"WAITING", true}, {"ISOLATED"}};
  for (const WorkerPoolInfo& pool : census.pools) {
    const double use = pool.utilization();
    for (const std::string& name : pool.settings.queues) {
      const QueueCensus* queue = find(census, name);
      const auto share = sample.spans[1].pool_shares.find(pool.name + " " + name);
      const std::string_view state = queue == nullptr ? "-" : queue->state();
      const Style bad{Tone::kBad, true, false, false};
      Row row{pool.name + " " + name, {}, {}};
      row.cells = {
          text_cell(pool.name),
          text_cell(std::string(pool_strategy_name(pool.settings.strategy))),
          text_cell(name),
          share_cell(entitled(pool.settings, name)),
          share_cell(share == sample.spans[1].pool_shares.end() ? std::nullopt
                                                                : std::optional(share->second)),
          text_cell(std::string(state), state == "starving" ? bad : Style{}),
          count_cell(pool.active_workers),
          count_cell(pool.active_jobs),
          pool.settings.concurrency == 0 ? text_cell("none")
                                         : count_cell(pool.settings.concurrency),
          share_cell(use < 0 ? std::nullopt : std::optional(use), use >= 1 ? bad : Style{}),
          count_cell(pool.waiting_jobs),
          text_cell(pool.settings.isolated ? "isolated" : "-")};
      grid.rows.push_back(std::move(row));
    }
  }
  return grid;
}

}  // namespace ojs_shm::top
