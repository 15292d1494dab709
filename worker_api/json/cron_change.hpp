// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "worker_api/json/cron_text.hpp"

namespace ojs_shm {

/// The cron with the members of `changes` instead of its own. What is said of the job (type, args,
/// meta, options, or an option at the top) keeps the rest of the job; a job_template replaces it.
/// Errors: as parse_cron().
Result<std::unique_ptr<CronText>> parse_cron_changes(const CronInfo& cron, std::string_view changes,
                                                     std::uint64_t now_ms);

}  // namespace ojs_shm
