// SPDX-License-Identifier: Apache-2.0
#include "engine/enqueue/filler.hpp"

// Jobs that one store brings into several queues: the roots of a workflow, and a batch. Each is
// charged to its queue and is then moving in this lane's hands until that store. A death before it
// takes the charges back one by one; after it, the repair publishes them.

namespace ojs_shm::engine {

using shm::Point;

void Filler::uncharge_unborn(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const std::uint32_t q = job.queue.get();
  const Control held(job.control.load());
  intend<Op::kMove>(q, slot, tally(q));
  charge_leaving(slot, job);
  const Control filling = held.to(kSlotFilling, 0, owner_);
  intend_word(filling);
  job.control.store(filling.word, Point::kSlotFilling);
  intend_nothing();
  if (store_.queue(q).attention.load() != 0) room_made(store_.queue(q), q);
}

void Filler::publish_unborn(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const std::uint32_t q = job.queue.get();
  QueueTally& mine = tally(q);
  intend<Op::kEnqueue>(q, slot, mine);
  mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
  job.policy.set(job.flags().with_previous(0).word);
  const Control held(job.control.load());
  give_out(slot, job, held.to(kSlotFilling, held.ring(), owner_));  // told as what it is: new
}

/// A job in this lane's hands and charged, to where a new job belongs. Its intent stands.
void Filler::give_out(std::uint32_t slot, JobRecord& job, Control held) {
  const std::uint64_t now = store_.now_ms(), expires = job.expires_at.get();
  const std::uint32_t generation = job.generation.get();
  const bool later = job.due_at.get() > now, tried_elsewhere = later && job.attempt.get() != 0;
  const bool pending = job.flags().has(Policy::kBornPending);
  Move move = *move_of(pending ? Event::kPushPending
                       : later ? Event::kPushScheduled
                               : Event::kPush,
                       kSlotFree);
  move.depth = Depth::kSame;
  if (tried_elsewhere) move.to = kSlotRetryable;
  job.available_at.set(now);
  land(move, slot, job, held, pending || tried_elsewhere ? 0 : now);
  if (move.where != Where::kTimer && expires != 0) push_timer(slot, generation, expires);
}

}  // namespace ojs_shm::engine
