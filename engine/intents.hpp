// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/bits.hpp"
#include "shm/control.hpp"
#include "shm/layout.hpp"

namespace ojs_shm::engine {

using shm::Control;

/// What a lane says of itself before it changes anything.
class Intents {
 protected:
  explicit Intents(shm::Lane& self) : self_(self) {}

  /// What the lane is about to do, and the values before it, for the repair after its death.
  /// The data words are written before the operation word; clearing that alone ends the intent.
  /// data[3] is the state before (below 16), or, once nothing is left but to store the slot's
  /// control word, that word: then the repair finishes the operation, and else it undoes it.
  ///   63..60 operation  59..48 queue  47..24 slot (all ones: none yet)  0 kOfAccounts
  enum class Op : std::uint64_t {
    kNone = 0,
    kAdmit = 1,    ///< charging a bounded queue: `reserved` and the tally may differ
    kEnqueue = 2,  ///< data: in, in_reserved, enqueued
    kFetch = 3,    ///< data: out, dispatched, attempt + 1 (0: not yet touched)
    kSettle = 4,   ///< data: completed
    kReturn = 5,   ///< data: (out), in, in_reserved; also charges the queue
    kMove = 6,     ///< data: out
    /// data: as kEnqueue; data[3] is the commit word: 1 once the whole batch stands, 2 and it drops
    kBatch = 7,
    /// undoing an admission. data: (in), (in_reserved), enqueued; data[3] is `out` as it shall be
    kGiveBack = 8,
    /// bringing a waiting job into its tenant's account; stands once the job's mark does
    kMark = 9,
    /// a workflow's member that waited is let run. data: enqueued, in, in_reserved; charges the queue
    kRelease = 14,
    kClose = 15,  ///< the slot is the head of a workflow that ends
  };
  using OpBits = shm::Field<60, 4>;
  using OpQueue = shm::Field<48, 12>;
  using OpSlot = shm::Field<24, 24>;
  /// The operation touches accounts of tenants: those whose tally has the lane's present stamp.
  static constexpr std::uint64_t kOfAccounts = 1;
  OJS_SHM_INLINE void intend(Op op, std::uint32_t queue, std::uint32_t slot, std::uint64_t a,
                             std::uint64_t b, std::uint64_t c = 0) {
    shm::Lane& self = self_;
    self.intent_data[1].set(b, shm::Point::kIntentSet);
    self.intent_data[2].set(c, shm::Point::kIntentSet);
    intend(self, op, queue, slot, a);
  }
  /// Of an operation that moves one number: data[1] and data[2] are not read.
  OJS_SHM_INLINE void intend(Op op, std::uint32_t queue, std::uint32_t slot, std::uint64_t a) {
    intend(self_, op, queue, slot, a);
  }
  OJS_SHM_INLINE static void intend(shm::Lane& self, Op op, std::uint32_t queue, std::uint32_t slot,
                                    std::uint64_t a) {
    self.intent_data[0].set(a, shm::Point::kIntentSet);
    self.intent_data[3].set(0, shm::Point::kIntentSet);
    announce(self, op, queue, slot);
  }
  /// The next step of the same operation: the values before it stay.
  OJS_SHM_INLINE void intend_further(Op op, std::uint32_t queue, std::uint32_t slot) {
    announce(self_, op, queue, slot, self_.intent.get() & kOfAccounts);
  }
  OJS_SHM_INLINE static void announce(shm::Lane& self, Op op, std::uint32_t queue,
                                      std::uint32_t slot, std::uint64_t accounts = 0) {
    self.intent.announce(OpBits::put(static_cast<std::uint64_t>(op)) | OpQueue::put(queue) |
                             OpSlot::put(slot) | accounts,
                         shm::Point::kIntentSet);  // PAIR intent
  }
  void intend_word(Control word) { self_.intent_data[3].set(word.word, shm::Point::kIntentSet); }
  void intend_nothing() { self_.intent.announce(0, shm::Point::kIntentCleared); }

  shm::Lane& self_;
};

}  // namespace ojs_shm::engine
