// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/moves/moves.hpp"
#include "shm/bits.hpp"
#include "shm/control.hpp"
#include "shm/layout.hpp"

namespace ojs_shm::engine {

using shm::Control;

/// What a lane says of itself before it changes anything: the operation, and the values before it,
/// for the repair after its death. The values are written before the operation's word; clearing
/// that alone ends the intent.
///   63..60 Op  59..48 queue  47..24 slot (all ones: none yet)  0 kOfAccounts
class Intents {
 protected:
  explicit Intents(shm::Lane& self) : self_(self) {}

  static constexpr unsigned kAttempt = 2, kTarget = 3;  ///< places in intent_data
  using OpBits = shm::Field<60, 4>;
  using OpQueue = shm::Field<48, 12>;
  using OpSlot = shm::Field<24, 24>;
  /// The operation touches accounts of tenants: those whose tally has the lane's present stamp.
  static constexpr std::uint64_t kOfAccounts = 1;

  /// Undone by a death until the target says otherwise.
  template <Op kOp>
  OJS_SHM_INLINE void intend(std::uint32_t queue, std::uint32_t slot, const QueueTally& mine) {
    keep<kOp>(mine);
    if constexpr (kOp == Op::kFetch || is_of_several(kOp)) intend_no_attempt();
    intend_undo();
    announce(kOp, queue, slot);
  }
  /// The same off the straight way, by the operation's row.
  void intend(Op op, std::uint32_t queue, std::uint32_t slot, const QueueTally& mine) {
    for (unsigned place = 0; place < kTarget; ++place)
      if (const auto tally = undo_of(op)->tally[place]; tally != nullptr)
        self_.intent_data[place].set((mine.*tally).get(), shm::Point::kIntentSet);
    if (op == Op::kFetch) intend_no_attempt();
    intend_undo();
    announce(op, queue, slot);
  }
  /// Of an operation that moves no tally.
  void intend_bare(Op op, std::uint32_t queue, std::uint32_t slot) {
    intend_undo();
    announce(op, queue, slot);
  }
  /// The next step of the same operation: the values before it stay.
  OJS_SHM_INLINE void intend_further(Op op, std::uint32_t queue, std::uint32_t slot) {
    announce(op, queue, slot, self_.intent.get() & kOfAccounts);
  }
  OJS_SHM_INLINE void announce(Op op, std::uint32_t queue, std::uint32_t slot,
                               std::uint64_t accounts = 0) {
    self_.intent.announce(OpBits::put(static_cast<std::uint64_t>(op)) | OpQueue::put(queue) |
                              OpSlot::put(slot) | accounts,
                          shm::Point::kIntentSet);  // PAIR intent
  }
  void intend_nothing() { self_.intent.announce(0, shm::Point::kIntentCleared); }

  /// Writes down what the tallies of an operation are before it.
  template <Op kOp, unsigned kPlace = 0>
  OJS_SHM_INLINE void keep(const QueueTally& mine) {
    if constexpr (constexpr auto tally = undo_of(kOp)->tally[kPlace]; tally != nullptr)
      self_.intent_data[kPlace].set((mine.*tally).get(), shm::Point::kIntentSet);
    if constexpr (kPlace + 1 < kTarget) keep<kOp, kPlace + 1>(mine);
  }
  template <Op kOp, auto kTally>
  LaneWord& kept() const {
    return self_.intent_data[place_of<kOp, kTally>()];
  }

  // ---- the target: below 16 a death undoes, to the state before where the slot does not tell it;
  // or the control word that is all that is left to be stored, and a death finishes
  void intend_undo() { self_.intent_data[kTarget].set(0, shm::Point::kIntentSet); }
  void intend_back_to(unsigned state) {
    self_.intent_data[kTarget].set(state, shm::Point::kIntentSet);
  }
  void intend_word(Control word) {
    self_.intent_data[kTarget].set(word.word, shm::Point::kIntentSet);
  }
  /// Of a batch.
  static constexpr std::uint64_t kWhole = 1, kWholeAndDrops = 2;
  void commit_batch(std::uint64_t how) {
    self_.intent_data[kTarget].set(how, shm::Point::kBatchCommitted);
  }
  std::uint64_t target() const { return self_.intent_data[kTarget].get(); }

  // ---- of a fetch: plus one, 0 while it has not been touched
  void intend_attempt(std::uint16_t before) {
    self_.intent_data[kAttempt].set(before + 1U, shm::Point::kIntentSet);
  }
  void intend_no_attempt() { self_.intent_data[kAttempt].set(0, shm::Point::kIntentSet); }
  std::uint64_t attempt_before() const { return self_.intent_data[kAttempt].get(); }

  // ---- of several fetches or acks that are committed: which slot is at hand, and its attempt
  // before
  struct AtHand {
    std::uint64_t word;
    constexpr bool is(std::uint32_t slot) const { return word >> 16 == slot + std::uint64_t{1}; }
    constexpr std::uint32_t slot() const { return static_cast<std::uint32_t>(word >> 16) - 1; }
    constexpr std::uint16_t attempt() const { return static_cast<std::uint16_t>(word); }
  };
  OJS_SHM_INLINE void intend_at_hand(std::uint32_t slot, std::uint16_t attempt = 0) {
    self_.intent_data[kAttempt].set((slot + std::uint64_t{1}) << 16 | attempt,
                                    shm::Point::kIntentSet);
  }
  AtHand at_hand() const { return {self_.intent_data[kAttempt].get()}; }

  shm::Lane& self_;

 private:
  template <Op kOp, auto kTally>
  static consteval unsigned place_of() {
    for (unsigned place = 0; place < 4; ++place)
      if (undo_of(kOp)->tally[place] == kTally) return place;
    throw "the operation does not move that tally";
  }
};

}  // namespace ojs_shm::engine
