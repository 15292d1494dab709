// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/tables/few.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/patience.hpp"
#include "engine/tables/store.hpp"

// Unique jobs. A job's key stands in the index of ids and keys from before it is published until
// its slot is used again; the slot's state says whether it is in the way of another, so ending a
// job writes nothing. An enqueue has the key to itself from the look that found nothing in its way
// until it publishes its slot: of two enqueues, one waits. Source: ojs-unique-jobs.

namespace ojs_shm::engine {

/// What a new job does with one that is in its way.
enum class OnConflict : std::uint8_t { kReject, kIgnore, kReplace, kReplaceExceptSchedule };

/// A job's own policy: 7..0 states in which another is in its way, a bit for each JobState
/// 9..8 OnConflict  10 may raise the other's priority  63..16 for how long from its creation others
/// mind it, ms (0: without end)
struct Uniqueness {
  std::uint64_t word = 0;
  static constexpr std::uint8_t kLive = 0b10'1111;  ///< the five states that are not final
  static constexpr std::uint64_t kForEver = ~0ULL;
  static constexpr Uniqueness make(std::uint8_t states, OnConflict conflict, bool raises,
                                   std::uint64_t period_ms) {
    return {states | static_cast<std::uint64_t>(conflict) << 8 | std::uint64_t{raises} << 10 |
            period_ms << 16};
  }
  constexpr bool minds(JobState state) const {
    return (word >> static_cast<unsigned>(state) & 1) != 0;
  }
  constexpr std::uint8_t states() const { return static_cast<std::uint8_t>(word); }
  constexpr OnConflict on_conflict() const { return static_cast<OnConflict>(word >> 8 & 3); }
  constexpr bool replaces() const { return on_conflict() >= OnConflict::kReplace; }
  constexpr bool raises() const { return (word >> 10 & 1) != 0; }
  constexpr std::uint64_t period_ms() const { return word >> 16; }
  /// Until when a job that was created then is minded.
  constexpr std::uint64_t end(std::uint64_t created_at) const {
    return period_ms() == 0 ? kForEver : created_at + period_ms();
  }
};

struct UniqueKey {
  std::uint64_t hi = 0, lo = 0;
  friend constexpr auto operator<=>(const UniqueKey&, const UniqueKey&) = default;
};
inline UniqueKey key_of(const NewAnnex& annex) { return {annex.key_hi, annex.key_lo}; }
inline UniqueKey key_of(const Annex& annex) { return {annex.key_hi.get(), annex.key_lo.get()}; }
inline bool is_unique(const JobRecord& job) { return (job.signals.load() & kUnique) != 0; }

/// Into a slot that is being filled; the bit that says so comes last.
inline void write_key(const NewAnnex& spec, JobRecord& job) {
  Annex& annex = job.annex();
  annex.key_hi.set(spec.key_hi);
  annex.key_lo.set(spec.key_lo);
  annex.uniqueness.set(spec.uniqueness);
  // NO CRASH POINT: the slot is held exclusively
  job.signals.store(kUnique, shm::Point::kNone);
}

/// Whether new jobs of its key mind a job that has ended so: then its slot is kept, as a dead
/// letter's, until its period is over.
inline bool is_minded(const JobRecord& job, unsigned finished) {
  return is_unique(job) && Uniqueness{job.annex().uniqueness.get()}.minds(job_state(finished));
}
inline std::uint64_t minded_until(const JobRecord& job) {
  return Uniqueness{job.annex().uniqueness.get()}.end(job.created_at.get());
}

/// A job that is about to end: until when its slot is kept for its key, and in which of its lives.
struct Kept {
  std::uint64_t until = 0;  ///< 0: it is not
  std::uint32_t generation = 0;
};
inline Kept kept_for(const JobRecord& job, unsigned finished) {
  return is_minded(job, finished) ? Kept{minded_until(job), job.generation.get()} : Kept();
}

/// The job that was in the way of a new one.
struct Clash {
  JobId id;
  JobState state = JobState::kAvailable;
};

/// What an enqueue of unique jobs met.
struct Conflicts {
  Clash clash;                ///< after kClash; no id: one of the same batch
  std::size_t at = 0;         ///< and which of the batch met it
  std::vector<bool> ignored;  ///< of a batch: those that are not new, but were there already
};

/// A job that a new one replaces, as it was found.
struct Rival {
  std::uint32_t slot = 0;
  Control found;
  /// of a batch, for the first of those that a job replaces: that job's queue, where it is counted
  std::uint32_t by = kNoIndex;
};
using Rivals = Short<Rival>;

/// How a new job looks at the others of its key. After a look: what is in its way, or what it
/// replaces. What its own lane has in hand for it, the jobs that its queue drops for it, is not in
/// its way: they end when it is committed, as if they had been dropped behind it.
class KeyLook final : public shm::KeyIndex::Carries {
 public:
  KeyLook(const Store& store, UniqueKey key, Uniqueness wish, std::uint64_t now, std::uint32_t lane)
      : store_(store), key_(key), wish_(wish), now_(now), lane_(lane) {}
  /// Whether the job in the slot keeps the new one out, now or for the moment.
  shm::KeyIndex::Standing operator()(std::uint32_t slot) const override;
  bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const override {
    return carries_any(store_, slot, fingerprint);
  }
  unsigned patience() const override { return kPatience; }
  void begin() const override { waits_ = false, seen_.clear(), rivals_.clear(); }
  /// Another is in the middle of something: look again.
  bool waits() const { return waits_; }
  const Clash& clash() const { return clash_; }
  const Rivals& rivals() const { return rivals_; }
  /// Slots whose jobs need no entry any more: of those that have ended in the same state the one
  /// that is minded longest speaks for all.
  std::vector<std::uint32_t> superfluous() const;
  bool saw_several() const { return seen_.size() > 1; }  ///< else none is

 private:
  struct Seen {  // not cleared: a look adds whole ones
    std::uint32_t slot;
    unsigned state;
    bool stays;  ///< until the end of its period, though it has ended
    std::uint64_t end, created;
  };
  const Store& store_;
  UniqueKey key_;
  Uniqueness wish_;
  std::uint64_t now_;
  std::uint32_t lane_;
  mutable bool waits_ = false;
  mutable Clash clash_;
  mutable Few<Seen, 4> seen_;
  mutable Rivals rivals_;
};

}  // namespace ojs_shm::engine
