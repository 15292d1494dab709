// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/layout.hpp"

// How jobs move, as data: what an operation does, and what undoes it.

namespace ojs_shm::engine {

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
  kRelease = 14,  ///< a workflow's member that waited is let run; charges the queue
  kClose = 15,    ///< the slot is the head of a workflow that ends
};
constexpr bool charges(Op op) {
  return op == Op::kAdmit || op == Op::kReturn || op == Op::kRelease;
}

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
    {Op::kSettle, {&QueueTally::completed}},
    // a dead letter's retry begins as kMove and goes on as kReturn: the first word stays
    {Op::kReturn, {nullptr, &QueueTally::in, &QueueTally::in_reserved}},
    {Op::kMove, {&QueueTally::out}},
    // an admission is undone halfway: the third word stays, the others are spent
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
