// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tables/lane_counters.hpp"
#include "shm/atomics.hpp"
#include "shm/bits.hpp"
#include "shm/layout.hpp"

// Pages that lanes take as they need them: one of waits for each level a lane takes jobs from, one
// of events after the other while events are on. Each has one writer at a time. Offsets
// only, no behaviour.

namespace ojs_shm::engine {

using shm::Plain;
using shm::Word;

/// Waits and runs up to 4^i ms are counted in bucket i, longer ones in the last.
constexpr unsigned kWaitBuckets = 13;

/// owner of a page of waits: 63..32 uses, so that of two lanes that take the same page one fails
/// 31..21 lane + 1, 0: all of them  20 taken  19..8 queue  7..0 rank. 0: free.
struct WaitOwner {
  std::uint64_t word = 0;
  using UseBits = shm::Field<32, 32>;
  using LaneBits = shm::Field<21, 11>;
  static constexpr std::uint64_t kTaken = 1ULL << 20, kKeyMask = (kTaken << 1) - 1;

  constexpr explicit WaitOwner(std::uint64_t w) : word(w) {}
  constexpr WaitOwner(std::uint64_t uses, std::uint32_t lane_plus_one, std::uint32_t key)
      : word(UseBits::put(uses) | LaneBits::put(lane_plus_one) | key) {}
  static constexpr std::uint32_t key_of(std::uint32_t queue, std::uint8_t rank) {
    return static_cast<std::uint32_t>(kTaken | std::uint64_t{queue & 0xFFF} << 8 | rank);
  }
  constexpr std::uint32_t key() const { return static_cast<std::uint32_t>(word & kKeyMask); }
  constexpr bool taken() const { return (word & kTaken) != 0; }
  constexpr std::uint32_t queue() const { return key() >> 8 & 0xFFF; }
  constexpr std::uint8_t rank() const { return static_cast<std::uint8_t>(word); }
  constexpr std::uint32_t lane_plus_one() const {
    return static_cast<std::uint32_t>(LaneBits::get(word));
  }
  constexpr std::uint64_t uses() const { return UseBits::get(word); }
};

// 0 sum  8 counts(13)
/// Waits from one beginning, or runs, by their length.
struct WaitCounts {
  Word sum_ms;
  Word count[kWaitBuckets];
};

// 0 owner  8 from available(14)  128 from enqueue(14)  256 runs(14)
/// How long the jobs of one level waited until this lane took them: since they last became
/// available, and since they were enqueued; and how long those ran whose attempt this lane ended.
/// The three lie in lines of their own.
struct alignas(128) WaitPage {
  Word owner;
  WaitCounts from_available;
  alignas(128) WaitCounts from_enqueue;
  alignas(128) WaitCounts runs;
};
static_assert(sizeof(WaitPage) == 384 && offsetof(WaitPage, from_enqueue) == 128 &&
              offsetof(WaitPage, runs) == 256);

constexpr unsigned kEventsPerPage = 16;

/// The control word of a page of events: 63 a lane writes it  61..48 lane
/// 47..0 turn: which page it is, counted from 1 since the segment was made; turn t lies at t modulo
/// the number of pages.
struct EventPageControl {
  std::uint64_t word = 0;
  using LaneBits = shm::Field<48, 14>;
  using TurnBits = shm::Field<0, 48>;
  static constexpr std::uint64_t kOpen = 1ULL << 63;

  constexpr explicit EventPageControl(std::uint64_t w) : word(w) {}
  constexpr EventPageControl(std::uint32_t lane, std::uint64_t turn)
      : word(kOpen | LaneBits::put(lane) | TurnBits::put(turn)) {}
  constexpr bool open() const { return (word & kOpen) != 0; }
  constexpr std::uint32_t lane() const { return static_cast<std::uint32_t>(LaneBits::get(word)); }
  constexpr std::uint64_t turn() const { return TurnBits::get(word); }
  constexpr EventPageControl closed() const { return EventPageControl(word & ~kOpen); }
  /// What stands in the stamp of the page's i-th event once all of it is there.
  constexpr std::uint64_t stamp(unsigned i) const { return turn() * kEventsPerPage + i + 1; }
};

// 0 stamp  8 sequence  16 kind, rank, time  24 id(16)
// 40 queue, attempt, max attempts, previous rank  48 tag  56 value
/// An event. All but the stamp, the last to be written, means nothing without it.
// NO CRASH POINT: the stamp comes last
struct alignas(64) EventRecord {
  Word stamp;
  Plain<std::uint64_t> sequence;        ///< of its lane, from 1, also over several handles
  Plain<std::uint64_t> kind_rank_time;  ///< 63..56 kind  55..48 rank  47..0 ms
  Plain<std::uint64_t> id_hi, id_lo;    ///< of the job; 0: it is about a queue
  /// 15..0 queue  31..16 attempt  47..32 max attempts  55..48 previous rank, or the state that a
  /// failure led to
  Plain<std::uint64_t> facts;
  Plain<std::uint64_t> tag;    ///< of the job's control word after the change
  Plain<std::uint64_t> value;  ///< what the kind says
};
struct EventPage {
  EventRecord event[kEventsPerPage];
};
static_assert(sizeof(EventRecord) == 64 && sizeof(EventPage) == 1024);

/// The pages that go with so many lanes and slots.
constexpr std::uint32_t wait_pages_for(std::uint32_t lanes) { return lanes * 16; }
constexpr std::uint32_t event_pages_for(std::uint32_t lanes, std::uint32_t slots) {
  return lanes * 2 + slots / 256;  // each lane may keep one half full
}
constexpr std::uint64_t page_bytes(std::uint32_t wait_pages, std::uint32_t event_pages) {
  return std::uint64_t{wait_pages} * sizeof(WaitPage) +
         std::uint64_t{event_pages} * (sizeof(Word) + sizeof(EventPage));
}

}  // namespace ojs_shm::engine
