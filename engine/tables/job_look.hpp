// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/moves/report.hpp"
#include "engine/tables/store.hpp"
#include "shm/key_index.hpp"

// Jobs, for reading: where one stands, and copies of them.

namespace ojs_shm::engine {

/// A recorded failure: a header and four texts after it.
/// What becomes of a job after its last attempt.
enum class Exhaustion : std::uint8_t { kByPolicy, kDiscard, kDeadLetter };
struct ErrorEntry {
  std::uint64_t at_ms = 0;
  std::uint16_t attempt = 0;
  bool retryable = true;
  std::string_view code, type, message, details;
  // Not kept with the job.
  Exhaustion exhaustion = Exhaustion::kByPolicy;
  std::uint64_t close_limit_until = 0;  ///< of the job's own limit, Unix ms; 0: it stays open
};
/// Bytes of a message, and of details, that encode_error() keeps.
constexpr std::size_t kLongestErrorText = 16'384;
RetryPolicy retry_of(const JobRecord& job);
/// What the engine itself says of an attempt.
constexpr ErrorEntry own_error(std::uint64_t at_ms, std::uint16_t attempt, bool retryable,
                               std::string_view code, std::string_view message) {
  return {at_ms, attempt, retryable, code, code, message, {}};
}

/// A copy of one job, taken while its control word stood still.
struct Snapshot {
  std::uint32_t slot = 0;
  Control control;
  JobId id;
  std::uint32_t queue = 0, generation = 0;
  std::uint32_t limits = 0;
  WorkerKey worker;  ///< that has it, or had it last; none: it is not registered
  std::uint16_t attempt = 0;
  Policy policy;
  std::uint64_t available_at = 0, deadline = 0, due_at = 0, signals = 0, expires_at = 0,
                created_at = 0, started_at = 0, finished_at = 0, scheduled_at = 0;
  std::uint32_t timeout_ms = 0, lease_ms = 0, retry_delay_ms = 0;
  RetryPolicy retry;
  std::uint32_t type_length = 0, args_length = 0;
  NewAnnex annex;    ///< as far as its bits say
  NewTimes times;    ///< `expires_at` is then the one with which it was enqueued
  std::string body;  ///< type, args, extra
  std::string result;
  std::string errors;  ///< for decode_errors()
  /// what was reported of how far this attempt, or the last one, is
  std::optional<double> fraction;
  ReportTexts report;
  bool waits = false;  ///< for other jobs of its workflow; printed as if it were available
  JobState state() const { return job_state(control.state()); }
};

std::vector<ErrorEntry> decode_errors(std::string_view bytes);
std::string encode_error(const ErrorEntry& entry);

/// The slot that carries the id now, or kNoIndex.
std::uint32_t find_job(const Store& store, JobId id);
/// Whether the id was made in this segment and its slot has been given away since: the job is
/// gone. What an id that a client brought was, or never was, a slot does not remember.
bool gave_away(const Store& store, JobId id);
inline std::uint64_t hash_id(JobId id) {
  std::uint64_t hash = id.hi ^ (id.lo * 0x9E3779B97F4A7C15ULL);
  hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ULL;
  // the low bits choose the place, and a product carries nothing down into them
  return hash ^ hash >> 32;
}
/// A job's copy, or nothing when the slot holds none or would not stand still. Without `texts`,
/// no body and no errors.
std::optional<Snapshot> snapshot(const Store& store, std::uint32_t slot, bool texts = true,
                                 bool waiting = false);

/// Whether an entry of the index with that fingerprint is the slot's: its id's or its unique key's.
bool carries_any(const Store& store, std::uint32_t slot, std::uint64_t fingerprint);
/// Adds what was reported of the job. Another report may take the place of the one that is read:
/// looks again.
void add_report(const Store& store, const JobRecord& job, bool texts, Snapshot& s);

/// For the index of ids that clients brought.
class CarriesId final : public shm::KeyIndex::Carries {
 public:
  CarriesId(const Store& store, JobId id) : store_(store), id_(id) {}
  shm::KeyIndex::Standing operator()(std::uint32_t slot) const override;
  bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const override;
  unsigned patience() const override { return 64; }  // then its caller looks whether it has died

 private:
  const Store& store_;
  JobId id_;
};

}  // namespace ojs_shm::engine
