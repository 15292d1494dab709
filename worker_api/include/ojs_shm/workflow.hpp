// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>

namespace ojs_shm {

/// Jobs of one workflow, callbacks counted; and how deep its parts may be nested.
inline constexpr std::size_t kMostWorkflowJobs = 512, kDeepestWorkflow = 8;

enum class WorkflowKind : std::uint8_t {
  kJob,    ///< a part that is one job
  kChain,  ///< one after the other; the first that fails ends it
  kGroup,  ///< all at once
  kBatch,  ///< a group, and then its callbacks
  kGraph,  ///< each after those that it depends on; never a part of another
};

/// When a step of a graph runs, once all that it depends on has ended.
enum class StepCondition : std::uint8_t {
  kSuccess,   ///< all of it succeeded; else the step is cancelled
  kFailure,   ///< some of it failed; else the step is skipped
  kComplete,  ///< in any case
  kCallback,  ///< all of it succeeded; else the step is skipped
};

/// A workflow to be created, or a part of one. The views need to live only during the call.
struct WorkflowSpec {
  WorkflowKind kind = WorkflowKind::kJob;
  JobSpec job = {};                      ///< of a job; an empty queue: that of what it is part of
  std::string_view name = {};            ///< of a step of a graph: what other steps depend on
  std::vector<WorkflowSpec> steps = {};  ///< what it consists of
  std::vector<std::string_view> depends_on = {};  ///< of a step of a graph: names of other steps
  StepCondition when = StepCondition::kSuccess;   ///< of a step of a graph
  /// Of a batch: at most one job each; at least one of the three.
  std::vector<WorkflowSpec> on_complete = {}, on_success = {}, on_failure = {};
  /// Of a part that is not a job: the defaults of its jobs. The tenant is stored in their meta as
  /// well.
  std::optional<std::int64_t> priority = {};
  std::string_view queue = {}, tenant = {};
  std::string_view id = {};  ///< of the whole: empty, or a UUIDv7 in lower case
};

enum class WorkflowState : std::uint8_t { kRunning, kCompleted, kFailed, kCancelled };
/// "running", "completed", "failed", "cancelled"
OJS_SHM_API std::string_view workflow_state_name(WorkflowState state) noexcept;
/// "job", "chain", "group", "batch", "graph"
OJS_SHM_API std::string_view workflow_kind_name(WorkflowKind kind) noexcept;

enum class StepState : std::uint8_t {
  kWaiting,  ///< for other steps
  kPending,  ///< for a worker, or for its time
  kActive,
  kCompleted,
  kFailed,     ///< for good
  kCancelled,  ///< by hand, or as steps before it failed
  kSkipped,    ///< a callback that the outcome did not call for
};
/// "waiting", "pending", ...
OJS_SHM_API std::string_view step_state_name(StepState state) noexcept;

/// One part of a workflow as it is now. A part that consists of parts has no job.
struct WorkflowStep {
  WorkflowKind kind = WorkflowKind::kJob;
  StepState state = StepState::kWaiting;
  std::string name, type, queue;
  std::string callback;  ///< "on_complete", "on_success", "on_failure", or empty
  std::vector<std::string> depends_on;
  std::string job_id;             ///< empty while it waits, and when its job is not kept any more
  std::string result;             ///< JSON, empty when there is none
  std::optional<JobError> error;  ///< the last of a job that failed
  std::uint64_t started_at_ms = 0, completed_at_ms = 0;
  std::vector<WorkflowStep> steps;  ///< callbacks at the end
};

/// A copy of everything that the segment knows about one workflow.
struct WorkflowInfo {
  std::string id;
  WorkflowState state = WorkflowState::kRunning;
  std::uint64_t created_at_ms = 0, started_at_ms = 0, ended_at_ms = 0;
  /// jobs without callbacks; how many of them completed, and failed or were cancelled
  std::uint32_t jobs = 0, completed = 0, failed = 0;
  WorkflowStep root;
  std::string tenant;  ///< of all its jobs, if they have the same
  const std::string& name() const { return root.name; }
};

/// Chooses workflows; all conditions must hold.
struct WorkflowFilter {
  std::optional<WorkflowState> state = {};
  std::string name = {};                   ///< empty: any
  std::optional<std::string> tenant = {};  ///< only those of which all jobs are this tenant's
  std::size_t most = 1000;
};

}  // namespace ojs_shm
