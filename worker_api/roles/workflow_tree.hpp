// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/workflow.hpp>

#include "engine/tables/store.hpp"
#include "engine/workflows/workflow.hpp"

namespace ojs_shm::internal {

/// How a workflow is built from its jobs: what its head keeps beside the graph, for people and for
/// the results that a job gets from those before it. The text is JSON.
struct WorkflowTree {
  WorkflowKind kind = WorkflowKind::kJob;
  std::uint16_t member = 0;  ///< of a job: its number in the graph
  std::string name, type, queue;
  std::string tenant;    ///< of the whole, if all its jobs have the same
  std::string callback;  ///< of a callback: when it is called
  StepCondition when = StepCondition::kSuccess;
  std::vector<std::string> depends_on;
  std::vector<WorkflowTree> steps;  ///< callbacks at the end

  /// Nothing of it may be believed.
  static std::optional<WorkflowTree> read(std::string_view json);
};

/// Writes the text of a tree, part by part. Jobs are numbered in this order; what a job has in
/// common with the job before it is left out.
class TreeWriter {
 public:
  explicit TreeWriter(std::string& out) : out_(out) {}
  /// A part; job() ends a part that is a job, open() and close() go around the parts of any other.
  void begin(const WorkflowSpec& spec, std::string_view callback = {});
  void job(std::string_view type, std::string_view queue);
  void open();
  void close() { out_ += "]}"; }

 private:
  void member(std::string_view name);
  std::string& out_;
  std::string_view type_, queue_;
};

/// The results of what a member comes after, a JSON array in the order of the steps: those of the
/// steps before it in its chain, of all jobs of a batch for its callbacks, of what a step of a
/// graph depends on. "" when the workflow is not known any more.
std::string parent_results(const engine::Store& store, const engine::Membership& member);

/// Nothing when the head is gone.
std::optional<WorkflowInfo> workflow_info(const engine::Store& store, std::uint32_t head,
                                          bool results);

}  // namespace ojs_shm::internal
