// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ojs_shm::cli {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

/// One after the other; a family gets its members by add().
class Page {
 public:
  /// Every series carries the segment's name, so that those of several segments can stand in one
  /// place.
  explicit Page(std::string segment) : segment_(std::move(segment)) {}
  void family(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  void add(Labels labels, std::uint64_t value) {
    ClientMetric& metric = add(std::move(labels));
    const auto number = static_cast<double>(value);
    if (families_.back().type == MetricType::Counter)
      metric.counter.value = number;
    else
      metric.gauge.value = number;
  }
  ClientMetric& add(Labels labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    metric.label.push_back({"segment", segment_});
    return metric;
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::string segment_;
  std::vector<MetricFamily> families_;
};

struct QueueNumber {
  const char* name;
  const char* help;
  MetricType type;
  std::uint64_t (*of)(const QueueInfo& queue);
};

constexpr QueueNumber kQueueNumbers[] = {
    {"ojs_queue_depth", "Jobs available, scheduled, retryable or pending.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.depth; }},
    {"ojs_queue_size_bytes", "Stored bytes of those jobs.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.size_bytes; }},
    {"ojs_queue_active", "Jobs held by workers.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.by_state[static_cast<std::size_t>(State::kActive)]; }},
    {"ojs_queue_max_depth", "Bound of the depth; 0: none.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.max_depth; }},
    {"ojs_queue_max_size_bytes", "Bound of the stored bytes; 0: none.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.max_size_bytes; }},
    {"ojs_queue_paused", "1: accepts jobs and gives none.", MetricType::Gauge,
     [](const QueueInfo& q) { return std::uint64_t{q.paused}; }},
    {"ojs_job_enqueued_total", "Jobs accepted.", MetricType::Counter,
     [](const QueueInfo& q) { return q.enqueued_total; }},
    {"ojs_job_dispatched_total", "Jobs handed to workers.", MetricType::Counter,
     [](const QueueInfo& q) { return q.dispatched_total; }},
    {"ojs_job_completed_total", "Jobs done.", MetricType::Counter,
     [](const QueueInfo& q) { return q.completed_total; }},
    {"ojs_job_retried_total", "Failed attempts that are to be repeated later.", MetricType::Counter,
     [](const QueueInfo& q) { return q.retried_total; }},
    {"ojs_job_returned_total", "Attempts given back, or ended by a death or a lease.",
     MetricType::Counter, [](const QueueInfo& q) { return q.returned_total; }},
    {"ojs_job_failed_attempts_total", "Attempts that failed: handlers that gave up, and timeouts.",
     MetricType::Counter, [](const QueueInfo& q) { return q.failed_attempts_total; }},
    {"ojs_queue_dead_letters", "Discarded jobs that are kept for an operator.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.dead_letters; }},
    {"ojs_job_discarded_total", "Jobs given up after their last attempt.", MetricType::Counter,
     [](const QueueInfo& q) { return q.discarded_total - q.expired_total - q.dropped_total; }},
    {"ojs_job_cancelled_total", "Jobs cancelled.", MetricType::Counter,
     [](const QueueInfo& q) { return q.cancelled_total; }},
    {"ojs_job_expired_total", "Jobs whose time ran out before they began.", MetricType::Counter,
     [](const QueueInfo& q) { return q.expired_total; }},
    {"ojs_backpressure_rejected_total", "Jobs that a bound refused.", MetricType::Counter,
     [](const QueueInfo& q) { return q.rejected_total; }},
    {"ojs_backpressure_dropped_total", "Jobs dropped for newer ones.", MetricType::Counter,
     [](const QueueInfo& q) { return q.dropped_total; }},
    {"ojs_backpressure_waiting", "Enqueues that wait for room.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.waiting; }},
    {"ojs_job_priority_changes_total", "Changes of a priority after enqueue.", MetricType::Counter,
     [](const QueueInfo& q) { return q.reprioritized_total; }},
};

void add_queues(Page& page, const std::vector<QueueInfo>& queues) {
  for (const QueueNumber& number : kQueueNumbers) {
    page.family(number.name, number.help, number.type);
    for (const QueueInfo& queue : queues) page.add({{"queue", queue.name}}, number.of(queue));
  }
  page.family("ojs_queue_oldest_age_seconds",
              "How long the longest available job has been waiting; 0: none waits.",
              MetricType::Gauge);
  for (const QueueInfo& queue : queues)
    page.add({{"queue", queue.name}}).gauge.value = static_cast<double>(queue.oldest_age_ms) / 1000;
  page.family("ojs_backpressure_pressure",
              "Depth by bound, of the bound that is filled more; 0 without one.",
              MetricType::Gauge);
  for (const QueueInfo& queue : queues)
    page.add({{"queue", queue.name}}).gauge.value = queue.pressure;
  page.family("ojs_queue_available_by_priority", "Available jobs of each priority.",
              MetricType::Gauge);
  for (const QueueInfo& queue : queues)
    for (const auto& [priority, jobs] : queue.available_by_priority)
      page.add({{"queue", queue.name}, {"priority", std::to_string(priority)}}, jobs);
}

void set_histogram(ClientMetric& metric, const LevelWaits& waits) {
  metric.histogram.sample_count = waits.count;
  metric.histogram.sample_sum = static_cast<double>(waits.sum_ms) / 1000;
  for (const auto& [ms, jobs] : waits.up_to_ms)
    metric.histogram.bucket.push_back({jobs, static_cast<double>(ms) / 1000});
  metric.histogram.bucket.push_back({waits.count, std::numeric_limits<double>::infinity()});
}

void add_waits(Page& page, const Observer& observer) {
  page.family("ojs_job_wait_duration_by_priority",
              "Seconds from becoming available to being handed out.", MetricType::Histogram);
  std::map<std::string, LevelWaits> queues;
  for (const LevelWaits& level : observer.waits()) {
    set_histogram(page.add({{"queue", level.queue}, {"priority", std::to_string(level.priority)}}),
                  level);
    LevelWaits& queue = queues[level.queue];
    queue.count += level.count;
    queue.sum_ms += level.sum_ms;
    queue.up_to_ms.resize(level.up_to_ms.size());
    for (std::size_t i = 0; i < level.up_to_ms.size(); ++i)
      queue.up_to_ms[i] = {level.up_to_ms[i].first,
                           queue.up_to_ms[i].second + level.up_to_ms[i].second};
  }
  page.family("ojs_scheduling_queue_wait_duration",
              "Seconds from becoming available to being handed out.", MetricType::Histogram);
  for (const auto& [queue, waits] : queues) set_histogram(page.add({{"queue", queue}}), waits);
}

/// Source: ojs-fair-scheduling 11.2.
void add_scheduling(Page& page, const Observer& observer) {
  const SchedulingStats stats = observer.scheduling_stats();
  const std::vector<WorkerPoolInfo> pools = observer.pools();
  page.family("ojs_scheduling_dispatch_total", "Jobs handed to workers of a pool, or of none.",
              MetricType::Counter);
  for (const WorkerPoolInfo& pool : pools)
    for (const auto& [queue, jobs] : pool.dispatched_total)
      page.add({{"queue", queue}, {"pool", pool.name}}, jobs);
  for (const QueueScheduling& queue : stats.queues)
    page.add({{"queue", queue.queue}, {"pool", ""}}, queue.poolless_dispatched_total);
  page.family("ojs_scheduling_dispatch_ratio", "Share of the dispatches of the last minute.",
              MetricType::Gauge);
  for (const QueueScheduling& queue : stats.queues)
    page.add({{"queue", queue.queue}}).gauge.value = queue.dispatch_ratio_1m;
  page.family("ojs_scheduling_pool_utilization", "Active jobs of those that there may be.",
              MetricType::Gauge);
  for (const WorkerPoolInfo& pool : pools)
    if (pool.utilization() >= 0) page.add({{"pool", pool.name}}).gauge.value = pool.utilization();
  page.family("ojs_scheduling_starvation_events_total",
              "Times nobody took a queue's jobs for a rotation interval.", MetricType::Counter);
  for (const QueueScheduling& queue : stats.queues)
    page.add({{"queue", queue.queue}}, queue.starvation_events_total);
}

void add_limits(Page& page, const Observer& observer) {
  const std::vector<LimitInfo> limits = observer.limits();
  const auto family = [&](std::string name, std::string help, MetricType type, const auto& value) {
    page.family(std::move(name), std::move(help), type);
    for (const LimitInfo& limit : limits) page.add({{"key", limit.key}}, value(limit));
  };
  family("ojs_rate_limit_active", "Jobs of the key that are at work.", MetricType::Gauge,
         [](const LimitInfo& l) { return std::uint64_t{l.active}; });
  family("ojs_rate_limit_waiting", "Jobs that the key holds back.", MetricType::Gauge,
         [](const LimitInfo& l) { return std::uint64_t{l.waiting}; });
  family("ojs_rate_limit_exceeded_total", "How often the key held a job back.", MetricType::Counter,
         [](const LimitInfo& l) { return l.exceeded_total; });
}

void add_segment(Page& page, const SegmentInfo& info) {
  page.family("ojs_segment_processes", "Attached processes.", MetricType::Gauge);
  std::uint64_t alive = 0;
  for (const ProcessInfo& process : info.processes) alive += process.alive ? 1 : 0;
  page.add({}, alive);
  page.family("ojs_segment_pool_used", "Units in use of each pool of the segment's memory.",
              MetricType::Gauge);
  for (const PoolInfo& pool : info.pools) page.add({{"pool", pool.name}}, pool.used);
  page.family("ojs_segment_pool_capacity", "Units that each pool has.", MetricType::Gauge);
  for (const PoolInfo& pool : info.pools) page.add({{"pool", pool.name}}, pool.capacity);
  page.family("ojs_segment_deaths_total", "Processes found dead.", MetricType::Counter);
  page.add({}, info.deaths_total);
  page.family("ojs_segment_repairs_total", "Jobs mended after a death.", MetricType::Counter);
  page.add({}, info.repairs_total);
  page.family("ojs_segment_unmeasured_waits_total",
              "Dispatches that no histogram counts, for want of memory.", MetricType::Counter);
  page.add({}, info.unmeasured_waits_total);
}

}  // namespace

std::string metrics_page(const Observer& observer) {
  Page page(observer.segment_info().name);
  add_queues(page, observer.queues());
  add_waits(page, observer);
  add_limits(page, observer);
  add_scheduling(page, observer);
  add_segment(page, observer.segment_info());
  return page.text();
}

}  // namespace ojs_shm::cli
