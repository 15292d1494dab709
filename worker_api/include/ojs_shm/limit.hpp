// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/export.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

/// What happens to a job that its limit holds back.
enum class OnLimit : std::uint8_t {
  kWait = 0,        ///< it stays available, and goes when the limit allows
  kReschedule = 1,  ///< it is scheduled for when the limit is expected to allow it
  kDrop = 2,        ///< it is discarded
};

/// How many jobs may run at once, and how fast they may begin. All members that are set hold.
/// Source: ojs-rate-limiting 5 and 6.
struct RateLimit {
  /// active at once, at most 8192; 0: none; unset: any number
  std::optional<std::uint32_t> concurrency = {};
  std::uint32_t rate = 0, rate_period_ms = 0;  ///< begin in each window; 0: any number
  /// any period of that length counts, and `rate` is at most 8192
  bool sliding = false;
  /// begin in a period, evenly spaced; at most 65535; 0: unspaced
  std::uint32_t throttle = 0, throttle_period_ms = 0;
  std::uint32_t burst = 1;  ///< so many may begin at once after a pause
  OnLimit on_limit = OnLimit::kWait;

  bool operator==(const RateLimit&) const = default;
};

/// A limit that a job has of its own. Jobs with the same key share it; the limit of the job that
/// was enqueued last holds, unless an operator has set one. A job with only a key takes it as it
/// is.
struct JobLimit {
  std::string key;  ///< 1..256 bytes, `^[a-zA-Z0-9][a-zA-Z0-9._:-]*$`
  RateLimit limit = {};
  /// of a limit that an operator sets: when it is taken back, Unix time; 0: never
  std::uint64_t expires_at_ms = 0;
};

/// A limit as it stands.
struct LimitInfo {
  std::string key;
  RateLimit limit;
  bool by_operator = false;         ///< what jobs bring does not change it
  std::uint64_t expires_at_ms = 0;  ///< when that ends, Unix time; 0: when an operator says so
  std::uint32_t active = 0;         ///< jobs of it at work
  std::uint32_t waiting = 0;        ///< jobs that it holds back
  std::uint32_t begun = 0;          ///< in the present window
  /// when window, throttle and a closed key let the next begin, Unix time; 0: now
  std::uint64_t next_at_ms = 0;
  std::uint64_t closed_until_ms =
      0;  ///< by a job's report (Failure::rate_limit_until_ms); 0: it is open
  std::uint64_t exceeded_total = 0;  ///< how often it held a job back
  std::uint64_t released_total = 0, dropped_total = 0;
};

/// Reads `{"key", "concurrency", "rate": {"limit", "period", "window"}, "throttle": {"limit",
/// "period", "burst"}, "on_limit"}`. Errors: kInvalid; `subject` is the member. With `key_given`
/// the limit is an operator's: `key` may be left out, and there may be `expires_at`, a time of RFC
/// 3339.
OJS_SHM_API Result<JobLimit> parse_limit(std::string_view json, bool key_given = false);
/// One JSON object with the rule and its counts; parse_limit() does not read it.
OJS_SHM_API std::string print_limit(const LimitInfo& limit);

}  // namespace ojs_shm
