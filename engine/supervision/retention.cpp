// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/retention.hpp"

#include <algorithm>

#include "engine/workflows/workflow_look.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {
constexpr std::uint32_t kSlotsPerWalk = 16'384;
constexpr std::uint64_t kNever = ~0ULL, kLeastPauseMs = 100, kLongestPauseMs = 60'000;
}  // namespace

std::uint64_t Retention::shortest() const {
  std::uint64_t shortest = kNever;
  for (const std::uint64_t each : {completed_ms, discarded_ms, cancelled_ms})
    if (each != 0) shortest = std::min(shortest, each);
  return shortest == kNever ? 0 : shortest;
}

/// Counted before as well: a supervisor that looks at all sees in time what a death cuts off here.
void set_retention(Actor& actor, std::uint32_t queue, const Retention& wanted) {
  QueueRecord& record = actor.store().queue(queue);
  Word& retentions = actor.store().header().retentions;
  retentions.fetch_add(1, Point::kSetChanged);
  record.kept_completed.store(wanted.completed_ms, Point::kSetChanged);
  record.kept_discarded.store(wanted.discarded_ms, Point::kSetChanged);
  record.kept_cancelled.store(wanted.cancelled_ms, Point::kSetChanged);
  retentions.fetch_add(1, Point::kSetChanged);
  actor.bell().ring_supervisor_for(0);
}

bool may_go(const Store& store, const JobRecord& job, unsigned state, std::uint64_t now) {
  if (kept_for_workflow(store, job)) return false;
  if (!is_minded(job, state)) return true;
  const std::uint64_t until = minded_until(job);
  return until <= now || until == Uniqueness::kForEver;
}

/// 0: no queue has a time of its own.
std::uint64_t EndedJobs::shortest() const {
  std::uint64_t shortest = kNever;
  for (std::uint32_t q = 0; q < store_.queue_count(); ++q)
    if (const std::uint64_t own = Retention::of(store_.queue(q)).shortest(); own != 0)
      shortest = std::min(shortest, own);
  return shortest == kNever ? 0 : shortest;
}

void EndedJobs::look_at(std::uint32_t slot, std::uint64_t now) {
  const JobRecord& job = store_.job(slot);
  const Control control(job.control.load());
  if (!is_finished(control.state()) || job.queue.get() >= store_.queue_count()) return;
  const std::uint64_t kept = Retention::of(store_.queue(job.queue.get())).of_state(control.state());
  if (kept == 0 || job.flags().has(Policy::kDead)) return;
  const std::uint64_t end = job.finished_at.get() + kept;
  if (end > now)
    earliest_ = std::min(earliest_, end);
  else if (may_go(store_, job, control.state(), now))
    (void)actor_.slots().drop(slot, control);
}

/// A job that ends behind a walk is due no sooner than the shortest time after the walk began.
std::uint64_t EndedJobs::look(std::uint64_t now) {
  if (const std::uint64_t settings = store_.header().retentions.load(); settings != settings_) {
    settings_ = settings;
    walking_ = false;
    next_ = next_check_ = now;
  }
  if (settings_ == 0) return kNever;
  if (!walking_ && now >= next_check_) {
    next_check_ = now + kLongestPauseMs;
    const std::uint64_t own = shortest();
    if (own != shortest_) next_ = now;
    shortest_ = own;
  }
  if (shortest_ == 0) return next_check_;
  if (!walking_) {
    if (now < next_) return std::min(next_, next_check_);
    walking_ = true;
    cursor_ = 0;
    began_ = now;
    earliest_ = kNever;
  }
  const std::uint32_t end = std::min(store_.slots(), cursor_ + kSlotsPerWalk);
  for (; cursor_ < end; ++cursor_) look_at(cursor_, now);
  if (cursor_ < store_.slots()) return now;
  walking_ = false;
  const std::uint64_t pause = std::clamp(shortest_ / 16, kLeastPauseMs, kLongestPauseMs);
  return next_ = std::max(std::min(earliest_, began_ + shortest_), now + pause);
}

}  // namespace ojs_shm::engine
