// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ojs_shm/worker.hpp>

namespace ojs_shm::cli {

/// A queue as a worker's flags or file name it.
struct QueueShare {
  std::string name;
  std::optional<std::int64_t> weight;
};

/// Which queues a worker takes from, and how.
struct WorkConfig {
  std::vector<QueueShare> queues;
  std::optional<std::string> strategy;
};

/// A JSON object or TOML: `strategy`, "strict" or "weighted", and `queues`, names or {name,
/// weight}. Errors: kInvalid, with file and line; kPermission.
Result<WorkConfig> read_work_config(const std::string& path);

/// "critical" or "critical:5". Errors: kInvalid.
Result<QueueShare> parse_share(const std::string& text);

/// Without queues the default one. Errors: kInvalid.
Status apply(const WorkConfig& config, WorkerOptions& options);

}  // namespace ojs_shm::cli
