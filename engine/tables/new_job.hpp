// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/rules/retry.hpp"
#include "engine/rules/uuid.hpp"
#include "engine/tables/layout.hpp"

// What operations take in, and how they end.

namespace ojs_shm::engine {

/// How an operation ended.
enum class Outcome : std::uint8_t {
  kOk,
  kEmpty,      ///< nothing to fetch
  kQueueFull,  ///< the bound refused it
  kMustWait,   ///< the bound has no room for it yet; only for a caller that is ready to wait
  kMustDrop,   ///< room has to be made for it first: enqueue_batch() does that
  /// as many tenants of bounded queues have jobs waiting as there are accounts for them
  kNoAccounts,
  kNoTickets,  ///< as many wait for room as there are places for them
  kNoSlots,    ///< pools that are exhausted, one by one
  kNoBlocks,
  kNoRings,  ///< levels
  kNoChunks,
  kNoKeys,
  kNoQueues,
  kNoParts,        ///< sets of rings for shards and rates of ageing
  kNoLimits,       ///< keys of limits, or permits
  kLimitsMoved,    ///< keys were given up since the job's was looked up: look it up again
  kTooManyRates,   ///< the queue holds eight other rates of ageing
  kRateOfShard,    ///< a sharded queue ages at one rate
  kNoPools,        ///< all pools of workers are taken
  kNoCrons,        ///< all records of crons are taken
  kNoWorkers,      ///< all records of workers are taken
  kOtherPool,      ///< the worker is registered in another pool
  kQueueIsolated,  ///< a queue belongs to another pool that is isolated
  kDuplicate,
  kClash,        ///< another job of its unique key is in the way
  kMustReplace,  ///< other jobs have to go for it: enqueue_batch() does that
  kRivalMoved,   ///< a job that it replaces was taken meanwhile: look again
  kTooLarge,
  kNotFound,
  kWrongState,
  kLost,  ///< no longer held under that word
  kBusy,  ///< a stopped process holds the slot in the middle of a change
};

/// What enqueue needs to know of a job. Opaque bytes; everything is already validated.
struct NewJob {
  std::string_view type = {}, args = {}, extra = {};
  std::uint32_t queue = 0;
  std::uint8_t rank = 0;
  std::optional<JobId> id = {};
  std::uint64_t scheduled_at = 0, expires_at = 0;  ///< Unix ms
  std::uint32_t timeout_ms = 0, lease_ms = 0;
  bool pending = false;
  RetryPolicy retry = {};
  std::optional<std::uint8_t> age_rate = {};  ///< its own; else its queue's
  std::uint64_t tenant = 0;                   ///< hash_tenant()
  std::uint16_t limit = 0;                    ///< its key + 1; 0: none
  std::uint64_t limits_turn = 0;              ///< Actor::limits_turn() before the key was looked up
  const NewAnnex* annex = nullptr;            ///< none: an ordinary job
  NewTimes times = {};

  /// Policy, but for its part.
  std::uint32_t policy() const {
    return std::uint32_t{retry.max_attempts} | static_cast<std::uint32_t>(retry.backoff) << 16 |
           (retry.jitter ? Policy::kJitter : 0) | (retry.dead_letter ? Policy::kDeadLetter : 0) |
           (id ? Policy::kForeignId : 0) | (pending ? Policy::kBornPending : 0);
  }
  std::size_t size() const { return type.size() + args.size() + extra.size(); }
  /// Whether it is all that plain.cpp knows: plain(), for now and for ever, and of no ageing of its
  /// own.
  bool straight() const {
    return plain() && (scheduled_at | expires_at) == 0 && !pending && !age_rate;
  }
  /// Whether it fits into a slot and into no index.
  bool plain() const {
    return !id && tenant == 0 && limit == 0 && annex == nullptr && !times.any() &&
           size() <= kInlineBytes;
  }
  /// Whether it is all that plain.cpp knows of unique jobs: straight(), but for its key.
  bool straight_but_unique() const {
    return annex != nullptr && annex->bits == kUnique && size() <= kInlineBeside &&
           (scheduled_at | expires_at | tenant | limit) == 0 && !id && !pending && !age_rate &&
           !times.any();
  }
  bool unique() const { return annex != nullptr && (annex->bits & kUnique) != 0; }
  std::size_t inline_room() const {
    return engine::inline_room((annex == nullptr ? 0 : annex->bits) |
                               (times.any() ? kOwnTimes : 0));
  }
};

/// What a straight() job has of its own; the rest is its form.
struct PlainJob {
  std::string_view type, args, extra;
  std::uint32_t queue;
  std::uint8_t rank;
  static constexpr std::uint64_t scheduled_at = 0, expires_at = 0;
  std::size_t size() const { return type.size() + args.size() + extra.size(); }
  OJS_SHM_INLINE static PlainJob of(const NewJob& job) {
    return {job.type, job.args, job.extra, job.queue, job.rank};
  }
};

/// What the records of all jobs of one kind have in common, in words of the record.
struct JobForm {
  std::uint64_t times, policy, pauses, growth;
  JobForm() = default;
  /// Of jobs in that part of their queue.
  OJS_SHM_INLINE explicit JobForm(const NewJob& job, unsigned part = 0)
      : times(shm::both(job.timeout_ms, job.lease_ms)),
        policy(shm::both(shm::kNoIndex, job.policy() | Policy::in_part(part))),
        pauses(shm::both(job.retry.initial_ms, job.retry.max_ms)),
        growth(std::bit_cast<std::uint32_t>(job.retry.coefficient)) {}
};

}  // namespace ojs_shm::engine
