// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/limit.hpp>
#include <ojs_shm/unique.hpp>

namespace ojs_shm {

/// A job's id. view() makes its text at the first call; one thread at a time.
struct OJS_SHM_API JobIdText {
  std::uint64_t hi = 0, lo = 0;
  JobIdText() noexcept { text_[0] = '\0'; }
  JobIdText(const JobIdText& other) noexcept : hi(other.hi), lo(other.lo) { text_[0] = '\0'; }
  JobIdText& operator=(const JobIdText& other) noexcept {
    assign(other.hi, other.lo);
    return *this;
  }
  void assign(std::uint64_t new_hi, std::uint64_t new_lo) {
    hi = new_hi, lo = new_lo, text_[0] = '\0';
  }
  /// 36 characters, valid as long as this object.
  std::string_view view() const;
  std::string str() const { return std::string(view()); }

 private:
  mutable char text_[37];  ///< empty until it is made
};

/// The eight states of an Open Job Spec job.
enum class State : std::uint8_t {
  kScheduled = 0,
  kAvailable = 1,
  kPending = 2,
  kActive = 3,
  kCompleted = 4,
  kRetryable = 5,
  kCancelled = 6,
  kDiscarded = 7,
};

/// "scheduled", "available", ...
OJS_SHM_API std::string_view state_name(State state) noexcept;
OJS_SHM_API bool is_terminal(State state) noexcept;

/// How the pause before retry n grows: i*c^(n-1), i*n, i, i*n^c.
enum class RetryBackoff : std::uint8_t {
  kExponential = 0,
  kLinear = 1,
  kConstant = 2,
  kPolynomial = 3
};

/// What happens after a nack. Source: requirements B.2, ojs-retry.
struct Retry {
  std::uint16_t max_attempts = 3;  ///< 0 and 1 both mean: never again
  std::uint32_t initial_ms = 1000;
  std::uint32_t max_ms = 300'000;
  float coefficient = 2.0F;  ///< at least 1
  RetryBackoff backoff = RetryBackoff::kExponential;
  bool jitter = true;        ///< times [0.5, 1.5)
  bool dead_letter = false;  ///< exhausted: keep it in the dead-letter list
};

/// A job to be enqueued. The views need to live only during the call.
struct JobSpec {
  std::string_view type = {};  ///< 1..255 bytes, `^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$`
  /// a JSON array, stored as given; only its two brackets are checked
  std::string_view args = "[]";
  std::string_view queue = "default";  ///< 1..128 bytes, `^[a-z0-9][a-z0-9-.]*$`
  std::string_view id = {};            ///< a UUIDv7 in lower case; empty: the library makes it
  /// empty or a JSON object: meta, tags and the client's own members. Only its meta.tenant_id and
  /// result_ttl are checked
  std::string_view extra = {};
  /// a number of the segment's convention; unset: the type's default, else the convention's
  std::optional<std::int64_t> priority = {};
  std::uint64_t scheduled_at_ms = 0;  ///< Unix time; 0 or past: at once
  std::uint64_t expires_at_ms = 0;    ///< Unix time; 0: never
  std::uint32_t timeout_ms = 0;       ///< longest run of one attempt; 0: no limit
  /// visibility timeout; 0: the segment's default (1,800,000)
  std::uint32_t lease_ms = 0;
  bool pending = false;  ///< wait for activate()
  Retry retry = {};
  /// levels per interval, 0 to 255; unset: its queue's
  std::optional<std::uint32_t> priority_age_rate = {};
  /// nullptr: only the limits on its queue, type and tenant hold
  const JobLimit* limit = nullptr;
  std::string_view tenant = {};  ///< the tenant that owns the job; empty: no tenant
  /// nullptr: the job is not unique
  const JobUnique* unique = nullptr;
  /// how many seconds its result is kept after its end; 0: not stored; -1 or unset: no limit of its
  /// own. Stored in `extra` as `result_ttl`; at most 3,153,600,000
  std::optional<std::int64_t> result_ttl_s = {};
  /// Seconds from its creation within which an attempt must begin, else it is discarded; 0: no
  /// limit.
  /// Source: ojs-timeouts 5.3
  std::uint32_t enqueue_ttl_s = 0;
  /// seconds from its creation within which it must have ended, over all attempts, else it is
  /// discarded; 0: no limit; not below timeout_ms. Source: ojs-timeouts 5.2
  std::uint32_t total_timeout_s = 0;
  /// seconds that an attempt has beyond timeout_ms before it is ended. Source: ojs-timeouts 5.4
  std::uint32_t grace_period_s = 0;
};

/// One recorded failure of a job, oldest first.
struct JobError {
  std::uint16_t attempt = 0;
  std::uint64_t occurred_at_ms = 0;
  std::string code;  ///< such as "visibility_timeout", "holder_died" or the handler's own
  std::string type;
  std::string message;
  std::string details;  ///< empty or JSON
  bool retryable = true;
};

/// The kind of the error: its type, or its code if it has no type.
inline std::string_view error_type(const JobError& error) {
  return error.type.empty() ? error.code : error.type;
}

/// A copy of everything that the segment knows about one job, taken at one instant. Unset times are
/// 0.
struct JobInfo {
  std::string id;
  std::string type;
  std::string queue;
  std::string args;   ///< JSON array
  std::string extra;  ///< empty or JSON object
  State state = State::kAvailable;
  std::int64_t priority = 0;  ///< as stored; ageing does not change it
  std::optional<std::uint32_t> priority_age_rate = {};
  std::uint16_t attempt = 0;  ///< attempts begun
  Retry retry;
  std::uint64_t created_at_ms = 0;
  std::uint64_t enqueued_at_ms = 0;  ///< when it last became available (or was accepted)
  std::uint64_t scheduled_at_ms = 0;
  std::uint64_t expires_at_ms = 0;
  std::uint64_t started_at_ms = 0;
  std::uint64_t completed_at_ms = 0;  ///< completed, and discarded by failure; never by expiry
  std::uint64_t cancelled_at_ms = 0;
  std::uint64_t discarded_at_ms = 0;
  /// discarded: "expired", "enqueue_ttl_expired", "total_timeout" (while it waited), "dropped" (for
  /// want of room, or by its limit before a first attempt) or "failed"; else empty
  std::string discard_reason;
  std::uint64_t next_attempt_at_ms = 0;  ///< retryable
  std::uint32_t retry_delay_ms = 0;      ///< the last delay
  std::uint32_t timeout_ms = 0;
  std::uint32_t lease_ms = 0;
  std::uint32_t enqueue_ttl_s = 0, total_timeout_s = 0,
                grace_period_s = 0;     ///< as JobSpec has them
  std::optional<State> previous_state;  ///< of a cancelled job
  bool dead_letter = false;
  bool cancel_requested = false;
  /// 0..1, negative when none was reported in its last attempt; 1 once it has completed
  double progress = -1.0;
  std::uint64_t fence = 0;  ///< of the present or last attempt
  /// of a unique job: 32 digits, the first half of JobUnique::key(); else empty
  std::string unique_key;
  UniquePolicy unique;  ///< the same: its states, period, on_conflict, raise_priority
  std::string result;   ///< JSON as given to ack; empty: none, or no longer kept
  std::optional<std::int64_t> result_ttl_s = {};  ///< as JobSpec has it
  std::uint64_t result_expires_at_ms =
      0;                       ///< when the result of a completed job expires; 0: not known
  bool result_pruned = false;  ///< completed, and that time has passed
  std::vector<JobError> errors;
  std::string workflow_id = {};     ///< empty: no workflow is known
  std::string worker_id = {};       ///< of the registered worker that holds it; active jobs
  std::string cron_name = {};       ///< of the cron that made it, while that cron exists
  std::string parent_results = {};  ///< of an active job of a workflow: Job::parent_results()
  /// what was reported with `progress`, or empty; data: JSON
  std::string progress_message = {}, progress_data = {};
  std::uint64_t progress_at_ms = 0;  ///< when these were reported; 0: never
  /// JSON: Worker::checkpoint() of any of its attempts; empty: none
  std::string last_checkpoint = {};
};

}  // namespace ojs_shm
