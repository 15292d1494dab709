// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/cron.hpp>

#include "worker_api/json/envelope.hpp"

/// Crons as JSON. Source: ojs-cron 2 and 8; requirements B.4.
namespace ojs_shm {

/// A cron that was read; `spec` has views into the rest.
struct CronText {
  CronSpec spec;
  std::string name, expression, timezone, description;
  Envelope job;
  std::vector<std::string> unknown;  ///< members that mean nothing here, in none of the job's words
  CronText() = default;
  CronText(const CronText&) = delete;
};

/// Its members are `name` (here or in the caller's hands), `cron` or `expression`, `timezone`,
/// `overlap_policy`, `enabled`, `description`; what the job is stands in `job_template`, or beside
/// them. Members that the system manages are ignored. Errors: kInvalid; `subject` is the member, or
/// "json".
Result<std::unique_ptr<CronText>> parse_cron(std::string_view json, std::uint64_t now_ms,
                                             std::string_view name = {});

/// The cron as clients receive it, each member in all its spellings.
std::string print_cron(const CronInfo& cron);

}  // namespace ojs_shm
