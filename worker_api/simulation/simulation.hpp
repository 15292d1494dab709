// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/worker.hpp>
#include <ojs_shm/worker_pool.hpp>

/// What a policy would do to a load: the arrivals and services of a trace, played through the
/// engine itself, in a private segment whose clock stands between two events. No time passes,
/// nothing is shared, and the same trace gives the same outcome. Times are microseconds from the
/// begin of the trace; the segment's own clock counts their milliseconds.
namespace ojs_shm {

struct TraceArrival {
  std::int64_t at_us = 0;
  std::int64_t service_us = 0;
  std::string queue = "default", type = "job", tenant;
  std::int64_t priority = 0;
  std::uint32_t size = 0;  ///< bytes of args and extra
  std::string unique =
      {};  ///< its policy in JSON, with its key as `fingerprint`; empty: not unique
  /// Of a job of a workflow: a name that all of its jobs have, and the arrivals, as places in the
  /// trace, that it comes after: then it comes when they have ended, whatever at_us says.
  std::string workflow = {};
  std::vector<std::uint32_t> after = {};
};

/// A pool of a load, and its workers, each of which does `concurrency` jobs at a time.
struct SimulatedPool {
  std::string name;
  PoolSettings settings;
  std::uint32_t workers = 1, concurrency = 1;
};

struct Trace {
  std::string convention = "ojs";
  std::vector<TraceArrival> arrivals;     ///< by time
  std::vector<SimulatedPool> pools = {};  ///< no two of one name
};

/// A load that was not recorded: arrivals and services of a Poisson process, everything else by
/// weights.
struct SyntheticLoad {
  using Weights = std::vector<std::pair<std::string, double>>;
  std::uint64_t seed = 1;
  std::uint32_t jobs = 10'000;
  double rate = 100;  ///< arrivals a second, the first at 0; 0: all at once
  std::int64_t service_us = 10'000;
  bool fixed_service = false;  ///< else exponential with that mean
  Weights queues = {{"default", 1}};
  std::vector<std::pair<std::int64_t, double>> priorities = {{2, 1}};
  Weights tenants = {{"", 1}};
  std::uint32_t size = 64;
  std::uint32_t unique_keys = 0;  ///< each job is unique under one of so many; 0: none is
  std::vector<SimulatedPool> pools = {};
};
Trace synthetic_trace(const SyntheticLoad& load);

/// `count` workers of one kind, each of which does `concurrency` jobs at a time.
struct SimulatedWorkers {
  WorkerOptions options;
  std::uint32_t count = 1, concurrency = 1;
};

/// The policy under trial, beside the load's pools; `workers` are those of no pool. Sizes of jobs
/// are played only into queues with a bound by bytes.
struct SimulationPlan {
  std::vector<std::pair<std::string, QueueSettings>> queues = {};
  std::optional<AgingSettings> default_aging = {};
  std::vector<SimulatedWorkers> workers = {};
};

struct SimulatedDispatch {
  std::int64_t at_us;
  std::uint32_t arrival;  ///< its place in the trace
  std::uint32_t worker;
};

/// Created by its first arrival, whole or not at all.
struct SimulatedWorkflow {
  std::int64_t began_us = 0, ended_us = 0;
  bool refused = false, completed = false;  ///< neither: some of its jobs were dropped
};

struct SimulationOutcome {
  std::vector<SimulatedDispatch> dispatches;  ///< in their order
  std::vector<std::uint32_t> refused;         ///< arrivals, by a bound
  /// arrivals that met another of their unique key, and were not stored
  std::vector<std::uint32_t> duplicates;
  std::vector<std::string> pool_of_worker;  ///< empty: of none
  /// When each arrival became available, in the trace's order; what never did has kNever.
  std::vector<std::int64_t> came_us;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::vector<SimulatedWorkflow> workflows;
  std::int64_t end_us = 0;  ///< of the last service
};

/// `progress` is told now and then how many arrivals have been played. Errors: kInvalid (a setting,
/// a pool, a priority, a workflow, no worker), kSegmentFull, kNoSpace, kPermission.
Result<SimulationOutcome> simulate(const Trace& trace, const SimulationPlan& plan,
                                   const std::function<void(std::size_t)>& progress = {});

/// What became of a part of the arrivals.
struct SimulatedGroup {
  std::string name;
  /// the rest was dropped or replaced, or came after such a job, or no worker took it
  std::uint64_t arrived = 0, refused = 0, duplicates = 0, served = 0;
  /// of the dispatches up to the last arrival: after it there is less to choose from
  double share = 0;
  /// of the waits of those that were served
  double mean_ms = 0, p50_ms = 0, p95_ms = 0, p99_ms = 0, max_ms = 0;
};

struct SimulationReport {
  SimulatedGroup all;
  std::vector<SimulatedGroup> queues, levels,
      tenants;  ///< a level is "QUEUE PRIORITY"; tenants, if there are any
  /// If there are any: arrivals of its queues, which may be of several pools, and services by its
  /// workers. Workers of no pool and queues of none make the group without a name.
  std::vector<SimulatedGroup> pools;
  /// If there are any: workflows, those that completed, and how long they took in place of waits.
  std::optional<SimulatedGroup> workflows;
};
SimulationReport report_of(const Trace& trace, const SimulationOutcome& outcome);

}  // namespace ojs_shm
