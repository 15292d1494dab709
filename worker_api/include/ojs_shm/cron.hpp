// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

/// Crons of one segment, and the longest texts of one, in bytes.
inline constexpr std::size_t kMostCrons = 256, kLongestCronName = 255, kLongestCronExpression = 255,
                             kLongestTimezone = 64, kLongestCronDescription = 1024;

/// What a cron does at a time when its last job is not finished: that job waits, runs, or will be
/// retried.
enum class CronOverlap : std::uint8_t {
  kSkip,            ///< only tells an event `cron.skipped`
  kEnqueue,         ///< enqueues the job, which waits until it is finished or given back
  kAllow,           ///< enqueues the job beside it
  kCancelPrevious,  ///< cancels it, and enqueues the job
};
/// "skip", "enqueue", "allow", "cancel_previous"
OJS_SHM_API std::string_view cron_overlap_name(CronOverlap overlap) noexcept;
OJS_SHM_API std::optional<CronOverlap> cron_overlap_by_name(std::string_view name) noexcept;

/// A job to be enqueued again and again. The views need to live only during the call.
struct CronSpec {
  std::string_view name = {};  ///< `^[a-z0-9][a-z0-9-.]*$`; of another cron: replaces it
  /// five or six fields (six begin with seconds), "@hourly" and the like, or "@every 90s":
  /// docs/cron.md
  std::string_view expression = {};
  std::string_view timezone = "UTC";  ///< IANA
  std::string_view description = {};  ///< for readers
  CronOverlap overlap = CronOverlap::kSkip;
  bool enabled = true;
  /// What each time enqueues; with kEnqueue without a limit of its own. It has neither an id nor a
  /// scheduled_at_ms; its expires_at_ms is in ms after that time.
  JobSpec job = {};
};

/// A cron as it is now. Unset times are 0.
struct CronInfo {
  std::string name, expression, timezone, description;
  CronOverlap overlap = CronOverlap::kSkip;
  bool enabled = true;
  std::uint64_t created_at_ms = 0;
  std::uint64_t next_run_at_ms = 0;  ///< 0: it is disabled, or its expression has no next time
  std::uint64_t last_run_at_ms = 0;  ///< when a time or a trigger last enqueued its job
  std::uint64_t run_count = 0, skipped_count = 0;
  std::string last_job;  ///< the id; empty: none yet
  /// What each time enqueues, as the job would be: type, queue, args, extra, priority, retry, ...
  /// Without an id, a state or times.
  JobInfo job;
};

/// The next times after `after_ms` (Unix time), at most `count`; fewer when the expression has no
/// more within the next years. Errors: kInvalid; `subject` is "expression" or "timezone".
OJS_SHM_API Result<std::vector<std::uint64_t>> cron_times(std::string_view expression,
                                                          std::string_view timezone,
                                                          std::uint64_t after_ms,
                                                          std::size_t count);

}  // namespace ojs_shm
