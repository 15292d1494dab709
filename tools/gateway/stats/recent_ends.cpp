// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats/recent_ends.hpp"

#include <algorithm>

namespace ojs_shm::gateway {
namespace {

RecentEnds::Ended ended(const QueueInfo& queue) {
  return {queue.completed_total, queue.discarded_total};
}

}  // namespace

void RecentEnds::Row::add(const Mark& mark) {
  // The clock of another segment of the name, or a clock set back: the past is of another time.
  if (!marks.empty() && mark.at_ms < marks.back().at_ms) marks.clear();
  if (!marks.empty() && mark.at_ms - marks.back().at_ms < step_ms - step_ms / 10) return;
  marks.push_back(mark);
  while (marks.front().at_ms + span_ms < mark.at_ms) marks.pop_front();
}

RecentEnds::Ended RecentEnds::Row::since(const QueueInfo& queue, std::uint64_t now_ms) const {
  const auto first =
      std::ranges::find_if(marks, [&](const Mark& mark) { return mark.at_ms + span_ms >= now_ms; });
  if (first == marks.end()) return {};
  // A queue that was not there then has come since.
  const auto there = first->queues.find(queue.name);
  const Ended before = there == first->queues.end() ? Ended() : there->second;
  const Ended now = ended(queue);
  return {grown(before.completed, now.completed), grown(before.failed, now.failed)};
}

void RecentEnds::add(const Census& census) {
  Mark mark{.at_ms = census.at_ms};
  for (const QueueCensus& queue : census.queues)
    mark.queues.emplace(queue.info.name, ended(queue.info));
  const std::lock_guard lock(mutex_);
  minute_.add(mark);
  hour_.add(mark);
}

RecentEnds::Of RecentEnds::of(const QueueInfo& queue, std::uint64_t now_ms) const {
  const std::lock_guard lock(mutex_);
  return {minute_.since(queue, now_ms), hour_.since(queue, now_ms)};
}

}  // namespace ojs_shm::gateway
