// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/tables/layout.hpp"

// When a job ends by itself. A plain job does so at its expires_at, while it waits to begin. One
// with times of its own (kOwnTimes) has up to three ends, and the earliest counts:
//
//   expires_at      while it is scheduled or available
//   enqueue_ttl     until an attempt has begun; also while it is pending
//   total_timeout   until it has ended, in whatever state
//
// JobRecord::expires_at is always the earliest of those that hold while it is scheduled or
// available, so that a fetch compares one word.

namespace ojs_shm::engine {

/// Why a job ended by itself before an attempt could end it. Stands in the place of its previous
/// state (Policy), whose states end at 9, an unborn job's mark (JobRecord::unborn).
enum class TimeUp : std::uint8_t { kExpired = 0, kEnqueueTtl = 14, kTotalTimeout = 15 };

/// The earlier of two times, where 0 is never.
constexpr std::uint64_t earlier(std::uint64_t one, std::uint64_t other) {
  if (one == 0 || other == 0) return one | other;
  return one < other ? one : other;
}

/// Unix ms, 0: never.
inline std::uint64_t seconds_after_birth(const JobRecord& job, std::uint32_t seconds) {
  return seconds == 0 ? 0 : job.created_at.get() + std::uint64_t{seconds} * 1000;
}
inline std::uint64_t enqueue_ttl_end(const JobRecord& job) {
  return job.timed() ? seconds_after_birth(job, job.own_times().enqueue_ttl_s.get()) : 0;
}
inline std::uint64_t total_end(const JobRecord& job) {
  return job.timed() ? seconds_after_birth(job, job.own_times().total_timeout_s.get()) : 0;
}

/// When a job in that state of a slot ends by itself if it stays in it; Unix ms, 0: never.
inline std::uint64_t end_in(const JobRecord& job, unsigned state) {
  if (state == kSlotAvailable || state == kSlotScheduled) return job.expires_at.get();
  if (!job.timed()) return 0;
  return state == kSlotPending ? earlier(enqueue_ttl_end(job), total_end(job)) : total_end(job);
}

/// Why it ends there.
inline TimeUp why_in(const JobRecord& job, unsigned state) {
  if (!job.timed()) return TimeUp::kExpired;
  const std::uint64_t end = end_in(job, state);
  if (end == total_end(job)) return TimeUp::kTotalTimeout;
  const bool may_expire = state == kSlotAvailable || state == kSlotScheduled;
  return may_expire && end == job.own_times().expires_at.get() ? TimeUp::kExpired
                                                               : TimeUp::kEnqueueTtl;
}

/// Writes the earliest end of a timed job that this lane holds exclusively.
inline void set_end(JobRecord& job, bool has_begun) {
  const std::uint64_t ttl = has_begun ? 0 : enqueue_ttl_end(job);
  // NO CRASH POINT: the slot is held exclusively, and a repair that comes here again writes it too
  job.expires_at.set(earlier(earlier(job.own_times().expires_at.get(), ttl), total_end(job)));
}

/// How long an attempt may run, ms; 0: no limit.
inline std::uint64_t longest_run_ms(const JobRecord& job) {
  const std::uint64_t timeout = job.timeout_ms.get();
  if (timeout == 0 || !job.timed()) return timeout;
  return timeout + std::uint64_t{job.own_times().grace_s.get()} * 1000;
}

}  // namespace ojs_shm::engine
