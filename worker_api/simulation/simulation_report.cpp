// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include <spdlog/fmt/fmt.h>

#include "worker_api/json/unique_key.hpp"
#include "worker_api/simulation/simulation.hpp"

namespace ojs_shm {
namespace {

/// Every distribution by our own arithmetic on the generator's bits, so that a seed means the same
/// everywhere.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  template <class Value>
  const Value& of(const std::vector<std::pair<Value, double>>& weights) {
    double sum = 0;
    for (const auto& [value, weight] : weights) sum += weight;
    double left = uniform() * sum;
    for (const auto& [value, weight] : weights)
      if ((left -= weight) < 0) return value;
    return weights.back().first;
  }

 private:
  std::mt19937_64 bits_;
};

/// Waits of one group, until its report is made.
struct Waits {
  SimulatedGroup group;
  std::vector<std::int64_t> waits_us;
  std::uint64_t before_last_arrival = 0;

  SimulatedGroup finish(std::uint64_t dispatches) {
    std::sort(waits_us.begin(), waits_us.end());
    group.served = waits_us.size();
    if (dispatches != 0)
      group.share = static_cast<double>(before_last_arrival) / static_cast<double>(dispatches);
    if (waits_us.empty()) return group;
    // The smallest wait that so many of all did not exceed.
    const auto at = [this](double share) {
      const auto rank =
          static_cast<std::size_t>(std::ceil(share * static_cast<double>(waits_us.size())));
      return static_cast<double>(waits_us[std::max<std::size_t>(rank, 1) - 1]) / 1000;
    };
    double sum = 0;
    for (const std::int64_t wait : waits_us) sum += static_cast<double>(wait) / 1000;
    group.mean_ms = sum / static_cast<double>(waits_us.size());
    group.p50_ms = at(0.5), group.p95_ms = at(0.95), group.p99_ms = at(0.99), group.max_ms = at(1);
    return group;
  }
};

template <class Key>
std::vector<SimulatedGroup> finish_all(std::map<Key, Waits>& groups, std::uint64_t dispatches) {
  std::vector<SimulatedGroup> made;
  for (auto& [key, waits] : groups) made.push_back(waits.finish(dispatches));
  return made;
}

/// Which groups of pools a queue counts in: those that serve it, or the group of no pool, where
/// there is such a group.
std::map<std::string, std::vector<Waits*>> groups_by_queue(const Trace& trace,
                                                           std::map<std::string, Waits>& pools) {
  std::map<std::string, std::vector<Waits*>> groups;
  for (const TraceArrival& arrival : trace.arrivals) groups[arrival.queue];
  for (auto& [queue, members] : groups) {
    for (const SimulatedPool& pool : trace.pools)
      if (std::ranges::find(pool.settings.queues, queue) != pool.settings.queues.end())
        members.push_back(&pools[pool.name]);
    if (const auto none = pools.find(""); members.empty() && none != pools.end())
      members.push_back(&none->second);
  }
  return groups;
}

}  // namespace

Trace synthetic_trace(const SyntheticLoad& load) {
  Draw draw(load.seed);
  Trace trace;
  trace.pools = load.pools;
  double now = 0;
  for (std::uint32_t i = 0; i < load.jobs; ++i) {
    if (i != 0 && load.rate > 0) now += draw.exponential(1e6 / load.rate);
    TraceArrival arrival;
    arrival.at_us = static_cast<std::int64_t>(now);
    const auto mean = static_cast<double>(load.service_us);
    arrival.service_us =
        static_cast<std::int64_t>(load.fixed_service ? mean : draw.exponential(mean));
    arrival.queue = draw.of(load.queues);
    arrival.priority = draw.of(load.priorities);
    arrival.tenant = draw.of(load.tenants);
    arrival.type = "synthetic";
    arrival.size = load.size;
    if (load.unique_keys != 0) {
      const auto key = static_cast<std::uint32_t>(draw.uniform() * load.unique_keys);
      arrival.unique = print_unique(fmt::format("{:032x}", key), {});
    }
    trace.arrivals.push_back(std::move(arrival));
  }
  return trace;
}

SimulationReport report_of(const Trace& trace, const SimulationOutcome& outcome) {
  Waits all;
  std::map<std::string, Waits> queues, tenants, pools;
  std::map<std::pair<std::string, std::int64_t>, Waits> levels;
  const auto each_of = [&](const TraceArrival& arrival, auto change) {
    change(all);
    change(queues[arrival.queue]);
    change(levels[{arrival.queue, arrival.priority}]);
    change(tenants[arrival.tenant]);
  };
  for (const SimulatedPool& pool : trace.pools) pools[pool.name];
  if (!pools.empty())
    for (const std::string& pool : outcome.pool_of_worker) pools[pool];
  const auto groups = groups_by_queue(trace, pools);
  for (const TraceArrival& arrival : trace.arrivals) {
    each_of(arrival, [](Waits& waits) { ++waits.group.arrived; });
    for (Waits* pool : groups.at(arrival.queue)) ++pool->group.arrived;
  }
  for (const std::uint32_t number : outcome.refused) {
    each_of(trace.arrivals[number], [](Waits& waits) { ++waits.group.refused; });
    for (Waits* pool : groups.at(trace.arrivals[number].queue)) ++pool->group.refused;
  }
  for (const std::uint32_t number : outcome.duplicates) {
    each_of(trace.arrivals[number], [](Waits& waits) { ++waits.group.duplicates; });
    for (Waits* pool : groups.at(trace.arrivals[number].queue)) ++pool->group.duplicates;
  }
  std::int64_t last = 0;
  for (const std::int64_t came : outcome.came_us)
    if (came != SimulationOutcome::kNever) last = std::max(last, came);
  for (const SimulatedDispatch& dispatch : outcome.dispatches) {
    const TraceArrival& arrival = trace.arrivals[dispatch.arrival];
    const auto serve = [&](Waits& waits) {
      waits.waits_us.push_back(dispatch.at_us - outcome.came_us[dispatch.arrival]);
      if (dispatch.at_us <= last) ++waits.before_last_arrival;
    };
    each_of(arrival, serve);
    if (!pools.empty()) serve(pools[outcome.pool_of_worker[dispatch.worker]]);
  }
  for (auto& [name, waits] : queues) waits.group.name = name;
  for (auto& [key, waits] : levels) waits.group.name = key.first + " " + std::to_string(key.second);
  for (auto& [name, waits] : tenants) waits.group.name = name;
  for (auto& [name, waits] : pools) waits.group.name = name;
  if (tenants.size() == 1 && tenants.begin()->first.empty()) tenants.clear();

  SimulationReport report;
  const std::uint64_t dispatches = all.before_last_arrival;
  report.all = all.finish(dispatches);
  report.queues = finish_all(queues, dispatches);
  report.levels = finish_all(levels, dispatches);
  report.tenants = finish_all(tenants, dispatches);
  report.pools = finish_all(pools, dispatches);
  if (outcome.workflows.empty()) return report;
  Waits workflows;
  for (const SimulatedWorkflow& workflow : outcome.workflows) {
    ++workflows.group.arrived;
    if (workflow.refused) ++workflows.group.refused;
    if (workflow.completed) workflows.waits_us.push_back(workflow.ended_us - workflow.began_us);
  }
  report.workflows = workflows.finish(0);
  return report;
}

}  // namespace ojs_shm
