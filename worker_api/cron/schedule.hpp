// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ojs_shm/result.hpp>

#include "worker_api/cron/expression.hpp"
#include "worker_api/cron/zone.hpp"

namespace ojs_shm {

/// When a cron fires: an expression on the wall clocks of a zone.
class CronSchedule {
 public:
  /// Errors: kInvalid; `subject` is "expression" or "timezone".
  static Result<CronSchedule> read(std::string_view expression, std::string_view timezone);

  /// The first time after `time_ms` at which it fires (Unix time in milliseconds). A time that
  /// clocks jump over does not come, and a time that they show twice comes once, the first time.
  /// "@every" counts from `time_ms`. Nothing: not in the next forty years.
  std::optional<std::int64_t> next_after(std::int64_t time_ms) const;

 private:
  std::optional<std::int64_t> next_on(std::chrono::sys_days day, std::int64_t from_second,
                                      std::int64_t after) const;

  CronExpression expression_;
  Zone zone_;
};

}  // namespace ojs_shm
