// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats/stats_log.hpp"

#include <algorithm>

#include "tools/gateway/replies/json_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::uint64_t kMinuteMs = 60'000;

void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

StatsMark mark_of(const Census& census) {
  StatsMark mark{.at_ms = census.at_ms};
  for (const QueueCensus& queue : census.queues) {
    const QueueInfo& info = queue.info;
    for (std::size_t state = 0; state < std::size(mark.by_state); ++state)
      mark.by_state[state] += info.by_state[state];
    mark.depth += info.depth;
    mark.dead += info.dead_letters;
    mark.oldest_age_ms = std::max(mark.oldest_age_ms, info.oldest_age_ms);
    mark.enqueued += info.enqueued_total;
    mark.dispatched += info.dispatched_total;
    mark.completed += info.completed_total;
    mark.discarded += info.discarded_total;
    mark.cancelled += info.cancelled_total;
    mark.failed_attempts += info.failed_attempts_total;
    mark.retried += info.retried_total;
    mark.rejected += info.rejected_total;
  }
  mark.bytes_used = census.bytes_used();
  mark.bytes_total = census.segment.size_bytes;
  mark.deaths = census.segment.deaths_total;
  mark.repairs = census.segment.repairs_total;
  return mark;
}

std::string point_text(std::uint64_t begin_ms, const StatsMark& before, const StatsMark& mark) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("timestamp", print_timestamp(begin_ms));
    count(writer, "span_ms", grown(before.at_ms, mark.at_ms));
    count(writer, "enqueued", grown(before.enqueued, mark.enqueued));
    count(writer, "dispatched", grown(before.dispatched, mark.dispatched));
    count(writer, "processed", grown(before.completed, mark.completed));
    count(writer, "failed", grown(before.failed_attempts, mark.failed_attempts));
    count(writer, "discarded", grown(before.discarded, mark.discarded));
    count(writer, "retried", grown(before.retried, mark.retried));
    count(writer, "rejected", grown(before.rejected, mark.rejected));
    count(writer, "depth", mark.depth);
    count(writer, "available", mark.by_state[static_cast<std::size_t>(State::kAvailable)]);
    count(writer, "active", mark.by_state[static_cast<std::size_t>(State::kActive)]);
    count(writer, "dead", mark.dead);
    count(writer, "oldest_age_ms", mark.oldest_age_ms);
    count(writer, "bytes_used", mark.bytes_used);
    count(writer, "bytes_total", mark.bytes_total);
    count(writer, "deaths_total", mark.deaths);
    count(writer, "repairs_total", mark.repairs);
  });
}

}  // namespace

std::string StatsLog::text_of(const StatsMark& mark, const Census& census,
                              std::size_t workers) const {
  // Of the last minute, or of as much of it as is known.
  const auto& marks = rows_[0].marks;
  const auto since = std::ranges::find_if(
      marks, [&](const StatsMark& each) { return each.at_ms + kMinuteMs >= mark.at_ms; });
  const StatsMark& before = since == marks.end() ? mark : *since;
  return object([&](json::ObjectWriter& writer) {
    writer.text("timestamp", print_timestamp(mark.at_ms));
    count(writer, "queues", census.queues.size());
    count(writer, "workers", workers);
    json::ObjectWriter jobs(writer.open("jobs"));
    for (const State state :
         {State::kAvailable, State::kActive, State::kScheduled, State::kRetryable, State::kPending})
      count(jobs, state_name(state), mark.by_state[static_cast<std::size_t>(state)]);
    count(jobs, "completed", mark.completed);
    count(jobs, "discarded", mark.discarded);
    count(jobs, "cancelled", mark.cancelled);
    count(jobs, "dead", mark.dead);
    jobs.close();
    json::ObjectWriter throughput(writer.open("throughput"));
    count(throughput, "processed_per_minute", grown(before.completed, mark.completed));
    count(throughput, "failed_per_minute", grown(before.discarded, mark.discarded));
    throughput.close();
    writer.value("sample", print_census(census));
  });
}

bool StatsLog::add(const Census& census, std::size_t workers) {
  const StatsMark mark = mark_of(census);
  recent_ends_.add(census);
  const std::lock_guard lock(mutex_);
  for (Row& row : rows_) row.add(mark);
  if (watchers_ == 0) return false;
  ++latest_.number;
  latest_.text = std::make_shared<const std::string>(text_of(mark, census, workers));
  return true;
}

RecentEnds::Ended StatsLog::within_minute(const Census& census) const {
  const StatsMark mark = mark_of(census);
  const std::lock_guard lock(mutex_);
  const auto& marks = rows_[0].marks;
  const auto since = std::ranges::find_if(
      marks, [&](const StatsMark& each) { return each.at_ms + kMinuteMs >= mark.at_ms; });
  if (since == marks.end()) return {};
  return {grown(since->completed, mark.completed), grown(since->discarded, mark.discarded)};
}

StatsLog::Look StatsLog::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void StatsLog::Row::add(const StatsMark& mark) {
  // The clock of another segment of the name, or a clock set back: the past is of another time.
  if (!marks.empty() && mark.at_ms < marks.back().at_ms) marks.clear();
  if (!marks.empty() && mark.at_ms - marks.back().at_ms < step_ms - kStepMs / 10) return;
  marks.push_back(mark);
  if (marks.size() > kept) marks.pop_front();
}

/// Of each time those that lie closest together, in their order.
std::vector<StatsMark> StatsLog::all_marks() const {
  std::vector<StatsMark> all;
  const std::lock_guard lock(mutex_);
  for (std::size_t row = std::size(rows_); row-- > 0;)
    for (const StatsMark& mark : rows_[row].marks)
      if (row == 0 || rows_[row - 1].marks.empty() ||
          mark.at_ms < rows_[row - 1].marks.front().at_ms)
        all.push_back(mark);
  return all;
}

/// What happened between two marks belongs to the period in which the later one lies.
std::string StatsLog::history(const Span& span) const {
  const std::vector<StatsMark> marks = all_marks();
  const auto period_of = [&](std::size_t at) {
    return (marks[at].at_ms - 1) / span.period_ms * span.period_ms;
  };
  std::string out;
  for (std::size_t i = 1; i < marks.size();) {
    const std::uint64_t begin = period_of(i);
    const StatsMark& before = marks[i - 1];
    while (i + 1 < marks.size() && period_of(i + 1) == begin) ++i;
    const StatsMark& last = marks[i++];
    if (last.at_ms <= span.since_ms || begin >= span.until_ms) continue;
    out += (out.empty() ? "" : ",") + point_text(begin, before, last);
  }
  return object([&](json::ObjectWriter& writer) {
    writer.text("period", span.period);
    count(writer, "interval_ms", span.period_ms);
    writer.value("data", "[" + out + "]");
  });
}

void StatsLog::join() {
  const std::lock_guard lock(mutex_);
  ++watchers_;
}

void StatsLog::leave() {
  const std::lock_guard lock(mutex_);
  --watchers_;
}

bool StatsLog::has_watchers() const {
  const std::lock_guard lock(mutex_);
  return watchers_ != 0;
}

}  // namespace ojs_shm::gateway
