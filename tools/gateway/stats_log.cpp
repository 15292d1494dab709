// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats_log.hpp"

#include <algorithm>

#include "tools/gateway/json_text.hpp"
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

/// A counter never falls, but a segment may be replaced by another of its name.
std::uint64_t grown(std::uint64_t before, std::uint64_t now) { return now - std::min(before, now); }

std::string point_text(const StatsMark& before, const StatsMark& mark) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("timestamp", print_timestamp(mark.at_ms));
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
  const auto since = std::ranges::find_if(
      marks_, [&](const StatsMark& each) { return each.at_ms + kMinuteMs >= mark.at_ms; });
  const StatsMark& before = since == marks_.end() ? mark : *since;
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
    count(throughput, "processed_per_minute", grown(before.dispatched, mark.dispatched));
    count(throughput, "failed_per_minute", grown(before.discarded, mark.discarded));
    throughput.close();
    writer.value("sample", print_census(census));
  });
}

bool StatsLog::add(const Census& census, std::size_t workers) {
  const StatsMark mark = mark_of(census);
  const std::lock_guard lock(mutex_);
  // A test may have moved the clock back.
  if (marks_.empty() || mark.at_ms < marks_.back().at_ms ||
      mark.at_ms - marks_.back().at_ms >= kStepMs - kStepMs / 10) {
    marks_.push_back(mark);
    if (marks_.size() > kKept) marks_.pop_front();
  }
  if (watchers_ == 0) return false;
  ++latest_.number;
  latest_.text = std::make_shared<const std::string>(text_of(mark, census, workers));
  return true;
}

std::uint64_t StatsLog::discarded_within_minute(const Census& census) const {
  const StatsMark mark = mark_of(census);
  const std::lock_guard lock(mutex_);
  const auto since = std::ranges::find_if(
      marks_, [&](const StatsMark& each) { return each.at_ms + kMinuteMs >= mark.at_ms; });
  return since == marks_.end() ? 0 : grown(since->discarded, mark.discarded);
}

StatsLog::Look StatsLog::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::string StatsLog::history(std::uint64_t period_ms, std::size_t points) const {
  std::vector<StatsMark> wanted;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t end = marks_.empty() ? 0 : marks_.back().at_ms;
    for (const StatsMark& mark : marks_)
      if (mark.at_ms + period_ms >= end) wanted.push_back(mark);
  }
  // The newest always stays; before it each step-th.
  const std::size_t step = wanted.size() / (points + 1) + 1;
  std::string out;
  const StatsMark* before = nullptr;
  for (std::size_t i = wanted.empty() ? 0 : (wanted.size() - 1) % step; i < wanted.size();
       i += step) {
    if (before != nullptr) out += (out.empty() ? "" : ",") + point_text(*before, wanted[i]);
    before = &wanted[i];
  }
  return object([&](json::ObjectWriter& writer) {
    writer.text("period", print_duration(period_ms));
    count(writer, "interval_ms", step * kStepMs);
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
