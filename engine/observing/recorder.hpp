// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/rules/uuid.hpp"
#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// The flight recorder: the last transitions of each lane, always on, in a ring of fixed size that
// the lane alone writes. For people after a crash: nothing in the engine reads it.

namespace ojs_shm::engine {

class Store;

/// Slot and states of one transition, and when it was. A record is two stores, of which a death may
/// leave one: the check in `when` fits no other `what`, and a reader skips what does not fit.
// NO CRASH POINT: a record that is half written does not fit its check
struct TransitionRecord {
  shm::Plain<std::uint64_t> what;  ///< 63..40 slot  39..36 from  35..32 to  31..0 generation
  shm::Plain<std::uint64_t> when;  ///< 63..16 Unix ms  15..0 check
};
static_assert(sizeof(TransitionRecord) == 16);

/// Records of each lane, a power of two: 256, in a small segment fewer. Behind them lies one more,
/// which names the process that took the lane, and when.
constexpr std::uint32_t records_per_lane(std::uint32_t slots) {
  return slots >= 16'384 ? 256 : slots >= 1'024 ? 64 : 16;
}
constexpr std::uint64_t recorder_bytes(std::uint32_t lanes, std::uint32_t slots) {
  return std::uint64_t{lanes} * (records_per_lane(slots) + 1) * sizeof(TransitionRecord);
}

/// A record as its two words say it, or as they are to be written.
struct TransitionWords {
  using Slot = shm::Field<40, 24>;
  using From = shm::Field<36, 4>;
  using To = shm::Field<32, 4>;
  using Generation = shm::Field<0, 32>;
  std::uint64_t what = 0, when = 0;

  OJS_SHM_INLINE static TransitionWords of(std::uint32_t slot, std::uint32_t generation,
                                           unsigned from, unsigned to, std::uint64_t now) {
    const std::uint64_t what = std::uint64_t{slot} << 40 | std::uint64_t{from & 15} << 36 |
                               std::uint64_t{to & 15} << 32 | generation;
    return {what, now << 16 | check(what, now)};
  }
  bool fits() const { return when != 0 && (when & 0xFFFF) == check(what, ms()); }
  std::uint64_t ms() const { return when >> 16; }

 private:
  static constexpr std::uint64_t check(std::uint64_t what, std::uint64_t ms) {
    return ((what ^ ms << 20) * 0x9E3779B97F4A7C15ULL) >> 48;
  }
};

/// Writes the ring of one lane. A lane that is used again goes on behind its newest record; a
/// repair writes in the place of the dead lane, whose holder stays named.
class Recorder {
 public:
  Recorder(const Store& store, std::uint32_t lane);

  /// States are SlotStates. One call for each transition, when it can no longer be undone.
  OJS_SHM_INLINE void note(std::uint32_t slot, std::uint32_t generation, unsigned from, unsigned to,
                           std::uint64_t now) {
    write(ring_[next_++ & mask_], TransitionWords::of(slot, generation, from, to, now));
  }
  /// Notes transitions of several slots, all alike and at one time.
  class Several {
   public:
    OJS_SHM_INLINE Several(Recorder& recorder, unsigned from, unsigned to, std::uint64_t now)
        : recorder_(recorder),
          ring_(recorder.ring_),
          mask_(recorder.mask_),
          next_(recorder.next_),
          from_(from),
          to_(to),
          now_(now) {}
    Several(const Several&) = delete;
    OJS_SHM_INLINE ~Several() { recorder_.next_ = next_; }
    OJS_SHM_INLINE void note(std::uint32_t slot, std::uint32_t generation) {
      write(ring_[next_++ & mask_], TransitionWords::of(slot, generation, from_, to_, now_));
    }

   private:
    Recorder& recorder_;
    TransitionRecord* const ring_;
    const std::uint32_t mask_;
    std::uint32_t next_;
    const unsigned from_, to_;
    const std::uint64_t now_;
  };
  /// Says whose the lane is from now on: a number for people.
  void sign(std::uint32_t holder, std::uint64_t now);

 private:
  OJS_SHM_INLINE static void write(TransitionRecord& record, TransitionWords words) {
    record.what.set(words.what);
    record.when.set(words.when);
  }
  TransitionRecord* ring_;
  std::uint32_t mask_, next_ = 0;
};

struct RecordedTransition {
  std::uint64_t time_ms = 0;
  std::uint32_t lane = 0, slot = 0;
  std::uint32_t holder = 0;  ///< as it signed the lane; 0: one before it
  unsigned from = 0, to = 0;
  bool known = false;  ///< the slot still has that job: `job` and `queue` are its own
  JobId job;
  std::uint32_t queue = 0;
};
/// The newest of all lanes, at most so many, oldest first; those of one lane in their order. The
/// bytes may be a stranger's.
std::vector<RecordedTransition> recent_transitions(const Store& store, std::size_t most);

}  // namespace ojs_shm::engine
