// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/result.hpp>
#include <ojs_shm/workflow.hpp>

#include "worker_api/json/envelope.hpp"

/// Workflows as JSON. Source: ojs-workflows 3 to 11; requirements B.4.
namespace ojs_shm {

/// A workflow that was read; `spec` has views into the rest.
struct WorkflowText {
  WorkflowSpec spec;
  std::deque<Envelope> jobs;
  std::deque<std::string> texts;
  /// members that mean nothing, by their places ("$.steps[1].dependson"); most are misspelt
  std::vector<std::string> unknown;
  WorkflowText() = default;
  WorkflowText(WorkflowText&&) = default;
  WorkflowText& operator=(WorkflowText&&) = default;
  WorkflowText(const WorkflowText&) = delete;
};

/// Chain, group and batch by `type`, nested in any order; without a type, steps with `depends_on`.
/// `priority`, `queue` and `meta.tenant_id` of the whole, at its top or in `options`, and of any
/// part that is no job, hold for the jobs that say nothing themselves. Errors: kInvalid; `subject`
/// is the place ("$.steps[2].args"), or "json".
Result<WorkflowText> parse_workflow(std::string_view json, std::uint64_t now_ms);

/// The member `workflow` of a job that is enqueued: {"chain": [...]}, {"group": [...]},
/// {"batch": {"jobs": [...], "callbacks": {...}}}. The job comes first, and what follows inherits
/// its priority, queue and tenant.
Result<WorkflowText> workflow_of_job(std::string_view job, std::uint64_t now_ms);

/// The members of a workflow, its parts and steps that mean something, but for those of jobs.
std::span<const std::string_view> workflow_members();

/// What clients know a part by as long as the workflow is there: its name, else of a callback when
/// it is called ("on_failure"), else its place among the parts that are no callbacks ("step-2").
std::string workflow_part_id(const WorkflowStep& part, std::size_t index);

/// The workflow as clients receive it, with the state of each part.
std::string print_workflow(const WorkflowInfo& workflow);

}  // namespace ojs_shm
