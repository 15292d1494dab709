// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/queue_end.hpp"

#include "engine/tables/job_look.hpp"
#include "engine/tables/patience.hpp"

#include <algorithm>

namespace ojs_shm::engine {

using shm::Point;

namespace {
/// What has not ended: a job that a lane holds is as it was before.
constexpr States kUnfinished =
    states(kSlotScheduled, kSlotAvailable, kSlotPending, kSlotRetryable, kSlotActive, kSlotClaimed,
           kSlotSettling, kSlotMoving, kSlotWaiting);
constexpr unsigned kRoundsOfDiscards = 16;
}  // namespace

std::uint64_t QueueEnd::count_unfinished(std::uint32_t queue) const {
  std::uint64_t jobs = 0;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    if (kUnfinished.has(Control(job.control.load()).state()) && job.queue.get() == queue) ++jobs;
  }
  return jobs;
}

/// 1. what has come so far; 2. of that nothing is on its way into a slot, 3. nor in one. What comes
/// after 1 changes the sum.
Outcome QueueEnd::begin(std::uint32_t queue, std::uint64_t& jobs) {
  mark_ = Store::deletion_mark(store_.charged_in(queue));                // 1
  const std::uint64_t depth = charged_jobs(store_.depth_charge(queue));  // 2
  jobs = std::max(count_unfinished(queue), depth);                       // 3
  return jobs == 0 ? Outcome::kOk : Outcome::kWrongState;
}

/// Killed in between, it has discarded some and the queue is there.
Outcome QueueEnd::empty(std::uint32_t queue, std::uint64_t& discarded, std::uint64_t& left) {
  Outcome outcome = begin(queue, left);
  for (unsigned round = 0; round < kRoundsOfDiscards && outcome != Outcome::kOk; ++round) {
    std::uint64_t done = 0;
    for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
      const JobRecord& job = store_.job(slot);
      for (unsigned look = 0; look < kPatience; ++look) {
        const Control control(job.control.load());
        if (move_of(Event::kQueueEnd, control.state()) == nullptr || job.queue.get() != queue)
          break;
        const JobId id = job.id();
        if (job.control.load() != control.word) continue;  // else the id may be another job's
        done += actor_.discard(id) == Outcome::kOk ? 1 : 0;
        break;
      }
    }
    discarded += done;
    outcome = begin(queue, left);
    if (done == 0 && outcome != Outcome::kOk)
      return outcome;  // what is left waits for other queues
  }
  return outcome == Outcome::kOk ? outcome : Outcome::kBusy;
}

void QueueEnd::finish(std::uint32_t queue, std::uint64_t discarded) {
  store_.queue(queue).deleted.store(mark_, Point::kSetChanged);
  if (actor_.tellings().on())
    actor_.tellings().about_queue(EventKind::kQueueDeleted, queue, discarded);
}

}  // namespace ojs_shm::engine
