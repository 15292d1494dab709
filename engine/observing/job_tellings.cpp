// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/job_tellings.hpp"

#include <algorithm>

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

OJS_SHM_INLINE void beginning(EventRecord& record, const Birth* birth, JobId id, Control filling) {
  set_head(record, birth->available ? EventKind::kJobEnqueued : EventKind::kJobScheduled,
           birth->rank, birth->time_ms);
  set_job(record, id);
  set_facts(record, birth->queue, 0, birth->max_attempts);
  record.tag.set(filling.to(kSlotAvailable).tag());
  record.value.set(birth->due_at);
}

OJS_SHM_INLINE void start(EventRecord& record, const Start* job) {
  set_head(record, EventKind::kJobStarted, job->rank, job->time_ms);
  set_job(record, job->id);
  set_facts(record, job->queue, job->attempt, job->max_attempts);
  record.tag.set(job->tag);
  record.value.set(job->worker.word);
}

OJS_SHM_INLINE void completion(EventRecord& record, const JobRecord* job, Control settled) {
  const std::uint64_t finished = job->finished_at.get();
  set_head(record, EventKind::kJobCompleted, rank_of_ring(settled.ring()), finished);
  record.value.set(finished - std::min(finished, job->started_at.get()));
  set_job(record, job->id());
  set_facts(record, job->queue.get(), job->attempt.get(), job->flags().max_attempts());
  record.tag.set(settled.tag());
}

}  // namespace

[[gnu::noinline]] void JobTellings::tell(EventKind kind, const JobRecord& job, Control after,
                                         std::uint64_t value) {
  EventFacts event = event_of(kind, job, after, value);
  if (is_finished(after.state())) event.time_ms = job.finished_at.get();
  log_.write(event);
}

[[gnu::noinline]] void JobTellings::held(EventKind kind, const JobRecord& job, Control active,
                                         std::uint64_t value) {
  const EventFacts event = event_of(kind, job, active, value);
  if (job.control.load() == active.word) log_.write(event);
}

[[gnu::noinline]] void JobTellings::born(const Birth& birth, JobId id, Control filling) {
  put<&beginning>(&birth, id, filling);
}

/// Of the end of an attempt, with what becomes of the job.
void JobTellings::setback(EventKind kind, const JobRecord& job, Control after,
                          std::uint64_t value) {
  EventFacts event = event_of(kind, job, after, value);
  if (is_finished(after.state())) event.time_ms = job.finished_at.get();
  if (holds_job(after.state())) event.previous_rank = static_cast<std::uint8_t>(after.state());
  log_.write(event);
}

[[gnu::noinline]] void JobTellings::failed(const JobRecord& job, Control after, std::uint64_t now) {
  const std::uint64_t started = job.started_at.get();
  setback(EventKind::kJobFailed, job, after, now - std::min(now, started));
}

[[gnu::noinline]] void JobTellings::timed_out(const JobRecord& job, Control after,
                                              std::uint64_t now, bool execution) {
  const std::uint64_t limit = execution ? job.timeout_ms.get() : job.lease_in_force_ms.get();
  const std::uint64_t ran = now - std::min(now, job.started_at.get());
  setback(execution ? EventKind::kJobTimeout : EventKind::kJobStalled, job, after,
          limit << 32 | std::min<std::uint64_t>(ran, 0xFFFF'FFFF));
}

[[gnu::noinline]] void JobTellings::time_is_up(const JobRecord& job, Control held,
                                               std::uint64_t now, TimeUp why) {
  const bool total = why == TimeUp::kTotalTimeout;
  const OwnTimes& times = job.own_times();
  const std::uint64_t limit = total ? times.total_timeout_s.get() : times.enqueue_ttl_s.get();
  const std::uint64_t lived = (now - std::min(now, job.created_at.get())) / 1000;
  tell(total ? EventKind::kJobTotalTimeout : EventKind::kJobTtlExpired, job, held,
       limit << 32 | std::min<std::uint64_t>(lived, 0xFFFF'FFFF));
}

[[gnu::noinline]] void JobTellings::limit_closed(const JobRecord& job, Control held,
                                                 std::uint32_t key, std::uint64_t until) {
  EventFacts event = event_of(EventKind::kRateLimitAdjusted, job, held, key);
  event.tag = until;
  log_.write(event);
}

[[gnu::noinline]] void JobTellings::completed(const JobRecord& job, Control settled) {
  put<&completion>(&job, settled);
}

[[gnu::noinline]] void JobTellings::ended(const JobRecord& job, Control settled) {
  if (settled.state() == kSlotCompleted) return completed(job, settled);
  const std::uint64_t finished = job.finished_at.get();
  EventFacts event = event_of(EventKind::kJobDiscarded, job, settled, 0);
  event.time_ms = finished;
  if (settled.state() == kSlotCancelled) {
    event.kind = EventKind::kJobCancelled;
  } else if (job.flags().has(Policy::kExpired) &&
             job.flags().previous() != static_cast<unsigned>(TimeUp::kTotalTimeout)) {
    event.kind = EventKind::kJobExpired;
    event.value = job.created_at.get();
  } else {
    // a job that waited goes with its queue: no attempt failed
    if (Control(job.control.load()).state() != kSlotMoving) failed(job, settled, finished);
  }
  log_.write(event);
}

[[gnu::noinline]] void JobTellings::started(const Start& job) { put<&start>(&job); }

[[gnu::noinline]] void JobTellings::moved(JobId id, std::uint32_t queue, Control before,
                                          Control after) {
  EventFacts event;
  event.kind = EventKind::kPriorityChanged;
  event.rank = rank_of_ring(after.ring());
  event.previous_rank = rank_of_ring(before.ring());
  event.queue = queue;
  event.job = id;
  event.tag = after.tag();
  log_.write(event);
}

}  // namespace ojs_shm::engine
