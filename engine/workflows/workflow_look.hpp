// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>

#include "engine/tables/store.hpp"
#include "engine/workflows/workflow.hpp"

// Reading workflows. Never writes; the segment may be damaged.

namespace ojs_shm::engine {

/// Jobs of a workflow, as its head counts them.
inline unsigned members_of(const JobRecord& head) {
  const unsigned members = head.attempt.get();
  return members < kMostMembers ? members : kMostMembers;
}
bool all_done(const JobRecord& head);
/// How many have not ended.
unsigned members_left(const JobRecord& head);

/// The head's control word while it is the head that the member means; else a free slot's.
Control head_of(const Store& store, const Membership& member);
/// Whether a finished job's slot must stay as it is: its workflow runs, or does not yet know how
/// the job ended.
bool kept_for_workflow(const Store& store, const JobRecord& job);
/// Whether a job has ended and its workflow does not know how.
bool is_unmarked(const Store& store, const JobRecord& job);
/// Whether a slot that no batch lists may be used again.
bool reusable(const Store& store, const JobRecord& job, Control control);
/// Whether a member's workflow still runs: else it is not tried again.
bool workflow_runs(const Store& store, const JobRecord& member);
/// Whether the process that enqueues a member has not yet enqueued its workflow.
bool unborn(const Store& store, const JobRecord& job);

/// The slot of the head of that id; kNoIndex when there is none.
std::uint32_t find_workflow(const Store& store, JobId id);
/// The id of a member's workflow, if it is still known.
std::optional<JobId> workflow_of(const Store& store, const Membership& member);

/// Reads the graph of a head; false when it is gone or damaged.
bool read_graph(const Store& store, std::uint32_t head, std::uint32_t generation,
                WorkflowGraph& graph);

/// A copy of a workflow.
struct WorkflowSnapshot {
  std::uint32_t slot = 0, generation = 0;
  JobId id;
  WorkflowState state = WorkflowState::kRunning;
  std::uint64_t created_at = 0, started_at = 0, finished_at = 0;
  std::array<std::uint64_t, WorkflowBits::kWords> done{}, failed{};
  WorkflowGraph graph;
  std::string kind, description;
  bool is_done(unsigned member) const { return (done[member / 64] >> member % 64 & 1) != 0; }
  bool has_failed(unsigned member) const { return (failed[member / 64] >> member % 64 & 1) != 0; }
};
std::optional<WorkflowSnapshot> snapshot_workflow(const Store& store, std::uint32_t slot);
/// The slot in which a member lives now; kNoIndex when it waits for other members, or is gone.
std::uint32_t slot_of_member(const Store& store, const WorkflowSnapshot& workflow,
                             std::uint16_t member);

}  // namespace ojs_shm::engine
