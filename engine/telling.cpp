// SPDX-License-Identifier: Apache-2.0
#include "engine/actor.hpp"

// What an operation tells while somebody wants to know. Nothing here decides anything, and none of
// it runs otherwise.

namespace ojs_shm::engine {
namespace {

OJS_SHM_INLINE EventFacts event_of(EventKind kind, const JobRecord& job, Control after,
                                   std::uint64_t value) {
  EventFacts event;
  event.kind = kind;
  event.rank = rank_of_ring(after.ring());
  event.attempt = job.attempt.get();
  event.max_attempts = job.flags().max_attempts();
  event.queue = job.queue.get();
  event.job = job.id();
  event.tag = after.tag();
  event.value = value;
  return event;
}

}  // namespace

void Actor::set_telling(bool telling) {
  store_.header().telling.store(telling ? 1 : 0, shm::Point::kSetChanged);
}

/// About a job in this lane's hands, or one that it is about to publish.
[[gnu::noinline]] void Actor::tell(EventKind kind, const JobRecord& job, Control after,
                                   std::uint64_t value) {
  EventFacts event = event_of(kind, job, after, value);
  if (is_finished(after.state())) event.time_ms = job.finished_at.get();
  events_.write(event);
}

/// About a job that is active here, as far as we know: someone may just have ended its lease.
[[gnu::noinline]] void Actor::tell_held(EventKind kind, const JobRecord& job, Control active,
                                        std::uint64_t value) {
  const EventFacts event = event_of(kind, job, active, value);
  if (job.control.load() == active.word) events_.write(event);
}

/// About a job that is already everybody's.
[[gnu::noinline]] void Actor::tell_new(const NewJob& spec, JobId id, bool available,
                                       Control filling) {
  if (!available && spec.pending) return;
  EventFacts event;
  event.kind = available ? EventKind::kJobEnqueued : EventKind::kJobScheduled;
  event.rank = spec.rank;
  event.max_attempts = spec.retry.max_attempts;
  event.queue = spec.queue;
  event.job = id;
  event.tag = filling.to(kSlotAvailable).tag();
  event.value = spec.scheduled_at;
  if (!spec.id) event.time_ms = id.hi >> 16;  // made at that time: saves a look at the clock
  events_.write(event);
}

[[gnu::noinline]] void Actor::tell_failed(const JobRecord& job, Control held, std::uint64_t now) {
  const std::uint64_t started = job.started_at.get();
  tell(EventKind::kJobFailed, job, held, now - std::min(now, started));
}

[[gnu::noinline]] void Actor::tell_end(const JobRecord& job, Control settled) {
  const std::uint64_t finished = job.finished_at.get();
  EventFacts event = event_of(EventKind::kJobCompleted, job, settled, 0);
  event.time_ms = finished;
  if (settled.state() == kSlotCompleted) {
    event.value = finished - std::min(finished, job.started_at.get());
  } else if (settled.state() == kSlotCancelled) {
    event.kind = EventKind::kJobCancelled;
  } else if (job.flags().has(Policy::kExpired)) {
    event.kind = EventKind::kJobExpired;
    event.value = job.created_at.get();
  } else {
    tell_failed(job, settled, finished);
    event.kind = EventKind::kJobDiscarded;
  }
  events_.write(event);
}

/// Of the queue that is near.
[[gnu::noinline]] void Actor::tell_started(JobId id, std::uint64_t tag, std::uint64_t now,
                                           std::uint8_t rank, std::uint16_t attempt,
                                           std::uint16_t max_attempts) {
  EventFacts event;
  event.kind = EventKind::kJobStarted;
  event.rank = rank;
  event.attempt = attempt;
  event.max_attempts = max_attempts;
  event.queue = near_.number;
  event.job = id;
  event.tag = tag;
  event.time_ms = now;
  events_.write(event);
}

[[gnu::noinline]] void Actor::tell_moved(JobId id, std::uint32_t queue, Control before,
                                         Control after) {
  EventFacts event;
  event.kind = EventKind::kPriorityChanged;
  event.rank = rank_of_ring(after.ring());
  event.previous_rank = rank_of_ring(before.ring());
  event.queue = queue;
  event.job = id;
  event.tag = after.tag();
  events_.write(event);
}

[[gnu::noinline]] void Actor::tell_paused(std::uint32_t queue, bool paused) {
  EventFacts event;
  event.kind = paused ? EventKind::kQueuePaused : EventKind::kQueueResumed;
  event.queue = queue;
  events_.write(event);
}

[[gnu::noinline]] void Actor::tell_rebalanced(std::uint32_t pool, PoolStrategy before,
                                              PoolStrategy after) {
  EventFacts event;
  event.kind = EventKind::kPoolRebalanced;
  event.queue = pool;
  event.previous_rank = static_cast<std::uint8_t>(before);
  event.rank = static_cast<std::uint8_t>(after);
  events_.write(event);
}

}  // namespace ojs_shm::engine
