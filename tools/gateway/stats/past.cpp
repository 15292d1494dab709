// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats/past.hpp"

namespace ojs_shm::gateway {

void StatsMark::add(const QueueInfo& queue) {
  available += queue.by_state[static_cast<std::size_t>(State::kAvailable)];
  active += queue.by_state[static_cast<std::size_t>(State::kActive)];
  depth += queue.depth;
  dead += queue.dead_letters;
  oldest_age_ms = std::max(oldest_age_ms, queue.oldest_age_ms);
  enqueued += queue.enqueued_total;
  dispatched += queue.dispatched_total;
  completed += queue.completed_total;
  discarded += queue.discarded_total;
  failed_attempts += queue.failed_attempts_total;
  retried += queue.retried_total;
  rejected += queue.rejected_total;
}

void StatsMark::add(const WaitHistogram& waits) {
  waited.resize(waits.up_to_ms.size() + 1);
  for (std::size_t i = 0; i < waits.up_to_ms.size(); ++i)
    waited[i] += static_cast<std::uint32_t>(waits.up_to_ms[i].second);
  waited.back() += static_cast<std::uint32_t>(waits.count);
}

void Past::Row::push(const StatsMark& mark) {
  marks.push_back(mark);
  if (marks.size() > kept) marks.pop_front();
}

void Past::add(const StatsMark& mark) {
  // The clock of another segment of the name, or a clock set back: the past is of another time.
  if (mark.at_ms < latest_.at_ms)
    for (Row& row : rows_) row.marks.clear();
  for (Row& row : rows_) {
    if (row.marks.empty())
      row.push(mark);  // what happened is counted from here
    else if (period_of(latest_.at_ms, row.step_ms) != period_of(mark.at_ms, row.step_ms) &&
             row.marks.back().at_ms < latest_.at_ms)
      row.push(latest_);
  }
  latest_ = mark;
}

std::vector<StatsMark> Past::marks() const {
  std::vector<StatsMark> all;
  for (std::size_t row = std::size(rows_); row-- > 0;)
    for (const StatsMark& mark : rows_[row].marks)
      if (row == 0 || rows_[row - 1].marks.empty() ||
          mark.at_ms < rows_[row - 1].marks.front().at_ms)
        all.push_back(mark);
  if (!all.empty() && all.back().at_ms < latest_.at_ms) all.push_back(latest_);
  return all;
}

const StatsMark* Past::first_since(std::uint64_t at_ms) const {
  const auto& finest = rows_[0].marks;
  const auto found =
      std::ranges::find_if(finest, [&](const StatsMark& mark) { return mark.at_ms >= at_ms; });
  if (found != finest.end()) return &*found;
  return latest_.at_ms != 0 && latest_.at_ms >= at_ms ? &latest_ : nullptr;
}

}  // namespace ojs_shm::gateway
