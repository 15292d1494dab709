// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

constexpr std::size_t kLongestWorkerId = 128;
/// A registered worker without a sign of life for so long is ended; its jobs go to other workers.
constexpr std::uint64_t kWorkerSilenceMs = 30'000;

/// What an operator asks of a worker.
enum class WorkerDirective : std::uint8_t {
  kRunning = 0,
  kQuiet = 1,      ///< take no more jobs
  kTerminate = 2,  ///< the same, and end when those in hand are done
};
/// "running", "quiet", "terminate".
OJS_SHM_API std::string_view directive_name(WorkerDirective directive) noexcept;
/// Errors: kInvalid.
OJS_SHM_API Result<WorkerDirective> parse_directive(std::string_view name);

/// A report about a worker; unset members stay as they were.
struct WorkerReport {
  std::string id;  ///< 1 to 128 bytes
  /// The first one stays: a worker has one pool.
  std::optional<std::string> pool = {};
  std::optional<std::vector<std::string>> queues = {};
  std::optional<std::uint32_t> concurrency = {};  ///< jobs that it has at most; 0: not said
  std::optional<std::uint32_t> active_jobs = {};
  std::optional<std::string> hostname = {}, version = {};
  std::optional<std::string> labels = {};  ///< JSON
  std::optional<std::string> state = {};   ///< its own word: "running" or another
  std::optional<std::uint32_t> pid = {};
  /// It begins anew: an earlier directive is over.
  bool registers = false;
  /// It will give signs of life, and loses its jobs when it does not for kWorkerSilenceMs, or for
  /// `silence_ms` if that is longer.
  bool pledges = true;
  std::optional<std::uint32_t> silence_ms = {};
};

/// A worker that registered, through any process of the segment.
struct RegisteredWorker {
  std::string id, pool, hostname, version;
  std::vector<std::string> queues;
  std::string labels;            ///< JSON; empty: none
  std::string said = "running";  ///< its own word for its state
  WorkerDirective directive = WorkerDirective::kRunning;
  std::uint32_t concurrency = 0, active_jobs = 0, pid = 0;
  std::uint64_t registered_at_ms = 0, last_sign_ms = 0, silent_ms = 0;
  std::uint64_t longest_silence_ms = kWorkerSilenceMs;  ///< after which it is ended
  std::uint64_t returned_jobs = 0;                      ///< to other workers, when it was ended
  bool ended = false;   ///< for its silence, or with its process; known for ten minutes
  bool died = false;    ///< with its process
  bool native = false;  ///< a handle of a process of the segment, not a client of a gateway

  /// "stale" (silent for too long, or ended), the directive, or the worker's own word.
  OJS_SHM_API std::string_view state() const;
  /// How it ended: "died", "silent"; empty: it has not.
  std::string_view end() const { return !ended ? "" : died ? "died" : "silent"; }
  bool takes_jobs() const { return directive == WorkerDirective::kRunning && said == "running"; }
};
/// `{"id", "state", "directive", "pool", "queues", "concurrency", "active_jobs", "hostname",
/// "version", "pid", "labels", "native", "started_at", "last_heartbeat_at", "silent_ms", "ended",
/// "returned_jobs"}`; what is not known is left out, and so are the last two of a worker that has
/// not ended.
OJS_SHM_API std::string print_registered_worker(const RegisteredWorker& worker);

}  // namespace ojs_shm
