// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <ojs_shm/job.hpp>
#include <ojs_shm/workflow.hpp>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"

namespace ojs_shm::gateway {

/// How far the job is, from 0 to 1; below 0: it has reported none.
double progress_of(const JobInfo& job);

/// The body with the headers of ojs-progress 10.3. `progress` below 0 and a time of 0: none.
Reply with_progress(std::string body, double progress, std::uint64_t reported_at_ms);

/// How far the parts of a workflow are, and all of it. Source: ojs-progress 9.
Reply workflow_progress_reply(Desk& desk, const WorkflowInfo& workflow);

}  // namespace ojs_shm::gateway
