// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats/stats_log.hpp"

#include <algorithm>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/metrics/queue_waits.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::uint64_t kMinuteMs = 60'000;

void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

StatsMark mark_of(const Census& census) {
  StatsMark mark{.at_ms = census.at_ms};
  for (const QueueCensus& queue : census.queues) mark.add(queue.info);
  mark.bytes_used = census.bytes_used();
  mark.bytes_total = census.segment.size_bytes;
  mark.deaths = census.segment.deaths_total;
  mark.repairs = census.segment.repairs_total;
  return mark;
}

/// How many jobs of all queues are in a state, and how many were cancelled since the beginning.
std::uint64_t sum_of(const Census& census, State state) {
  std::uint64_t jobs = 0;
  for (const QueueCensus& queue : census.queues)
    jobs += queue.info.by_state[static_cast<std::size_t>(state)];
  return jobs;
}
std::uint64_t cancelled_of(const Census& census) {
  std::uint64_t jobs = 0;
  for (const QueueCensus& queue : census.queues) jobs += queue.info.cancelled_total;
  return jobs;
}

/// Of the jobs that began between two marks, the bound that so many of 1,000 did not exceed.
std::uint64_t waited_ms(const StatsMark& before, const StatsMark& mark,
                        const std::vector<std::uint64_t>& bounds, unsigned permille) {
  WaitHistogram waits;
  if (mark.waited.size() != bounds.size() + 1) return 0;
  const auto since = [&](std::size_t i) -> std::uint64_t {
    return mark.waited[i] - (i < before.waited.size() ? before.waited[i] : 0);
  };
  for (std::size_t i = 0; i < bounds.size(); ++i) waits.up_to_ms.emplace_back(bounds[i], since(i));
  waits.count = since(bounds.size());
  return metrics::quantile_ms(waits, permille);
}

std::string point_text(std::uint64_t begin_ms, const StatsMark& before, const StatsMark& mark,
                       const std::vector<std::uint64_t>& wait_bounds) {
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
    count(writer, "latency_p50_ms", waited_ms(before, mark, wait_bounds, 500));
    count(writer, "latency_p99_ms", waited_ms(before, mark, wait_bounds, 990));
    count(writer, "depth", mark.depth);
    count(writer, "available", mark.available);
    count(writer, "active", mark.active);
    count(writer, "dead", mark.dead);
    count(writer, "oldest_age_ms", mark.oldest_age_ms);
    if (mark.bytes_total == 0) return;  // of a queue
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
  const StatsMark* const since = all_.first_since(mark.at_ms - std::min(mark.at_ms, kMinuteMs));
  const StatsMark& before = since == nullptr ? mark : *since;
  return object([&](json::ObjectWriter& writer) {
    writer.text("timestamp", print_timestamp(mark.at_ms));
    count(writer, "queues", census.queues.size());
    count(writer, "workers", workers);
    json::ObjectWriter jobs(writer.open("jobs"));
    for (const State state :
         {State::kAvailable, State::kActive, State::kScheduled, State::kRetryable, State::kPending})
      count(jobs, state_name(state), sum_of(census, state));
    count(jobs, "completed", mark.completed);
    count(jobs, "discarded", mark.discarded);
    count(jobs, "cancelled", cancelled_of(census));
    count(jobs, "dead", mark.dead);
    jobs.close();
    json::ObjectWriter throughput(writer.open("throughput"));
    count(throughput, "processed_per_minute", grown(before.completed, mark.completed));
    count(throughput, "failed_per_minute", grown(before.discarded, mark.discarded));
    throughput.close();
    writer.value("sample", print_census(census));
  });
}

bool StatsLog::add(const Census& census, const std::vector<LevelWaits>& waits,
                   std::size_t workers) {
  StatsMark mark = mark_of(census);
  for (const LevelWaits& level : waits) mark.add(level.from_available);
  recent_ends_.add(census);
  const std::lock_guard lock(mutex_);
  if (wait_bounds_.empty() && !waits.empty())
    for (const auto& [ms, jobs] : waits.front().from_available.up_to_ms) wait_bounds_.push_back(ms);
  all_.add(mark);
  add_queues(census, waits);
  seen_ms_ = mark.at_ms;
  if (watchers_ == 0) return false;
  ++latest_.number;
  latest_.text = std::make_shared<const std::string>(text_of(mark, census, workers));
  return true;
}

void StatsLog::add_queues(const Census& census, const std::vector<LevelWaits>& waits) {
  std::map<std::string, StatsMark, std::less<>> marks;
  for (const QueueCensus& queue : census.queues) {
    StatsMark& mark = marks[queue.info.name];
    mark.at_ms = census.at_ms;
    mark.add(queue.info);
  }
  for (const LevelWaits& level : waits)
    if (const auto mark = marks.find(level.queue); mark != marks.end())
      mark->second.add(level.from_available);

  std::erase_if(queues_, [&](const auto& past) { return !marks.contains(past.first); });
  for (const auto& [name, mark] : marks) {
    auto past = queues_.find(name);
    if (past == queues_.end()) {
      if (queues_.size() == kMostQueues) continue;
      past = queues_.emplace(name, Past(0)).first;
      // It was not there at the look before.
      if (seen_ms_ != 0) past->second.add({.at_ms = seen_ms_});
    }
    past->second.add(mark);
  }
}

RecentEnds::Ended StatsLog::within_minute(const Census& census) const {
  const StatsMark mark = mark_of(census);
  const std::lock_guard lock(mutex_);
  const StatsMark* const since = all_.first_since(mark.at_ms - std::min(mark.at_ms, kMinuteMs));
  if (since == nullptr) return {};
  return {grown(since->completed, mark.completed), grown(since->discarded, mark.discarded)};
}

StatsLog::Look StatsLog::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

/// What happened between two marks belongs to the period in which the later one lies.
std::optional<std::string> StatsLog::history(const Span& span) const {
  std::vector<StatsMark> marks;
  std::vector<std::uint64_t> bounds;
  {
    const std::lock_guard lock(mutex_);
    const auto of_queue = queues_.find(span.queue);
    if (span.queue.empty())
      marks = all_.marks();
    else if (of_queue != queues_.end())
      marks = of_queue->second.marks();
    else if (queues_.size() == kMostQueues)
      return std::nullopt;
    bounds = wait_bounds_;
  }
  const auto begin_of = [&](std::size_t at) { return period_of(marks[at].at_ms, span.period_ms); };
  std::string out;
  for (std::size_t i = 1; i < marks.size();) {
    const std::uint64_t begin = begin_of(i);
    const StatsMark& before = marks[i - 1];
    while (i + 1 < marks.size() && begin_of(i + 1) == begin) ++i;
    const StatsMark& last = marks[i++];
    if (last.at_ms <= span.since_ms || begin >= span.until_ms) continue;
    out += (out.empty() ? "" : ",") + point_text(begin, before, last, bounds);
  }
  return object([&](json::ObjectWriter& writer) {
    if (!span.queue.empty()) writer.text("queue", span.queue);
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
