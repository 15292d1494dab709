// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

/// How a pool of workers chooses among its queues. Source: fair scheduling 7.
enum class PoolStrategy : std::uint8_t {
  kStrict = 0,      ///< at each fetch from left to right
  kRoundRobin = 1,  ///< one job of each queue in a cycle; a queue without a job passes its turn on
  /// as often in a cycle as its weight says; while it has jobs, at most W - weight others come
  /// between
  kWeighted = 2,
  kLeastLoaded = 3,  ///< the queue with the deepest backlog
};

/// Source: fair scheduling 8.
struct StarvationPrevention {
  bool enabled = false;
  /// a queue that has jobs is served at least once in it
  std::uint32_t rotation_interval_ms = 30'000;
  /// of all dispatches; times the number of queues at most 1
  double min_dispatch_ratio = 0.05;
};

/// Source: fair scheduling 6.1.
struct PoolSettings {
  std::vector<std::string> queues;  ///< 1 to 128, in order
  PoolStrategy strategy = PoolStrategy::kRoundRobin;
  /// of kWeighted; a queue that is not listed has 1
  std::vector<std::pair<std::string, std::uint32_t>> weights = {};
  std::uint64_t concurrency = 0;  ///< active jobs of all its workers together; 0: unlimited
  bool isolated = false;          ///< no other workers get jobs of its queues
  StarvationPrevention starvation_prevention = {};
};

/// A pool as it is.
struct WorkerPoolInfo {
  std::string name;
  PoolSettings settings;  ///< weights are divided by what they have in common
  std::uint32_t active_workers = 0;
  std::uint64_t active_jobs = 0, waiting_jobs = 0;
  /// of its workers; 0: none has declared any
  std::uint64_t declared_concurrency = 0;
  std::vector<std::pair<std::string, std::uint64_t>> dispatched_total;  ///< by queue
  /// Active jobs of those that there may be, 0 to 1: by its limit, else by the concurrency that its
  /// workers declared; negative without either.
  OJS_SHM_API double utilization() const;
};

/// Reads `{"queues": ["a", "b"], "strategy", "concurrency", "weights": {"a": 3}, "isolated",
/// "starvation_prevention": {"enabled", "rotation_interval": "PT30S", "min_dispatch_ratio"}}`, also
/// as the member `pool` of an object. `queues` may be an object of weights, or of objects with a
/// `weight`. A `name` is allowed. Errors: kInvalid; `subject` is the member.
OJS_SHM_API Result<PoolSettings> parse_pool_settings(std::string_view json);
/// The pool as one JSON object.
OJS_SHM_API std::string print_pool(const WorkerPoolInfo& pool);
/// "strict", "round-robin", "weighted", "least-loaded".
OJS_SHM_API std::string_view pool_strategy_name(PoolStrategy strategy) noexcept;

}  // namespace ojs_shm
