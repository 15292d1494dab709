// SPDX-License-Identifier: Apache-2.0
#include "tools/top/sampler.hpp"

#include <algorithm>
#include <utility>

namespace ojs_shm::top {
namespace {

/// A counter that fell belongs to another segment, or to a process that took the place of another.
std::optional<double> rate(std::uint64_t now, std::uint64_t before, double seconds) {
  if (seconds <= 0 || now < before) return std::nullopt;
  return static_cast<double>(now - before) / seconds;
}

/// What each counter of a queue moved since the earlier look. A queue that was not there has begun
/// with nothing, and so has one whose counters fell: it was deleted, and made anew.
std::vector<std::uint64_t> moved(const std::vector<std::uint64_t>& now,
                                 const std::vector<std::uint64_t>* before) {
  if (before == nullptr || before->size() != now.size()) return now;
  std::vector<std::uint64_t> found(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] < (*before)[i]) return now;
    found[i] = now[i] - (*before)[i];
  }
  return found;
}

std::vector<std::optional<double>> rates(const std::vector<std::uint64_t>& moves, double seconds) {
  std::vector<std::optional<double>> found;
  for (const std::uint64_t jobs : moves) found.push_back(rate(jobs, 0, seconds));
  return found;
}

/// What each queue got of the jobs that a pool handed out; since it was made, when there was no
/// earlier look.
std::map<std::string, double> shares(const Census& census, const Mark* before) {
  std::map<std::string, std::uint64_t> old;
  if (before != nullptr) old.insert(before->pools.begin(), before->pools.end());
  std::map<std::string, double> found;
  for (const WorkerPoolInfo& pool : census.pools) {
    std::uint64_t all = 0;
    std::map<std::string, std::uint64_t> own;
    for (const auto& [queue, jobs] : pool.dispatched_total) {
      const std::string key = pool.name + " " + queue;
      all += own[key] = jobs - std::min(jobs, old[key]);
    }
    for (const auto& [key, jobs] : own)
      if (all != 0) found[key] = static_cast<double>(jobs) / static_cast<double>(all);
  }
  return found;
}

}  // namespace

Mark mark_of(const Census& census, Clock::time_point at) {
  Mark mark{at, {}, {}, {}};
  for (const QueueCensus& queue : census.queues) mark.queues[queue.info.name] = queue.counters;
  for (const WorkerCensus& worker : census.workers)
    mark.workers[worker.process] = worker.dispatched_total;
  for (const WorkerPoolInfo& pool : census.pools)
    for (const auto& [queue, jobs] : pool.dispatched_total)
      mark.pools.emplace_back(pool.name + " " + queue, jobs);
  return mark;
}

Sample::Span compare(const Census& census, const Mark& now, const Mark* before) {
  const double seconds =
      before == nullptr ? 0 : std::chrono::duration<double>(now.at - before->at).count();
  Sample::Span span;
  // The sum over the queues that are there: a total falls by what a deleted queue counted.
  std::vector<std::uint64_t> all(census.queue_counters.size());
  for (const QueueCensus& queue : census.queues) {
    const std::vector<std::uint64_t>* old = nullptr;
    if (before != nullptr)
      if (const auto found = before->queues.find(queue.info.name); found != before->queues.end())
        old = &found->second;
    const std::vector<std::uint64_t> moves = moved(queue.counters, old);
    for (std::size_t i = 0; i < moves.size() && i < all.size(); ++i) all[i] += moves[i];
    span.queues.push_back(rates(moves, seconds));
  }
  span.totals = rates(all, seconds);
  for (const auto& [process, jobs] : now.workers) {
    const auto found = before == nullptr ? now.workers.end() : before->workers.find(process);
    const bool known = before != nullptr && found != before->workers.end();
    span.workers[process] = known ? rate(jobs, found->second, seconds) : std::nullopt;
  }
  span.pool_shares = shares(census, before);
  return span;
}

void History::add(Mark mark) {
  using std::chrono::seconds;
  const Clock::time_point now = mark.at;
  marks_.push_back(std::move(mark));
  // Of the marks older than half a minute those go that are less than ten seconds after the one
  // before them.
  for (std::size_t i = 1; i + 1 < marks_.size() && now - marks_[i].at > seconds(35);)
    if (marks_[i].at - marks_[i - 1].at < seconds(10) && now - marks_[i + 1].at > seconds(31))
      marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  while (marks_.size() > 1 && now - marks_[1].at > kSpans[kSpanCount - 1]) marks_.pop_front();
}

const Mark* History::before(Clock::time_point now, std::chrono::seconds span) const {
  const Mark* found = nullptr;
  for (const Mark& mark : marks_)
    if (found == nullptr || now - mark.at >= span) found = &mark;
  return found;
}

std::optional<double> rate_of(const std::vector<CounterInfo>& counters,
                              const std::vector<std::optional<double>>& rates, CounterFlow flow) {
  std::optional<double> sum;
  for (std::size_t i = 0; i < counters.size() && i < rates.size(); ++i)
    if (counters[i].flow == flow && rates[i]) sum = sum.value_or(0) + *rates[i];
  return sum;
}

const Sample& Sampler::take() {
  const Clock::time_point begun = Clock::now();
  Census census = observer_.census();
  const Clock::time_point now = Clock::now();
  Mark mark = mark_of(census, now);
  for (std::size_t i = 0; i < kSpanCount; ++i)
    sample_.spans[i] = compare(census, mark, history_.before(now, kSpans[i]));
  history_.add(std::move(mark));

  const std::string_view broker = census.broker_state();
  const bool lives = broker == "alive" || broker == "stopped";
  if (lives) broker_seen_ = true, sample_.broker_lost_ms = 0;
  if (!lives && sample_.broker_lost_ms == 0)
    sample_.broker_lost_ms = broker_seen_ ? census.at_ms : census.broker_lost_ms;
  sample_.removed = census.removed;
  sample_.census = std::move(census);
  sample_.at = now;
  sample_.took_ms = std::chrono::duration<double, std::milli>(now - begun).count();
  return sample_;
}

bool Sampler::follow(const SegmentName& where) {
  Result<Observer> observer = Observer::attach(where);
  if (!observer) return false;
  observer_ = std::move(observer).value();
  history_.clear();
  sample_ = {};
  broker_seen_ = false;
  return true;
}

}  // namespace ojs_shm::top
