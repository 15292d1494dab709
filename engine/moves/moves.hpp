// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "engine/moves/state.hpp"
#include "engine/tables/layout.hpp"
#include "shm/points.hpp"

// How jobs move, as data: what happens to a job, and what undoes it. The Mover runs the first
// table, the repair the second, and docs/architecture.md prints the first.

namespace ojs_shm::engine {

/// Everything that can happen to a job. Where an event has two outcomes (an attempt is left, or
/// none is) it has two names, so that the table below needs no condition.
enum class Event : std::uint8_t {
  kPush,           ///< enqueued, for now
  kPushScheduled,  ///< enqueued, for a future time
  kPushPending,    ///< enqueued, to wait for activation
  kDue,            ///< the scheduled or retry time has come, or is not waited for
  kActivate,
  kFetch,
  kAck,
  kNackRetry,         ///< failed, an attempt is left
  kNackDiscard,       ///< failed for good: exhausted or not retryable
  kRequeue,           ///< given back unworked; the attempt is not counted
  kExecutionTimeout,  ///< ran longer than its timeout; as a nack
  kExecutionTimeoutExhausted,
  kLeaseExpiry,  ///< the holder stopped beating; available at once
  kLeaseExpiryExhausted,
  kHolderDeath,  ///< the holder's process is gone; available at once
  kHolderDeathExhausted,
  kBeat,  ///< a heartbeat or a progress report
  kReprioritize,
  kCancel,
  kExpire,          ///< its time is up before it could run, or run again
  kQueueEnd,        ///< its queue is deleted
  kDrop,            ///< it gives way to newer ones of its queue
  kLimitHold,       ///< a limit holds it back: it waits in a lot
  kLimitRelease,    ///< it leaves the lot
  kLimitDelay,      ///< a limit puts it off
  kLimitDrop,       ///< a limit does without it
  kMemberRuns,      ///< what it waited for in its workflow has ended
  kRevive,          ///< one that was lost, a dead letter or another, is to run after all
  kDeadLetterDrop,  ///< it goes for good, and its slot is free
};
inline constexpr std::size_t kEvents = 29;

/// What a lane says that it is about to do, before it changes anything (intents.hpp).
enum class Op : std::uint8_t {
  kNone = 0,
  kAdmit = 1,  ///< charging a bounded queue: `reserved` and the tally may differ
  kEnqueue = 2,
  kFetch = 3,  ///< keeps the attempt as well, once the job's own is about to change
  kSettle = 4,
  kReturn = 5,  ///< also charges the queue
  kMove = 6,
  kBatch = 7,     ///< target: 1 once the whole batch stands, 2 and it drops
  kGiveBack = 8,  ///< undoing an admission; keeps `out` as it shall be
  kMark = 9,      ///< bringing a waiting job into its tenant's account; stands once the mark does
  kReport = 10,   ///< texts of a report, on a slot that the lane need not hold (report.cpp)
  kFetchBatch =
      11,  ///< target: 1 once all that it has claimed counts as fetched; keeps the slot at hand
  kAckBatch = 12,  ///< target: 1 once all that it holds counts as ended; keeps the slot at hand
  kRelease = 14,   ///< a workflow's member that waited is let run; charges the queue
  kClose = 15,     ///< the slot is the head of a workflow that ends
};
constexpr bool charges(Op op) {
  return op == Op::kAdmit || op == Op::kReturn || op == Op::kRelease;
}

/// Whether its target says that all slots it holds have moved on, one by one.
constexpr bool is_of_several(Op op) { return op == Op::kFetchBatch || op == Op::kAckBatch; }

/// A set of states of slots.
struct States {
  std::uint16_t bits = 0;
  constexpr bool has(unsigned state) const { return (bits >> state & 1) != 0; }
};
constexpr States states(auto... state) {
  return {static_cast<std::uint16_t>((0U | ... | (1U << state)))};
}

/// Whether a job comes to stand against its queue's bound, or leaves it.
enum class Depth : std::uint8_t { kSame, kIn, kOut };
/// Where it is found afterwards.
enum class Where : std::uint8_t {
  kSame,      ///< where it was
  kLine,      ///< the end of its level
  kFront,     ///< the front of its level, with the place in line that it had
  kLot,       ///< the lot of a limit
  kTimer,     ///< the supervisor's heap
  kFinished,  ///< among those whose slots are used again; a dead letter is not
};

/// One row: from any of these states, through one in which this lane alone has the slot, to that
/// one. A new job comes from kSlotFree. What one cas does is held by no lane (kSlotFree).
struct Move {
  Event event;
  States from;
  unsigned held;
  Op op;
  unsigned to;
  Depth depth;
  Where where;
  Word QueueRecord::*counter = nullptr;  ///< what the queue counts, beside the lanes' tallies
  bool failed = false;                   ///< an attempt has failed, and is told so
  constexpr shm::Point taken_point() const {
    if (held == kSlotSettling) return shm::Point::kSlotSettling;
    return event == Event::kLimitRelease ? shm::Point::kSlotUnparking : shm::Point::kSlotMoving;
  }
  constexpr shm::Point landed_point() const {
    if (where == Where::kLot) return shm::Point::kSlotParked;
    if (to == kSlotAvailable || held == kSlotFilling) return shm::Point::kSlotPublished;
    return to == kSlotScheduled ? shm::Point::kSlotMoved : shm::Point::kSlotSettled;
  }
};

namespace rows {
using enum Event;
using Counter = Word QueueRecord::*;
inline constexpr Depth kStays = Depth::kSame, kIn = Depth::kIn, kOut = Depth::kOut;
inline constexpr unsigned kAvailable = kSlotAvailable, kScheduled = kSlotScheduled,
                          kPending = kSlotPending, kRetryable = kSlotRetryable,
                          kActive = kSlotActive, kCompleted = kSlotCompleted,
                          kCancelled = kSlotCancelled, kDiscarded = kSlotDiscarded;
inline constexpr States kReady = states(kAvailable), kLater = states(kScheduled, kRetryable),
                        kAsleep = states(kPending),
                        kWaits = states(kScheduled, kAvailable, kPending, kRetryable),
                        kHeld = states(kActive), kLost = states(kCancelled, kDiscarded),
                        kDead = states(kDiscarded);
constexpr Move born(Event event, unsigned to, Where where) {
  return {event, states(kSlotFree), kSlotFilling, Op::kEnqueue, to, kIn, where};
}
constexpr Move claims(Event event, unsigned to, Depth depth, Where where) {
  return {event, kReady, kSlotClaimed, Op::kFetch, to, depth, where};
}
constexpr Move moves(Event event, States from, unsigned to, Depth depth, Where where,
                     Counter counter = nullptr) {
  return {event, from, kSlotMoving, Op::kMove, to, depth, where, counter};
}
constexpr Move ends(Event event, Op op, unsigned to, Counter counter = nullptr) {
  return {event, kHeld, kSlotSettling, op, to, kStays, Where::kFinished, counter};
}
constexpr Move returns(Event event, unsigned to, Where where, Counter counter, bool failed) {
  return {event, kHeld, kSlotSettling, Op::kReturn, to, kIn, where, counter, failed};
}
constexpr Move stays(Event event, unsigned state, Where where) {
  return {event, states(state), kSlotFree, Op::kNone, state, kStays, where};
}
using Q = QueueRecord;
}  // namespace rows

/// The whole life of a job, but for the ways that docs/architecture.md names beside its table.
inline constexpr auto kMoves = [] {
  using namespace rows;
  return std::to_array<Move>({
      born(kPush, kAvailable, Where::kLine),
      born(kPushScheduled, kScheduled, Where::kTimer),
      born(kPushPending, kPending, Where::kSame),

      moves(kDue, kLater, kAvailable, kStays, Where::kLine),
      moves(kActivate, kAsleep, kAvailable, kStays, Where::kLine),
      stays(kReprioritize, kScheduled, Where::kSame),
      stays(kReprioritize, kAvailable, Where::kLine),
      claims(kFetch, kActive, kOut, Where::kSame),

      stays(kBeat, kActive, Where::kSame),
      ends(kAck, Op::kSettle, kCompleted),
      returns(kNackRetry, kRetryable, Where::kTimer, &Q::retried, true),
      ends(kNackDiscard, Op::kReturn, kDiscarded, &Q::discarded),
      returns(kRequeue, kAvailable, Where::kFront, &Q::returned, false),
      returns(kExecutionTimeout, kRetryable, Where::kTimer, &Q::retried, true),
      ends(kExecutionTimeoutExhausted, Op::kReturn, kDiscarded, &Q::discarded),
      returns(kLeaseExpiry, kAvailable, Where::kLine, &Q::returned, true),
      ends(kLeaseExpiryExhausted, Op::kReturn, kDiscarded, &Q::discarded),
      returns(kHolderDeath, kAvailable, Where::kFront, &Q::returned, true),
      ends(kHolderDeathExhausted, Op::kReturn, kDiscarded, &Q::discarded),

      moves(kCancel, kWaits, kCancelled, kOut, Where::kFinished, &Q::cancelled),
      ends(kCancel, Op::kSettle, kCancelled, &Q::cancelled),
      moves(kExpire, kWaits, kDiscarded, kOut, Where::kFinished, &Q::expired),
      moves(kQueueEnd, kWaits, kDiscarded, kOut, Where::kFinished, &Q::emptied),
      ends(kQueueEnd, Op::kSettle, kDiscarded, &Q::emptied),
      {kDrop, kReady, kSlotMoving, Op::kBatch, kDiscarded, kOut, Where::kFinished},

      claims(kLimitHold, kAvailable, kStays, Where::kLot),
      moves(kLimitRelease, kReady, kAvailable, kStays, Where::kFront),
      claims(kLimitDelay, kScheduled, kStays, Where::kTimer),
      moves(kLimitDrop, kReady, kDiscarded, kOut, Where::kFinished, &Q::discarded),

      {kMemberRuns, states(kSlotWaiting), kSlotMoving, Op::kRelease, kAvailable, kIn, Where::kLine},
      // goes on as kReturn, once the slot is held: then it charges the queue
      moves(kRevive, kLost, kAvailable, kIn, Where::kLine),
      moves(kDeadLetterDrop, kDead, kSlotFree, kStays, Where::kSame),
  });
}();

/// The row for a slot in that state, or nullptr: it does not happen.
constexpr const Move* move_of(Event event, unsigned state) {
  for (const Move& move : kMoves)
    if (move.event == event && move.from.has(state)) return &move;
  return nullptr;
}

/// Back to where the lane took it from: what a death or a refusal leaves of a waiting job. An
/// available one keeps its place.
inline constexpr Move kPutBack = {Event::kDue,    {},           kSlotMoving,  Op::kMove,
                                  kSlotAvailable, Depth::kSame, Where::kFront};

/// The tallies of its queue that an operation moves. Their values before it stand in the words of
/// the lane's intent, each at its place in this row; the repair puts them back from there. The
/// fourth word is else the target.
struct Undo {
  Op op;
  LaneWord QueueTally::*tally[4];
};
inline constexpr Undo kUndo[] = {
    {Op::kAdmit, {&QueueTally::in, &QueueTally::in_reserved, &QueueTally::enqueued}},
    {Op::kEnqueue, {&QueueTally::in, &QueueTally::in_reserved, &QueueTally::enqueued}},
    {Op::kBatch, {&QueueTally::in, &QueueTally::in_reserved, &QueueTally::enqueued}},
    {Op::kFetch, {&QueueTally::out, &QueueTally::dispatched}},
    {Op::kFetchBatch, {&QueueTally::out, &QueueTally::dispatched}},
    {Op::kSettle, {&QueueTally::completed}},
    {Op::kAckBatch, {&QueueTally::completed}},
    // a revival begins as kMove and goes on as kReturn: the first word stays
    {Op::kReturn, {nullptr, &QueueTally::in, &QueueTally::in_reserved}},
    {Op::kMove, {&QueueTally::out}},
    // an admission is undone halfway: the third word stays, the first two are spent
    {Op::kGiveBack, {nullptr, nullptr, &QueueTally::enqueued, &QueueTally::out}},
    {Op::kRelease, {&QueueTally::enqueued, &QueueTally::in, &QueueTally::in_reserved}},
};
/// nullptr: it moves none.
constexpr const Undo* undo_of(Op op) {
  for (const Undo& row : kUndo)
    if (row.op == op) return &row;
  return nullptr;
}

}  // namespace ojs_shm::engine
