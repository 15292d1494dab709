// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/timers.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "engine/tables/hint_lives.hpp"
#include "engine/tables/own_times.hpp"

namespace ojs_shm::engine {
namespace {
constexpr int kTimersPerCall = 4'096;

/// When a job that waits for its time is to be looked at: it may end by itself before it is due.
std::uint64_t first_look(const JobRecord& job, unsigned state) {
  const unsigned waits = state == kSlotRetryable ? kSlotRetryable : kSlotScheduled;
  return earlier(job.due_at.get(), end_in(job, waits));
}
}  // namespace

void Timers::add(std::uint64_t due, std::uint32_t slot, std::uint32_t generation) {
  if (due == 0) return;
  announced_ = std::max(announced_ + 1, actor_.store().now_ms());
  heap_.push_back({due, announced_, slot, generation});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  // Cancelled jobs leave dead timers: no more than twice the slots are ever kept.
  if (heap_.size() > std::size_t{actor_.store().slots()} * 2 + 1024) built_ = false;
}

/// All timers from the slots themselves, as if each had been announced when its job was accepted.
void Timers::rebuild(std::uint64_t now) {
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
bool Timers::read_inbox(std::uint64_t now) {
  Store& store = actor_.store();
  const std::uint32_t ring = store.header().timers_ring;
  for (int i = 0; i < kTimersPerCall; ++i) {
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

std::uint64_t Timers::look(std::uint64_t now, Report& report) {
  Store& store = actor_.store();
  if (const std::uint64_t lost = store.header().timers_lost.load(); lost != lost_) {
    lost_ = lost;
    built_ = false;
    report.hints_mended += actor_.mend_hints();
  }
  if (!built_) rebuild(now);
  std::uint64_t next = read_inbox(now) ? ~0ULL : now;
  if (store.header().timers_lost.load() != lost_) next = std::min(next, now + 100);
  for (int i = 0; !heap_.empty() && heap_.front().due <= now; ++i) {
    if (i == kTimersPerCall) return now;
    const Timer timer = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const std::uint64_t again = actor_.tend(timer.slot, timer.generation, now);
    ++report.tended;
    add(again, timer.slot, timer.generation);
  }
  return heap_.empty() ? next : std::min(next, std::max(heap_.front().due, now));
}

}  // namespace ojs_shm::engine
