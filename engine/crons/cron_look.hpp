// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/tables/job_look.hpp"
#include "engine/tables/store.hpp"

// Reading crons. Never writes; the segment may be damaged.

namespace ojs_shm::engine {

/// The numbers of a cron, as they were at one instant.
struct CronFacts {
  CronControl control;
  std::uint64_t next = 0, last = 0, runs = 0, skips = 0, created_at = 0;
  JobId last_job;
};
CronFacts read_facts(const CronRecord& record);
/// The same, not torn unless a stopped process is in the middle of a change.
CronFacts look_at_cron(const Store& store, std::uint32_t at);

/// The texts of a cron, which its template keeps where a job has its result.
struct CronTexts {
  std::string name, expression, timezone, description;
  std::string encode() const;
  static CronTexts decode(std::string_view bytes);
};

/// What a cron's jobs are made from: a job that is none. Its annex says whether they are unique,
/// its `expires_at` how long they live, its `attempt` one more than their own rate of ageing.
struct CronTemplate {
  Snapshot job;
  CronTexts texts;
};
/// Nothing when the slot has none, or it is damaged.
std::optional<CronTemplate> read_template(const Store& store, std::uint32_t slot, bool body = true);

/// The record of the cron of that name; kNoIndex: none.
std::uint32_t find_cron(const Store& store, std::string_view name);
/// The name of the cron that made the job, while there is that cron; else empty.
std::string cron_of(const Store& store, const NewAnnex& annex);

}  // namespace ojs_shm::engine
