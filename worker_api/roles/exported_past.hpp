// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/job.hpp>

#include "engine/tables/own_times.hpp"

// What an exported job says of its past, in the engine's words.

namespace ojs_shm::internal {

/// Timeouts, its lease, and times of its own.
void take_times(const JobInfo& from, JobSpec& to);
/// Of JobInfo::discard_reason.
engine::TimeUp time_up_of(std::string_view discard_reason);
/// As PastJob::errors has them.
std::string encoded(const std::vector<JobError>& errors);

}  // namespace ojs_shm::internal
