// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/bits.hpp"
#include "shm/layout.hpp"

// Crons: jobs that are enqueued again and again. Offsets only, no behaviour.

namespace ojs_shm::engine {

using shm::Word;

constexpr std::uint32_t kCrons = 256;

/// What a time does that comes while the last job is not finished.
enum class CronOverlap : std::uint8_t { kSkip, kEnqueue, kAllow, kCancelPrevious };

/// 63..48 version, odd while the record changes  47..32 life: how many crons this record has been
/// 27 enabled  26..25 CronOverlap  24 there is a cron  23..0 slot of its template
struct CronControl {
  std::uint64_t word = 0;
  using Version = shm::Field<48, 16>;
  using Life = shm::Field<32, 16>;
  using Enabled = shm::Field<27, 1>;
  using Overlap = shm::Field<25, 2>;
  using There = shm::Field<24, 1>;
  using Template = shm::Field<0, 24>;

  constexpr CronControl() = default;
  constexpr explicit CronControl(std::uint64_t w) : word(w) {}
  constexpr bool there() const { return There::get(word) != 0; }
  constexpr bool enabled() const { return there() && Enabled::get(word) != 0; }
  constexpr CronOverlap overlap() const { return static_cast<CronOverlap>(Overlap::get(word)); }
  constexpr std::uint16_t life() const { return static_cast<std::uint16_t>(Life::get(word)); }
  constexpr std::uint32_t slot() const { return static_cast<std::uint32_t>(Template::get(word)); }
  constexpr bool changing() const { return Version::get(word) % 2 != 0; }
  /// While it changes, and afterwards.
  constexpr CronControl as_changing() const {
    return CronControl(Version::with(word, Version::get(word) | 1));
  }
  constexpr CronControl after_change() const {
    return CronControl(Version::with(word, ((Version::get(word) | 1) + 1) & 0xFFFF));
  }
};

// 0 control  8 next  16 last  24 runs  32 skips  40 created  48 last job
/// A cron. Written by the lane that has CronTable::seat alone.
struct alignas(64) CronRecord {
  Word control;           ///< CronControl. PAIR cron-change
  Word next;              ///< ms; when it fires next; 0: never
  Word last;              ///< ms; when it last enqueued its job; 0: not yet
  Word runs;              ///< jobs that it enqueued
  Word skips;             ///< times at which it enqueued none
  Word created_at;        ///< ms
  Word last_hi, last_lo;  ///< the id of the job that it enqueued last
};
static_assert(sizeof(CronRecord) == 64);

/// What is about to become of a record: 9..8 Kind  7..0 the record. 0: nothing.
struct CronChange {
  std::uint64_t word = 0;
  enum Kind : std::uint64_t {
    kNone,
    kSet,      ///< committed by this word
    kSkipped,  ///< the same: a time passes without a job; 19..16 why
    kFired,    ///< committed by its lane's batch of one job
  };
  static constexpr CronChange of(Kind kind, std::uint32_t record, std::uint64_t why = 0) {
    return {why << 16 | static_cast<std::uint64_t>(kind) << 8 | (record & 0xFF)};
  }
  constexpr Kind kind() const { return static_cast<Kind>(word >> 8 & 3); }
  constexpr std::uint32_t record() const { return static_cast<std::uint32_t>(word & 0xFF); }
  constexpr std::uint8_t why() const { return static_cast<std::uint8_t>(word >> 16 & 15); }
};

/// Why a time passed without a job.
enum class CronSkip : std::uint8_t {
  kOverlap,    ///< its last job is not finished
  kQueueFull,  ///< the bound of its queue, or of its tenant in it
  kDuplicate,  ///< another job has its unique key
  kNoMemory,   ///< a pool of the segment is exhausted
  kDamaged,    ///< a stranger wrote into its template
};

// 0 seat  8 change  16 leaving  24 turn  32 due | 64 staged | 128 record
/// One lane at a time changes crons.
struct alignas(64) CronTable {
  Word seat;     ///< lane + 1 of the lane that changes a cron
  Word change;   ///< CronChange; what `staged` is for
  Word leaving;  ///< 63..32 generation  23..0 slot + 1 of the template that goes with it; 0: none
  Word turn;     ///< counts settings, so that the supervisor looks again
  Word due;      ///< ms; the time that passes with `change`; 0: none, it is set or triggered
  /// the record as it shall be; means nothing before `change` names its place
  CronRecord staged;
  CronRecord record[kCrons];
};
static_assert(sizeof(CronTable) == 128 + kCrons * sizeof(CronRecord));

}  // namespace ojs_shm::engine
