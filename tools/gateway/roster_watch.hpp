// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ojs_shm/registered_worker.hpp>

namespace ojs_shm::gateway {

/// An event about a worker that no process of the segment told. Source: ojs-events 3.4.
struct WorkerEvent {
  std::string id, type, worker, json;
};

/// Finds out what became of the registered workers between two looks at them.
class RosterWatch {
 public:
  /// The first look tells nothing: those that are there were there before.
  std::vector<WorkerEvent> look(const std::vector<RegisteredWorker>& workers,
                                const std::string& source, std::uint64_t now_ms);

 private:
  struct Seen {
    std::uint64_t registered_at_ms = 0;
    bool takes_jobs = true, ended = false;
  };
  std::map<std::string, Seen> seen_;
  bool looked_ = false;
};

}  // namespace ojs_shm::gateway
