// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/workflow.hpp>

#include "worker_api/simulation/simulation.hpp"

/// The workflows of a trace: which arrivals belong together, and which come after which. Pure
/// functions; thread-safe.
namespace ojs_shm {

/// The jobs that a job of a workflow came after, in the order of the steps: the last jobs that ran
/// of each step before it. A step that never ran stands for those before itself.
std::vector<std::string> jobs_before(const WorkflowInfo& workflow, std::string_view job);

/// Arrivals that name one workflow are one, and those that come after each other are in one.
class TraceWorkflows {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Errors: kInvalid, for arrivals that come after each other in a circle, or after an arrival
  /// that is not there, for a workflow of too many jobs, and for a unique job in one.
  static Result<TraceWorkflows> of(const Trace& trace);

  /// The arrivals of each, as numbers of the trace, in its order.
  const std::vector<std::vector<std::uint32_t>>& all() const { return all_; }
  /// kNone: it arrives by itself.
  std::uint32_t workflow_of(std::uint32_t arrival) const { return workflow_[arrival]; }
  const std::vector<std::uint32_t>& followers(std::uint32_t arrival) const {
    return followers_[arrival];
  }

 private:
  std::vector<std::vector<std::uint32_t>> all_, followers_;
  std::vector<std::uint32_t> workflow_;
};

}  // namespace ojs_shm
