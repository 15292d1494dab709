// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/moves/report.hpp"
#include "engine/moves/state.hpp"
#include "engine/tables/new_job.hpp"
#include "engine/tables/own_times.hpp"

namespace ojs_shm::engine {

/// A job that has lived elsewhere, as it shall stand here. Times in Unix ms, 0: none.
struct PastJob {
  /// `scheduled_at` is when it was, or is, to become available
  NewJob job;
  /// active means: not held by any handle here, so it becomes available
  JobState state = JobState::kAvailable;
  std::optional<JobState> previous;  ///< of a cancelled one
  std::uint16_t attempt = 0;
  bool expired = false;
  TimeUp time_up = TimeUp::kExpired;  ///< of an expired one
  bool dead = false;                  ///< stands in the dead letters
  std::uint64_t fence = 0;            ///< its fences go on behind this one
  std::uint64_t created_at = 0, available_at = 0, started_at = 0, finished_at = 0;
  std::uint64_t retry_at = 0;  ///< of a retryable one
  std::uint32_t retry_delay_ms = 0;
  std::optional<double> progress;
  ReportTexts report = {};
  /// `errors` as encode_error() writes them, one behind the other
  std::string_view result, errors;
};

}  // namespace ojs_shm::engine
