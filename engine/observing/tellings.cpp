// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/tellings.hpp"

#include "engine/pools/pool_look.hpp"
#include "engine/workflows/workflow_look.hpp"

#include <algorithm>
#include <cstring>

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

/// The first eight bytes of the text, which is left without them.
std::uint64_t first_word(std::string_view& text) {
  std::uint64_t bytes = 0;
  const std::size_t size = std::min<std::size_t>(text.size(), sizeof bytes);
  if (size != 0) std::memcpy(&bytes, text.data(), size);
  text.remove_prefix(size);
  return bytes;
}

}  // namespace

[[gnu::noinline]] void Tellings::tell(EventKind kind, const JobRecord& job, Control after,
                                      std::uint64_t value) {
  EventFacts event = event_of(kind, job, after, value);
  if (is_finished(after.state())) event.time_ms = job.finished_at.get();
  log_.write(event);
}

[[gnu::noinline]] void Tellings::held(EventKind kind, const JobRecord& job, Control active,
                                      std::uint64_t value) {
  const EventFacts event = event_of(kind, job, active, value);
  if (job.control.load() == active.word) log_.write(event);
}

[[gnu::noinline]] void Tellings::born(const Birth& birth, JobId id, Control filling) {
  put<&beginning>(&birth, id, filling);
}

/// Of the end of an attempt, with what becomes of the job.
void Tellings::setback(EventKind kind, const JobRecord& job, Control after, std::uint64_t value) {
  EventFacts event = event_of(kind, job, after, value);
  if (is_finished(after.state())) event.time_ms = job.finished_at.get();
  if (holds_job(after.state())) event.previous_rank = static_cast<std::uint8_t>(after.state());
  log_.write(event);
}

[[gnu::noinline]] void Tellings::failed(const JobRecord& job, Control after, std::uint64_t now) {
  const std::uint64_t started = job.started_at.get();
  setback(EventKind::kJobFailed, job, after, now - std::min(now, started));
}

[[gnu::noinline]] void Tellings::timed_out(const JobRecord& job, Control after, std::uint64_t now,
                                           bool execution) {
  const std::uint64_t limit = execution ? job.timeout_ms.get() : job.lease_in_force_ms.get();
  const std::uint64_t ran = now - std::min(now, job.started_at.get());
  setback(execution ? EventKind::kJobTimeout : EventKind::kJobStalled, job, after,
          limit << 32 | std::min<std::uint64_t>(ran, 0xFFFF'FFFF));
}

[[gnu::noinline]] void Tellings::time_is_up(const JobRecord& job, Control held, std::uint64_t now,
                                            TimeUp why) {
  const bool total = why == TimeUp::kTotalTimeout;
  const OwnTimes& times = job.own_times();
  const std::uint64_t limit = total ? times.total_timeout_s.get() : times.enqueue_ttl_s.get();
  const std::uint64_t lived = (now - std::min(now, job.created_at.get())) / 1000;
  tell(total ? EventKind::kJobTotalTimeout : EventKind::kJobTtlExpired, job, held,
       limit << 32 | std::min<std::uint64_t>(lived, 0xFFFF'FFFF));
}

[[gnu::noinline]] void Tellings::limit_closed(const JobRecord& job, Control held, std::uint32_t key,
                                              std::uint64_t until) {
  EventFacts event = event_of(EventKind::kRateLimitAdjusted, job, held, key);
  event.tag = until;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::completed(const JobRecord& job, Control settled) {
  put<&completion>(&job, settled);
}

[[gnu::noinline]] void Tellings::ended(const JobRecord& job, Control settled) {
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

[[gnu::noinline]] void Tellings::started(const Start& job) { put<&start>(&job); }

[[gnu::noinline]] void Tellings::moved(JobId id, std::uint32_t queue, Control before,
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

EventFacts Tellings::of_workflow(EventKind kind, const JobRecord& head, Control control) {
  EventFacts event;
  event.kind = kind;
  event.queue = head.queue.get();
  event.job = head.id();
  event.tag = control.tag();
  event.attempt = static_cast<std::uint16_t>(members_of(head));
  return event;
}

[[gnu::noinline]] void Tellings::paused(std::uint32_t queue, bool paused) {
  EventFacts event;
  event.kind = paused ? EventKind::kQueuePaused : EventKind::kQueueResumed;
  event.queue = queue;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::about_queue(EventKind kind, std::uint32_t queue,
                                             std::uint64_t jobs) {
  EventFacts event;
  event.kind = kind;
  event.queue = queue;
  event.value = jobs;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::rebalanced(std::uint32_t pool, PoolStrategy before,
                                            PoolStrategy after) {
  EventFacts event;
  event.kind = EventKind::kPoolRebalanced;
  event.queue = pool;
  event.previous_rank = static_cast<std::uint8_t>(before);
  event.rank = static_cast<std::uint8_t>(after);
  log_.write(event);
}

[[gnu::noinline]] void Tellings::pressure(EventKind kind, std::uint32_t q,
                                          const Fullness& fullness) {
  EventFacts event;
  event.kind = kind;
  event.queue = q;
  event.tag = fullness.depth;
  event.value = fullness.bound | (fullness.bytes ? kOfBytes : 0);
  log_.write(event);
}

[[gnu::noinline]] void Tellings::refused(std::uint32_t q, std::uint64_t times,
                                         const Fullness& fullness, std::string_view type) {
  EventFacts event;
  event.kind = EventKind::kBackpressureRejected;
  event.queue = q;
  event.attempt = static_cast<std::uint16_t>(times);
  event.max_attempts = static_cast<std::uint16_t>(times >> 16);
  event.tag = fullness.depth;
  event.value = fullness.bound | (fullness.bytes ? kOfBytes : 0);
  event.time_ms = store_.now_ms();
  event.job.hi = first_word(type);
  event.job.lo = first_word(type);
  with_text(event, type);
}

[[gnu::noinline]] void Tellings::with_text(EventFacts event, std::string_view text) {
  log_.write(event);
  while (!text.empty()) {
    event.kind = EventKind::kText;
    event.job.hi = first_word(text);
    event.job.lo = first_word(text);
    event.tag = first_word(text);
    event.value = first_word(text);
    log_.write(event);
  }
}

[[gnu::noinline]] void Tellings::overloaded(std::uint32_t pool, const PoolLoad& load) {
  EventFacts event;
  event.kind = EventKind::kPoolOverloaded;
  event.queue = pool;
  event.tag = load.active;
  event.value = load.waiting;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::repaired(std::uint32_t dead, std::uint32_t by,
                                          std::uint64_t at_once, std::uint64_t mended) {
  EventFacts event;
  event.kind = EventKind::kProcessRepaired;
  event.job = {dead, by};
  event.tag = at_once;
  event.value = mended;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::bulk(EventKind kind, std::uint64_t jobs, std::uint64_t done,
                                      bool atomic) {
  EventFacts event;
  event.kind = kind;
  event.rank = atomic ? 1 : 0;
  event.tag = jobs;
  event.value = done;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::about_worker(EventKind kind, std::string_view id,
                                              std::uint64_t tag, std::uint64_t value,
                                              std::uint8_t rank) {
  EventFacts event;
  event.kind = kind;
  event.rank = rank;
  event.tag = tag;
  event.value = value;
  event.time_ms = store_.now_ms();
  event.job.hi = first_word(id);
  event.job.lo = first_word(id);
  with_text(event, id);
}

[[gnu::noinline]] void Tellings::starved(std::uint32_t q, std::uint64_t ms,
                                         std::uint64_t available) {
  EventFacts event;
  event.kind = EventKind::kQueueStarved;
  event.queue = q;
  event.tag = available;
  event.value = ms;
  log_.write(event);
}

}  // namespace ojs_shm::engine
