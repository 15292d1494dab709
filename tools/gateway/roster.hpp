// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ojs_shm::gateway {

/// A worker as its heartbeats tell of it.
struct WorkerEntry {
  std::string id, hostname, pool, version;
  std::string reported = "running";   ///< what it said last
  std::string directive = "running";  ///< what it is told: running, quiet or terminate
  std::vector<std::string> queues;
  std::uint32_t concurrency = 0, active_jobs = 0, pid = 0;
  std::uint64_t started_at_ms = 0, last_seen_ms = 0;
  std::string labels = {};  ///< JSON

  bool draining() const { return reported != "running" || directive != "running"; }
};

/// What a client said of a running job.
struct JobNote {
  std::uint64_t fence = 0;
  std::string worker = {}, message = {}, data = {};  ///< data: JSON
  std::uint64_t updated_at_ms = 0;
};

/// The workers that speak to this gateway, and notes on the jobs they run. It lives in this process:
/// another gateway of the segment has its own, and a new one begins empty. Thread-safe.
class Roster {
 public:
  static constexpr std::uint64_t kSilenceMs = 30'000;
  static constexpr std::size_t kMostWorkers = 10'000, kMostNotes = 100'000;

  /// Changes the worker's entry, made if need be, through `change`, and returns it.
  template <class Change>
  WorkerEntry update(std::string_view id, std::uint64_t now_ms, Change change) {
    const std::lock_guard lock(mutex_);
    WorkerEntry& entry = entry_of(id, now_ms);
    entry.last_seen_ms = now_ms;
    change(entry);
    return entry;
  }
  std::optional<WorkerEntry> find(std::string_view id) const;
  std::vector<WorkerEntry> all() const;
  bool remove(std::string_view id);
  /// False when there is no such worker.
  bool direct(std::string_view id, std::string_view directive);

  void note(std::string_view job, JobNote note);
  /// Of this attempt of the job.
  std::optional<JobNote> note_of(std::string_view job, std::uint64_t fence) const;
  void forget(std::string_view job);
  void clear();

 private:
  WorkerEntry& entry_of(std::string_view id, std::uint64_t now_ms);

  mutable std::mutex mutex_;
  std::map<std::string, WorkerEntry, std::less<>> workers_;
  std::unordered_map<std::string, JobNote> notes_;
  std::deque<std::string> noted_;  ///< the oldest first; some are forgotten already
};

}  // namespace ojs_shm::gateway
