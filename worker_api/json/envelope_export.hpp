// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/limit.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/worker_pool.hpp>

/// The lines of an export, docs/export.md. A line is an object with one member, whose name says
/// what it tells of; the first line is an ExportHead. Pure functions; thread-safe.
namespace ojs_shm {

/// {"ojs_shm_export":2,"convention":"ojs",...}
struct ExportHead {
  std::uint32_t version = 0;
  std::string convention;  ///< what every priority of the export means
  std::string segment, library;
  std::uint64_t exported_at_ms = 0;
};

/// {"aging":{...}}, of queues that have none of their own.
struct ExportedAging {
  AgingSettings settings;
};

/// {"queue":{"name":...,"settings":{...}}}
struct ExportedQueue {
  std::string name;
  QueueSettings settings;  ///< levels and limits in the export's convention
};

/// {"pool":{"name":...,"settings":{...}}}, as Admin::set_pool() has them.
struct ExportedPool {
  std::string name;
  PoolSettings settings;
};

/// {"cron":{...}}, as print_cron() says it and parse_cron() reads it.
struct ExportedCron {
  std::string text;
};

/// {"limit":{"key":...,"override":true,"expires_at":...,"settings":{...}}}
struct ExportedLimit {
  std::string key;
  RateLimit limit;
  bool by_operator = false;  ///< else a job brought it
  std::uint64_t expires_at_ms = 0;
};

/// {"default_priority":{...}}. A segment knows the types by their hash; the name is there when a
/// job tells it.
struct ExportedDefault {
  std::string type;
  std::uint64_t type_hash = 0;
  std::string priority;  ///< a number or a name
};

/// {"job":{...}}
struct ExportedJob {
  JobInfo job;                          ///< all but its priority
  std::optional<std::string> priority;  ///< a number or a name
  bool expired = false;
};

/// A job of a running workflow, and what it waits for: numbers of sets.
struct ExportedMember {
  std::uint16_t waits = 0xFFFF, gate = 0xFFFF;
  std::uint8_t when = 0;  ///< engine::When
  bool waiting = false;   ///< for other members; else its job's state tells how it stands
  bool failed = false;    ///< of a member that ended, or of which nothing is left
  std::optional<ExportedJob> job;
};

/// {"workflow":{...}}: a workflow that runs, with all of its jobs.
struct ExportedWorkflow {
  static constexpr std::uint16_t kNothing = 0xFFFF;
  std::string id;
  std::uint64_t created_at_ms = 0;
  std::string tree;                              ///< how it was written; WorkflowTree reads it
  std::vector<std::vector<std::uint16_t>> sets;  ///< of numbers of members
  std::uint16_t result = kNothing;               ///< the set that its own outcome is
  std::vector<ExportedMember> members;
};

std::string print_export(const ExportHead& head);
std::string print_export_aging(const QueueInfo& any_queue);
std::string print_export(const QueueInfo& queue);
std::string print_export(const ExportedPool& pool);
std::string print_export(const ExportedCron& cron);
std::string print_export(const ExportedLimit& limit);
std::string print_export(const ExportedDefault& priority);
std::string print_export(const ExportedJob& job);
std::string print_export(const ExportedWorkflow& workflow);

using ExportLine =
    std::variant<ExportHead, ExportedAging, ExportedQueue, ExportedPool, ExportedCron,
                 ExportedLimit, ExportedDefault, ExportedJob, ExportedWorkflow>;
/// Errors: kInvalid; kOtherFormat for an ExportHead of another version.
Result<ExportLine> read_export_line(std::string_view json);
/// Of the object behind the line's name (envelope_export_access.cpp, envelope_export_workflow.cpp).
/// Errors: kInvalid.
Result<ExportLine> read_exported_pool(std::string_view object);
Result<ExportLine> read_exported_limit(std::string_view object);
Result<ExportLine> read_exported_workflow(std::string_view object);

}  // namespace ojs_shm
