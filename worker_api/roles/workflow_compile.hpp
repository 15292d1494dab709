// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <ojs_shm/result.hpp>
#include <ojs_shm/workflow.hpp>

#include "engine/workflows/workflow.hpp"
#include "worker_api/roles/workflow_tree.hpp"

namespace ojs_shm::internal {

/// A workflow as the engine takes it: jobs, and which waits for which.
struct CompiledWorkflow {
  std::vector<JobSpec> jobs;      ///< with what they inherit; views into the spec and `texts`
  std::deque<std::string> texts;  ///< of what they inherit
  engine::WorkflowGraph graph;
  std::string description;            ///< WorkflowTree::read() reads it
  std::vector<engine::NewJob> ready;  ///< the jobs as read_members() read them
  void clear() {
    jobs.clear();
    texts.clear();
    graph.members.clear();
    graph.sets.clear();
    graph.result = engine::WorkflowGraph::kNothing;
    description.clear();
    ready.clear();
  }
};

/// Errors: kInvalid, of which `subject` is the place, such as "$.steps[2]".
Status compile(const WorkflowSpec& spec, CompiledWorkflow& out);
/// Where a job of a workflow that could be compiled stands: "$.steps[1].jobs[0]".
std::string place_in(const WorkflowSpec& spec, std::size_t member);

}  // namespace ojs_shm::internal
