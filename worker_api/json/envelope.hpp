// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>

/// The one place of JSON below the tools: what an Open Job Spec envelope says becomes plain members
/// and opaque text, and a job of the segment becomes an envelope again. Pure functions;
/// thread-safe.
namespace ojs_shm {

/// An enqueue request, understood. Times are Unix milliseconds, 0 where the client said nothing.
struct Envelope {
  std::string type;
  std::string queue = "default";
  std::string id;    ///< empty, or a UUIDv7 in lower case
  std::string args;  ///< the client's array, without white space between tokens
  /// empty, or an object of all that must come back to readers of the job: meta, tags, retry,
  /// unique (where `use_existing` has become `ignore`), and unknown members
  std::string extra;
  std::optional<std::int64_t> priority;  ///< not yet held against a convention
  /// as it was written, when 64 bits do not hold it; then in no range
  std::string vast_priority;
  /// instead of a number: a name that the caller must look up, or refuse
  std::string priority_name;
  std::vector<std::string>
      unknown;  ///< members that mean nothing here ("max_attemps", "options.prio"), kept in `extra`
  std::optional<std::uint32_t> priority_age_rate;
  std::uint64_t scheduled_at_ms = 0;
  std::uint64_t expires_at_ms = 0;
  std::uint32_t timeout_ms = 0;
  std::uint32_t lease_ms = 0;  ///< `visibility_timeout` or `heartbeat_timeout`, the shorter one
  std::uint32_t enqueue_ttl_s = 0, total_timeout_s = 0,
                grace_period_s = 0;  ///< also kept in `extra`
  bool pending = false;
  Retry retry;
  std::optional<JobLimit> limit;         ///< `rate_limit`
  std::string tenant;                    ///< `meta.tenant_id`
  std::optional<JobUnique> unique = {};  ///< also kept in `extra`
  /// asked for in `extra`; the enqueue must grant or refuse it
  bool wants_rate_limit = false;
  bool wants_workflow = false;  ///< as above

  /// Views into this envelope, which must outlive them and stay where it is.
  JobSpec spec() const;
};

/// Whether `priority` may be a name instead of a number: for people, not on the wire.
enum class PriorityNames : std::uint8_t { kRefused, kTaken };

/// Reads an envelope. Every option may stand at the top or in `options`, in any of its spellings;
/// the same option twice with different values is an error. Members that the system manages (state,
/// attempt, ...) are ignored. Relative times count from `now_ms`. Source: ojs-core 5,
/// ojs-json-format, ojs-retry; requirements B.2.
///
/// Errors: kInvalid; `subject` is the member ("priority", "retry.max_attempts"), or "json" when the
/// text is no JSON. kTooLarge: a name or `meta` above its maximum, which is in `bound`.
Result<Envelope> parse_envelope(std::string_view json, std::uint64_t now_ms,
                                PriorityNames names = PriorityNames::kRefused);
/// The same of a text that has passed json::check() already, by itself or as a part of another.
Result<Envelope> parse_checked_envelope(std::string_view json, std::uint64_t now_ms,
                                        PriorityNames names = PriorityNames::kRefused);

/// The members of an envelope that mean something, at the top and in `options`.
std::span<const std::string_view> envelope_members();

/// What `-i` on a command line means: an array is the args, anything else is their only element.
/// Errors: kInvalid.
Result<std::string> args_of_input(std::string_view json);

/// The job as clients receive it; members without a value are left out. Always JSON, whatever a
/// native client or a crash left in the job's texts: what is no JSON is shown as a string.
std::string print_job(const JobInfo& job);
void append_job(std::string& out, const JobInfo& job);

/// `meta.tenant_id` of a job's members; empty: it has none. Nothing: it is not a text.
std::optional<std::string> tenant_in(std::string_view extra);
/// The same of members that were accepted; what is not a text is no tenant.
inline std::string tenant_of(std::string_view extra) { return tenant_in(extra).value_or(""); }
/// The members with that tenant in `meta.tenant_id`; what is no object stays as it is.
std::string with_tenant(std::string_view extra, std::string_view tenant);

/// A job that is not in a segment, as an envelope that parse_envelope() reads as the same job.
std::string print_envelope(const JobSpec& job);

/// Whether the job's own `retry.non_retryable_errors`, which is kept in `extra`, forbids a retry
/// after this error.
bool forbids_retry(std::string_view extra, std::string_view error_type);

inline constexpr std::size_t kMaxMetaBytes = 64 * 1024;

}  // namespace ojs_shm
