// SPDX-License-Identifier: Apache-2.0
#include "engine/pools/schedule_watch.hpp"

#include <algorithm>
#include <string>

#include "engine/limits/limits.hpp"
#include "engine/pools/pool_look.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

constexpr std::uint64_t kStarvedAfterMs = 30'000;  // source: fair scheduling 8.1

struct Waiting {
  std::uint64_t jobs = 0, since_ms = ~0ULL;
};
Waiting waiting_in(const Store& store, std::uint32_t q) {
  Waiting waiting;
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    if (Control(job.control.load()).state() != kSlotAvailable || job.queue.get() != q) continue;
    ++waiting.jobs;
    waiting.since_ms = std::min(waiting.since_ms, job.available_at.get());
  }
  return waiting;
}

}  // namespace

std::uint64_t ScheduleWatch::look(std::uint64_t now) {
  const SampleTimes& times = store_.sample_times();
  const std::uint64_t last = times.at_ms[times.last.load() % kSamples].load();
  if (last <= now && now - last < kSampleEveryMs) return last + kSampleEveryMs;
  so_far_ = dispatched_so_far(store_);
  take_sample(now);
  interval_ms_.assign(so_far_.size(), 0);
  for (std::uint32_t pool = 0; pool < kPools; ++pool)
    if (const auto plan = pool_plan(store_, pool)) {
      for (const std::uint32_t q : plan->queues)
        if (q < interval_ms_.size() &&
            (interval_ms_[q] == 0 || plan->interval_ms < interval_ms_[q]))
          interval_ms_[q] = plan->interval_ms;
      watch_pool(pool, *plan);
    }
  // A queue that has come since the last look was empty then.
  seen_.resize(so_far_.size(), {0, looked_ms_ != 0 ? looked_ms_ : now});
  for (std::uint32_t q = 0; q < so_far_.size(); ++q) watch_queue(q, now);
  looked_ms_ = now;
  return now + kSampleEveryMs;
}

void ScheduleWatch::take_sample(std::uint64_t now) {
  SampleTimes& times = store_.sample_times();
  const std::uint64_t at = (times.last.load() + 1) % kSamples;
  times.at_ms[at].store(0, Point::kSampleTaken);
  for (std::uint32_t q = 0; q < so_far_.size(); ++q) {
    store_.samples[q].dispatched[at].set(so_far_[q].jobs);
    store_.samples[q].waited_ms[at].set(so_far_[q].waited_ms);
  }
  times.at_ms[at].store(now, Point::kSampleTaken);  // PAIR sample
  times.last.store(at, Point::kSampleTaken);
}

/// 1. a job was served, or none can be: an episode ends; 2. the interval is not over; 3.
///    none waits after all; 4. one that
/// waits has not done so for the whole interval; 5. it starves, which is told once.
void ScheduleWatch::watch_queue(std::uint32_t q, std::uint64_t now) {
  Seen& seen = seen_[q];
  Word& starved = store_.samples[q].starved;
  const std::uint64_t interval = interval_ms_[q] != 0 ? interval_ms_[q] : kStarvedAfterMs;
  const auto is_well = [&](std::uint64_t since) {
    seen = {so_far_[q].jobs, since};
    if (const std::uint64_t word = starved.load(); word % 2 == 1)
      starved.store(word + 1, Point::kCounterMoved);
  };
  // 1
  if (so_far_[q].jobs != seen.dispatched || (store_.queue(q).flags.load() & kShut) != 0)
    return is_well(now);
  // 2
  if (now - std::min(now, seen.since_ms) <= interval) return;
  // 3
  if (!actor_.has_waiting(q)) return is_well(now);
  if (starved.load() % 2 == 1) return;
  const Waiting waiting = waiting_in(store_, q);
  const std::uint64_t since = std::max(seen.since_ms, std::min(waiting.since_ms, now));
  if (waiting.jobs == 0 || now - since <= interval) return is_well(since);  // 4
  starved.store(starved.load() + 1, Point::kCounterMoved);                  // 5
  if (actor_.tellings().on()) actor_.tellings().starved(q, now - since, waiting.jobs);
}

/// A pool is overloaded when it has as many active jobs as its limit allows, or all its workers as
/// many as they declared, whether jobs wait or not. Of a pool without either, nothing is known. The
/// walk over all slots is for the case that the limit's permits or the workers' seats speak for it.
void ScheduleWatch::watch_pool(std::uint32_t pool, const PoolPlan& plan) {
  const PoolCrew crew = pool_crew(store_, pool);
  const bool workers_full = crew.workers != 0 && crew.all_declared && crew.full;
  const bool limit_full = plan.concurrency != 0 && !has_permit(pool);
  if (!workers_full && !limit_full) return note_overload(pool, nullptr);
  const PoolLoad load = pool_load(store_, pool, plan);
  const bool is_full = (limit_full && load.active >= plan.concurrency) ||
                       (workers_full && load.active >= crew.concurrency);
  note_overload(pool, is_full ? &load : nullptr);
}

/// That no worker of the pool may take a job told once, until that is over.
void ScheduleWatch::note_overload(std::uint32_t pool, const PoolLoad* load) {
  Word& told = store_.pools[pool].overloaded;
  const std::uint64_t before = told.load();
  if (before != 0 && load == nullptr) told.store(0, Point::kCounterMoved);
  if (before != 0 || load == nullptr) return;
  if (told.cas_once(0, 1, Point::kCounterMoved) && actor_.tellings().on())
    actor_.tellings().overloaded(pool, *load);
}

/// Whether the limit of the pool leaves room for a job.
bool ScheduleWatch::has_permit(std::uint32_t pool) const {
  const std::uint32_t key =
      find_limit(store_, std::string(kPoolLimit).append(pool_name(store_, pool)));
  return key != kNoIndex && may_begin(store_, store_.limit_keys[key], store_.now_ms());
}

}  // namespace ojs_shm::engine
