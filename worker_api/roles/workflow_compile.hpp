// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <ojs_shm/result.hpp>
#include <ojs_shm/workflow.hpp>

#include "engine/workflow.hpp"
#include "worker_api/roles/workflow_tree.hpp"

namespace ojs_shm::internal {

/// A workflow as the engine takes it: jobs, and which waits for which.
struct CompiledWorkflow {
  std::vector<JobSpec> jobs;  ///< with what they inherit; views into the spec
  engine::WorkflowGraph graph;
  std::string description;  ///< WorkflowTree::read() reads it
};

/// Errors: kInvalid, of which `subject` is the place, such as "$.steps[2]".
Result<CompiledWorkflow> compile(const WorkflowSpec& spec);
/// Where a job of a workflow that could be compiled stands: "$.steps[1].jobs[0]".
std::string place_in(const WorkflowSpec& spec, std::size_t member);

}  // namespace ojs_shm::internal
