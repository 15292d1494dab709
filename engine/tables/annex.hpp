// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/layout.hpp"

namespace ojs_shm::engine {

/// What a job has beyond the ordinary: bits of JobRecord::signals. A job that has any of them keeps
/// an Annex at the end of its inline bytes.
constexpr std::uint64_t kUnique = 1ULL << 17,  ///< has a unique key
    kMember = 1ULL << 18,                      ///< belongs to a workflow
    kOfCron = 1ULL << 19,                      ///< made by a cron
    kOwnTimes = 1ULL << 15;                    ///< has OwnTimes
constexpr std::uint64_t kAnnexed = kUnique | kMember | kOfCron | kOwnTimes;
/// Of a job in the hands of a lane whose new job replaces it, and once that is decided
/// (unique.cpp).
constexpr std::uint64_t kRival = 1ULL << 20, kReplaced = 1ULL << 21;
constexpr std::uint64_t kRivalBits = kRival | kReplaced;

/// Written while the slot is filled; each part means something only with its bit.
// NO CRASH POINT: the slot is held exclusively; the record is judged by the control word
struct Annex {
  shm::Plain<std::uint64_t> key_hi, key_lo;  ///< kUnique
  shm::Plain<std::uint64_t> uniqueness;      ///< kUnique: Uniqueness
  /// kMember: the slot of the workflow's head, and which of the lives of that slot
  shm::Plain<std::uint32_t> workflow, workflow_generation;
  shm::Plain<std::uint16_t> node, cron;  ///< kMember: its place in the workflow; kOfCron
  shm::Plain<std::uint32_t> cron_life;   ///< kOfCron: which of the crons of that record
};
static_assert(sizeof(Annex) == 40);

/// What a new job says of its own time beyond `expires_at` and its timeout, in seconds; 0: nothing.
struct NewTimes {
  std::uint32_t enqueue_ttl_s = 0;    ///< from its creation until an attempt begins
  std::uint32_t total_timeout_s = 0;  ///< from its creation until it has ended
  std::uint32_t grace_s = 0;          ///< what an attempt has beyond its timeout
  constexpr bool any() const { return (enqueue_ttl_s | total_timeout_s | grace_s) != 0; }
};

/// Of a job with kOwnTimes, and only there: stands before the Annex. JobRecord::expires_at is then
/// the earliest end of all that holds.
// NO CRASH POINT: the slot is held exclusively; the record is judged by the control word
struct OwnTimes {
  shm::Plain<std::uint64_t> expires_at;  ///< as the job was enqueued; Unix ms, 0: never
  shm::Plain<std::uint32_t> enqueue_ttl_s, total_timeout_s, grace_s, reserved;  ///< as NewTimes
};
static_assert(sizeof(OwnTimes) == 24);

/// Bytes of a body that may stand in a record, and beside an annex.
constexpr std::size_t kInlineBytes = 136, kInlineBeside = kInlineBytes - sizeof(Annex);
/// The same of a job with those bits of kAnnexed.
constexpr std::size_t inline_room(std::uint64_t bits) {
  if ((bits & kAnnexed) == 0) return kInlineBytes;
  return kInlineBeside - ((bits & kOwnTimes) != 0 ? sizeof(OwnTimes) : 0);
}

inline NewTimes read_times(const OwnTimes& times) {
  return {times.enqueue_ttl_s.get(), times.total_timeout_s.get(), times.grace_s.get()};
}

/// What a new job's annex shall say.
struct NewAnnex {
  std::uint64_t bits = 0;  ///< of kAnnexed
  std::uint64_t key_hi = 0, key_lo = 0, uniqueness = 0;
  std::uint32_t workflow = 0, workflow_generation = 0;
  std::uint16_t node = 0, cron = 0;
  std::uint32_t cron_life = 0;
};

inline NewAnnex read_annex(const Annex& annex, std::uint64_t bits) {
  return {bits,
          annex.key_hi.get(),
          annex.key_lo.get(),
          annex.uniqueness.get(),
          annex.workflow.get(),
          annex.workflow_generation.get(),
          annex.node.get(),
          annex.cron.get(),
          annex.cron_life.get()};
}

}  // namespace ojs_shm::engine
