// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/workflows/workflow_progress.hpp"

namespace ojs_shm::engine {

/// How a workflow comes into being, and what becomes of it (workflow_create.cpp).
class Workflows : public WorkflowProgress {
 public:
  using WorkflowProgress::WorkflowProgress;

  /// Whole or not at all. Roots are admitted to their queues; a queue without room refuses. One
  /// that has lived elsewhere goes on from where it stood.
  Outcome create(NewWorkflow& workflow, JobId& id);

  // ---- after a death
  /// A member that the lane was filling and that had ended elsewhere.
  bool ended_before(const JobRecord& job) const;
  void publish_ended(std::uint32_t slot);

 private:
  Outcome fill_members(NewWorkflow& workflow, std::uint32_t head,
                       std::vector<std::uint32_t>& slots);
  Outcome fill_member(NewWorkflow& workflow, std::uint32_t head, std::uint16_t member,
                      std::uint64_t now, std::vector<std::uint32_t>& slots);
  Outcome write_head(const NewWorkflow& workflow, std::uint32_t slot);
  Outcome charge_root(const NewJob& spec, std::uint32_t slot, bool past);
};

}  // namespace ojs_shm::engine
