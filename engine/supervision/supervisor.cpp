// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/supervisor.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "engine/limits/limit_setter.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tenants/tenant_turns.hpp"

namespace ojs_shm::engine {
namespace {
constexpr std::uint32_t kSlotsPerTick = 16'384;
constexpr int kTimersPerTick = 4'096;
constexpr std::uint64_t kLongestSleepMs = 60'000, kTurnsLookMs = 1'000;

/// When a job that waits for its time is to be looked at: it may end by itself before it is due.
std::uint64_t first_look(const JobRecord& job, unsigned state) {
  const unsigned waits = state == kSlotRetryable ? kSlotRetryable : kSlotScheduled;
  return earlier(job.due_at.get(), end_in(job, waits));
}
}  // namespace

void Supervisor::add(std::uint64_t due, std::uint32_t slot, std::uint32_t generation) {
  if (due == 0) return;
  announced_ = std::max(announced_ + 1, actor_.store().now_ms());
  heap_.push_back({due, announced_, slot, generation});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  // Cancelled jobs leave dead timers: no more than twice the slots are ever kept.
  if (heap_.size() > std::size_t{actor_.store().slots()} * 2 + 1024) built_ = false;
}

/// All timers from the slots themselves, as if each had been announced when its job was accepted.
void Supervisor::rebuild(std::uint64_t now) {
  heap_.clear();
  std::vector<std::tuple<std::uint64_t, JobId, Timer>> found;  // with when they came
  Store& store = actor_.store();
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    const unsigned state = Control(job.control.load()).state();
    if (state == kSlotFree || is_finished(state) || state >= kSlotTemplate) continue;
    const std::uint64_t expires = job.expires_at.get();
    if (state == kSlotScheduled || state == kSlotRetryable || is_exclusive(state))
      found.push_back(
          {job.available_at.get(),
           job.id(),
           {job.due_at.get() != 0 ? first_look(job, state) : now, 0, slot, job.generation.get()}});
    else if (expires != 0)
      found.push_back({job.available_at.get(), job.id(), {expires, 0, slot, job.generation.get()}});
  }
  std::ranges::sort(
      found, {}, [](const auto& each) { return std::pair(std::get<0>(each), std::get<1>(each)); });
  for (const auto& [available_at, id, timer] : found) {
    heap_.push_back(timer);
    heap_.back().announced = heap_.size();
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  built_ = true;
}

/// Takes over what other lanes announced. Returns false when there is more.
bool Supervisor::read_inbox(std::uint64_t now) {
  Store& store = actor_.store();
  const std::uint32_t ring = store.header().timers_ring;
  for (int i = 0; i < kTimersPerTick; ++i) {
    const shm::Peeked front = actor_.rings().peek(ring);
    if (front.empty()) return true;
    if (front.hint().index() < store.slots()) {
      const JobRecord& job = store.job(front.hint().index());
      if (timer_lives(store.segment(), front.hint())) {
        const unsigned state = Control(job.control.load()).state();
        const std::uint64_t expires = job.expires_at.get();
        const bool waits = state == kSlotScheduled || state == kSlotRetryable;
        add(waits          ? first_look(job, state)
            : expires != 0 ? expires
                           : now,
            front.hint().index(), job.generation.get());
      }
    }
    actor_.rings().retire(front);
  }
  return false;
}

std::uint64_t Supervisor::dispatches() const {
  Store& store = actor_.store();
  std::uint64_t sum = 0;
  const std::uint32_t lanes = std::min(store.segment().header().lanes_high.load(), store.lanes());
  for (std::uint32_t q = 0; q < store.queue_count(); ++q)
    for (std::uint32_t l = 0; l < lanes; ++l) sum += store.tally(q, l).dispatched.get_ordered();
  return sum;
}

/// Walks all slots for leases that are over: when the earliest end seen comes, and as often as the
/// shortest lease ever given asks for, but not at all while nothing has been dispatched since a
/// walk that found no active job.
std::uint64_t Supervisor::look_at_leases(std::uint64_t now, Report& report) {
  Store& store = actor_.store();
  const std::uint64_t shortest =
      std::max<std::uint64_t>(store.segment().header().shortest_lease_ms.load(), 10);
  if (lease_cursor_ == 0) {
    next_lease_look_ = std::min(next_lease_look_, lease_began_ + shortest);
    if (now < next_lease_look_) return next_lease_look_;
    const std::uint64_t seen = dispatches();
    if (seen == dispatches_seen_ && lease_earliest_ == 0) {
      lease_began_ = now;
      return next_lease_look_ = now + shortest;
    }
    dispatches_seen_ = seen;
    lease_began_ = now;
    lease_earliest_ = 0;
  }
  const std::uint64_t earliest = actor_.end_leases(lease_cursor_, lease_cursor_ + kSlotsPerTick,
                                                   now, report.leases_ended, forbids_retry_);
  if (earliest != 0)
    lease_earliest_ = lease_earliest_ == 0 ? earliest : std::min(lease_earliest_, earliest);
  lease_cursor_ += kSlotsPerTick;
  if (lease_cursor_ < store.slots()) return now;
  lease_cursor_ = 0;
  next_lease_look_ = lease_began_ + shortest;
  if (lease_earliest_ != 0) next_lease_look_ = std::min(next_lease_look_, lease_earliest_);
  return next_lease_look_ = std::max(next_lease_look_, now + 1);
}

/// Puts tenants back in line whose turn in their queue was lost by a death.
std::uint64_t Supervisor::look_at_turns(std::uint64_t now) {
  Store& store = actor_.store();
  const bool due = next_turns_ <= now;
  if (due) next_turns_ = now + kTurnsLookMs;
  std::uint64_t next = now + kLongestSleepMs;
  for (std::uint32_t q = 0; q < store.queue_count(); ++q) {
    if ((store.queue(q).flags.load() & kAcross) == 0) continue;
    next = next_turns_;
    if (due) actor_.gather_tenants(q);
  }
  return next;
}

/// The clock was set back: what was to be looked at later is looked at now.
void Supervisor::look_anew() {
  next_lease_look_ = lease_began_ = 0;
  next_retention_ = next_turns_ = next_workers_ = 0;
  dead_letters_.look_anew();
  ended_jobs_.look_anew();
}

std::uint64_t Supervisor::tick(std::uint64_t now, Report& report) {
  Store& store = actor_.store();
  if (now < last_tick_) look_anew();
  last_tick_ = now;
  if (const std::uint64_t lost = store.header().timers_lost.load(); lost != timers_lost_) {
    timers_lost_ = lost;
    built_ = false;
    report.hints_mended += actor_.mend_hints();
  }
  if (!built_) rebuild(now);
  std::uint64_t next = read_inbox(now) ? now + kLongestSleepMs : now;
  if (store.header().timers_lost.load() != timers_lost_) next = std::min(next, now + 100);
  for (int i = 0; !heap_.empty() && heap_.front().due <= now; ++i) {
    if (i == kTimersPerTick) {
      next = now;
      break;
    }
    const Timer timer = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const std::uint64_t again = actor_.tend(timer.slot, timer.generation, now);
    ++report.tended;
    add(again, timer.slot, timer.generation);
  }
  if (!heap_.empty()) next = std::min(next, std::max(heap_.front().due, now));
  next = std::min({next, look_at_leases(now, report), std::max(actor_.tend_limits(now), now + 1)});
  next = std::min(next, look_at_turns(now));
  if (const std::uint64_t end = LimitSetter(actor_).end_overrides(now); end != 0)
    next = std::min(next, std::max(end, now + 1));
  if (next_retention_ <= now) {
    const std::uint64_t again = actor_.slots().drop_expired(now);
    next_retention_ =
        again != 0 ? again : now + std::max<std::uint64_t>(store.header().retention_ms / 4, 1000);
  }
  if (store.header().retention_ms != 0) next = std::min(next, next_retention_);
  next = std::min({next, watch_.look(now), dead_letters_.look(now), ended_jobs_.look(now)});
  if (next_workers_ <= now) next_workers_ = registry_.look(now, report.lost_workers);
  next = std::min(next, std::max(next_workers_, now + 1));
  if (const std::uint64_t again = actor_.watch_pressure(now); again != 0)
    next = std::min(next, again);
  if (const std::uint64_t again = packer_.look(now); again != 0) next = std::min(next, again);
  actor_.slots().rest();
  return next;
}

}  // namespace ojs_shm::engine
