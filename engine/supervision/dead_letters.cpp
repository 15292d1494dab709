// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/dead_letters.hpp"

#include <algorithm>

#include "engine/supervision/retention.hpp"

namespace ojs_shm::engine {

namespace {
constexpr std::uint32_t kSlotsPerLook = 16'384;
constexpr std::size_t kDropsPerLook = 4'096;
}  // namespace

/// Leaves in `found_` what goes: 1. all that are too old; 2. of the rest the oldest, while they
/// are too many.
void DeadLetters::choose(std::uint64_t now) {
  const auto younger = [](const Found& a, const Found& b) {
    return std::pair(a.finished_at, a.slot) > std::pair(b.finished_at, b.slot);
  };
  std::sort(found_.begin(), found_.end(), younger);
  std::size_t keep = found_.size();
  if (kept_.max_age_ms != 0 && kept_.max_age_ms < now)  // 1
    keep =
        static_cast<std::size_t>(std::find_if(found_.begin(), found_.end(),
                                              [&](const Found& each) {
                                                return each.finished_at <= now - kept_.max_age_ms;
                                              }) -
                                 found_.begin());
  if (kept_.max_count != 0) keep = std::min<std::size_t>(keep, kept_.max_count);  // 2
  found_.erase(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(keep));
}

std::uint64_t DeadLetters::look(std::uint64_t now) {
  const DeadRetention wanted = DeadRetention::of(store_);
  if (now >= next_ || !(wanted == kept_)) {  // a walk that goes on begins anew
    kept_ = wanted;
    walking_ = true;
    cursor_ = 0;
    found_.clear();
    next_ = next_prune(now);
  }
  if (kept_ == DeadRetention()) walking_ = false, found_.clear();
  if (walking_) {
    const std::uint32_t end = std::min(store_.slots(), cursor_ + kSlotsPerLook);
    for (; cursor_ < end; ++cursor_) {
      const JobRecord& job = store_.job(cursor_);
      const Control control(job.control.load());
      if (control.state() == kSlotDiscarded && job.flags().has(Policy::kDead) &&
          may_go(store_, job, kSlotDiscarded, now))
        found_.push_back({job.finished_at.get(), control, cursor_});
    }
    if (cursor_ < store_.slots()) return now;
    walking_ = false;
    choose(now);
  }
  std::vector<std::uint64_t> dropped(found_.empty() ? 0 : store_.queue_count());
  for (std::size_t i = 0; i < kDropsPerLook && !found_.empty(); ++i) {
    const Found oldest = found_.back();
    found_.pop_back();
    const std::uint32_t queue = store_.job(oldest.slot).queue.get();
    if (actor_.prune(oldest.slot, oldest.control) && queue < dropped.size()) ++dropped[queue];
  }
  for (std::uint32_t queue = 0; queue < dropped.size(); ++queue)
    if (dropped[queue] != 0 && actor_.tellings().on())
      actor_.tellings().about_queue(EventKind::kDeadLetterPruned, queue, dropped[queue]);
  return found_.empty() ? next_ : now;
}

}  // namespace ojs_shm::engine
