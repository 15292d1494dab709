// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <ojs_shm/events.hpp>

#include "engine/observing/events.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "worker_api/roles/workflow_tree.hpp"

namespace ojs_shm::internal {

/// What an event about a workflow says by itself.
void describe_told_workflow(const engine::EventFacts& facts, Event& event);

/// What has no room in such an event, from the workflow and its jobs. Its graph and its tree never
/// change, so they are read once for the events of a workflow that come one after the other.
class ToldWorkflow {
 public:
  void add_to(Event& event, const engine::Store& store, const engine::EventFacts& facts);

 private:
  bool know(const engine::Store& store, engine::JobId id);
  void add_step(Event& event, const engine::Store& store, std::uint16_t member) const;

  std::optional<engine::WorkflowSnapshot> known_;
  WorkflowTree tree_;
};

}  // namespace ojs_shm::internal
