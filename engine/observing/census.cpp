// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/census.hpp"

#include <algorithm>

#include "engine/limits/limits.hpp"
#include "engine/pools/pool.hpp"
#include "engine/pools/samples.hpp"

namespace ojs_shm::engine {
namespace {

/// The walk asks for the memory of the slot that comes so many slots later.
constexpr std::uint32_t kAhead = 16;

/// The state that a slot had before a lane took it into its hands.
unsigned settled(unsigned state) {
  if (state == kSlotClaimed || state == kSlotMoving) return kSlotAvailable;
  return state == kSlotSettling ? kSlotActive : state;
}

/// Where the tenant of a queue stands in the list: open addressing, doubled when it is half full.
class TenantIndex {
 public:
  explicit TenantIndex(std::vector<Census::Tenant>& tenants) : tenants_(tenants), places_(1024) {}

  Census::Tenant& find(std::uint32_t queue, std::uint64_t tenant, std::uint32_t slot) {
    std::size_t at = place_of(queue, tenant);
    while (places_[at] != 0) {
      Census::Tenant& found = tenants_[places_[at] - 1];
      if (found.queue == queue && found.tenant == tenant) return found;
      at = (at + 1) & (places_.size() - 1);
    }
    tenants_.push_back({tenant, queue, slot, 0, 0, 0, 0, Census::kNever});
    places_[at] = static_cast<std::uint32_t>(tenants_.size());
    if (tenants_.size() * 2 > places_.size()) grow();
    return tenants_.back();
  }

 private:
  std::size_t place_of(std::uint32_t queue, std::uint64_t tenant) const {
    return mix_key(queue, tenant) & (places_.size() - 1);
  }
  void grow() {
    places_.assign(places_.size() * 2, 0);
    for (std::uint32_t i = 0; i < tenants_.size(); ++i) {
      std::size_t at = place_of(tenants_[i].queue, tenants_[i].tenant);
      while (places_[at] != 0) at = (at + 1) & (places_.size() - 1);
      places_[at] = i + 1;
    }
  }

  std::vector<Census::Tenant>& tenants_;
  std::vector<std::uint32_t> places_;
};

class Taker {
 public:
  Taker(const Store& store, Census& census)
      : store_(store),
        census_(census),
        tenants_(census.tenants),
        limiting_(store.header().limiting.load() != 0),
        since_(census.now_ms - std::min(census.now_ms, Census::kWindowMs)),
        shared_(census.queues.size()) {
    for (std::uint32_t q = 0; q < shared_.size(); ++q)
      shared_[q] = (store.queue(q).flags.load() & (kFair | kTenants)) != 0;
  }

  /// Asks for what look_at() reads of nearly every slot.
  void prefetch(std::uint32_t slot) const {
    const JobRecord& job = store_.job(slot);
    __builtin_prefetch(&job.control);
    __builtin_prefetch(&job.tenant);
  }

  void look_at(std::uint32_t slot) {
    const JobRecord& job = store_.job(slot);
    const Control control(job.control.load());
    const unsigned state = settled(control.state());
    const std::uint32_t q = job.queue.get();
    if (!holds_job(state) || q >= census_.queues.size()) return;
    Census::Queue& queue = census_.queues[q];
    ++queue.by_state[static_cast<std::size_t>(job_state(state))];
    if (state == kSlotAvailable) count_available(queue, job, control);
    if (state == kSlotActive) count_active(slot, job, control);
    if (state == kSlotScheduled || state == kSlotRetryable) count_timer(job, control);
    if (state == kSlotDiscarded && job.flags().has(Policy::kDead)) ++queue.dead_letters;
    if (state == kSlotCompleted) count_times(queue, job);
    // Jobs without a tenant are one tenant where tenants share or are bounded.
    if (const std::uint64_t tenant = job.tenant.get(); tenant != 0 || shared_[q])
      count_tenant(tenants_.find(q, tenant, slot), state, job);
  }

 private:
  void count_available(Census::Queue& queue, const JobRecord& job, Control control) {
    ++queue.available[rank_of_ring(control.ring())];
    queue.oldest_available_at = std::min(queue.oldest_available_at, job.available_at.get());
    const std::uint32_t lot = limiting_ ? second_limit(job.limits.get()) : store_.lots.size();
    if (lot < store_.lots.size() && store_.lots[lot].key() < census_.limits.size())
      ++census_.limits[store_.lots[lot].key()].waiting;
  }

  void count_active(std::uint32_t slot, const JobRecord& job, Control control) {
    if (const std::uint32_t pool = pool_of_word(job.pool_word.get()); pool >= 1 && pool <= kPools)
      ++census_.active_by_pool[pool - 1];
    if (limiting_) {
      const LimitList keys = limits_of(store_, slot, job, true);
      for (unsigned i = 0; i < keys.count; ++i)
        if (keys.key[i] < census_.limits.size()) ++census_.limits[keys.key[i]].active;
    }
    if (control.owner() < 1 || control.owner() > census_.lanes.size()) return;
    Census::Lane& lane = census_.lanes[control.owner() - 1];
    const std::uint64_t started = job.started_at.get();
    ++lane.active;
    if (started < lane.oldest_started_at) lane.oldest_started_at = started, lane.oldest_slot = slot;
    // A beat moves the end of the lease: it came one lease before that.
    const std::uint64_t end = Deadline(job.deadline.load()).ms(),
                        lease = job.lease_in_force_ms.get();
    const std::uint64_t beat = end > lease && end - lease <= census_.now_ms ? end - lease : 0;
    lane.last_sign = std::max({lane.last_sign, started, beat});
    const std::uint32_t q = job.queue.get();
    if (std::find(lane.queues.begin(), lane.queues.end(), q) == lane.queues.end())
      lane.queues.push_back(q);
  }

  void count_timer(const JobRecord& job, Control control) {
    const std::uint64_t due = job.due_at.get();
    if (due < census_.now_ms && job.control.load() == control.word)
      census_.overdue_ms = std::max(census_.overdue_ms, census_.now_ms - due);
  }

  void count_times(Census::Queue& queue, const JobRecord& job) const {
    const std::uint64_t available = job.available_at.get(), started = job.started_at.get(),
                        finished = job.finished_at.get();
    if (finished < since_ || finished < started || started == 0) return;
    queue.ran.add(finished - started);
    queue.waited.add(started - std::min(started, available));
  }

  void count_tenant(Census::Tenant& tenant, unsigned state, const JobRecord& job) const {
    if (counts_as_depth(job_state(state))) ++tenant.depth;
    if (state == kSlotAvailable) {
      ++tenant.available;
      tenant.oldest_available_at = std::min(tenant.oldest_available_at, job.available_at.get());
    }
    if (state == kSlotActive) ++tenant.active;
    if (const std::uint64_t started = job.started_at.get(); started != 0 && started >= since_)
      ++tenant.begun;
  }

  const Store& store_;
  Census& census_;
  TenantIndex tenants_;
  bool limiting_;
  std::uint64_t since_;
  std::vector<bool> shared_;
};

}  // namespace

Census take_census(const Store& store) {
  Census census;
  census.now_ms = store.now_ms();
  census.queues.resize(store.queue_count());
  census.lanes.resize(store.lanes());
  census.active_by_pool.resize(kPools);
  census.limits.resize(store.header().limiting.load() == 0 ? 0 : store.limit_keys.size());
  Taker taker(store, census);
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    taker.prefetch(slot + kAhead);
    taker.look_at(slot);
  }
  return census;
}

std::uint64_t last_trace_ms(const Store& store) {
  std::uint64_t last = store.segment().header().made_at_ms;
  const SampleTimes& times = store.sample_times();
  for (const Word& at : times.at_ms) last = std::max(last, at.load());
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    if (!holds_job(settled(Control(job.control.load()).state()))) continue;
    last = std::max({last, job.created_at.get(), job.available_at.get(), job.started_at.get(),
                     job.finished_at.get()});
  }
  return last;
}

}  // namespace ojs_shm::engine
