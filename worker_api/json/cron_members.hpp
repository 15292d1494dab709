// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

/// The members of a cron, beside those of its job.
namespace ojs_shm::json {

/// When it fires: one of them, or the same in each.
inline constexpr std::array<std::string_view, 3> kCronTimes = {"cron", "expression", "schedule"};
inline constexpr std::array<std::string_view, 6> kCronMembers = {
    "name", "timezone", "overlap_policy", "enabled", "description", "job_template"};
/// What the system says of a cron: a client that sends one back as it received it changes nothing.
inline constexpr std::array<std::string_view, 9> kCronManaged = {
    "id",         "last_run_at", "next_run_at", "run_count",  "skipped_count",
    "created_at", "updated_at",  "status",      "last_job_id"};

}  // namespace ojs_shm::json
