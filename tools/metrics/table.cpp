// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics/table.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ojs_shm/census.hpp>

#include "tools/metrics/queue_waits.hpp"

namespace ojs_shm::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

struct QueueNumber {
  const char* name;
  const char* help;
  MetricType type;
  std::uint64_t (*of)(const QueueInfo& queue);
};

/// Without those that expired, made room or went with their queue.
std::uint64_t given_up(const QueueInfo& queue) {
  return queue.failed_attempts_total - queue.retried_total;
}

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
    {"ojs_dead_letter_pruned_total", "Dead letters that were too old or too many.",
     MetricType::Counter, [](const QueueInfo& q) { return q.pruned_total; }},
    {"ojs_job_discarded_total", "Jobs given up after their last attempt.", MetricType::Counter,
     given_up},
    {"ojs_job_failed_total", "The same, by the name of ojs-observability.", MetricType::Counter,
     given_up},
    {"ojs_workers_busy", "Jobs held by workers, by the name of ojs-observability.",
     MetricType::Gauge,
     [](const QueueInfo& q) { return q.by_state[static_cast<std::size_t>(State::kActive)]; }},
    {"ojs_job_cancelled_total", "Jobs cancelled.", MetricType::Counter,
     [](const QueueInfo& q) { return q.cancelled_total; }},
    {"ojs_job_expired_total", "Jobs whose time ran out before they began.", MetricType::Counter,
     [](const QueueInfo& q) { return q.expired_total; }},
    {"ojs_unique_conflicts_total",
     "New jobs that met another of their unique key: refused, content with it, or replacing it.",
     MetricType::Counter, [](const QueueInfo& q) { return q.conflicts_total; }},
    {"ojs_backpressure_rejected_total", "Jobs that a bound refused.", MetricType::Counter,
     [](const QueueInfo& q) { return q.rejected_total; }},
    {"ojs_backpressure_dropped_total", "Jobs dropped for newer ones.", MetricType::Counter,
     [](const QueueInfo& q) { return q.dropped_total; }},
    {"ojs_backpressure_waiting", "Enqueues that wait for room.", MetricType::Gauge,
     [](const QueueInfo& q) { return q.waiting; }},
    {"ojs_job_priority_changes_total", "Changes of a priority after enqueue.", MetricType::Counter,
     [](const QueueInfo& q) { return q.reprioritized_total; }},
};

constexpr State kStates[] = {State::kScheduled, State::kAvailable, State::kPending,
                             State::kActive,    State::kCompleted, State::kRetryable,
                             State::kCancelled, State::kDiscarded};

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
  page.family("ojs_queue_jobs", "Jobs in the segment, by state.", MetricType::Gauge);
  for (const QueueInfo& queue : queues)
    for (const State state : kStates)
      page.add({{"queue", queue.name}, {"state", std::string(state_name(state))}},
               queue.by_state[static_cast<std::size_t>(state)]);
  page.family("ojs_queue_available_by_priority", "Available jobs of each priority.",
              MetricType::Gauge);
  for (const QueueInfo& queue : queues)
    for (const auto& [priority, jobs] : queue.available_by_priority)
      page.add({{"queue", queue.name}, {"priority", std::to_string(priority)}}, jobs);
}

void set_histogram(ClientMetric& metric, const WaitHistogram& waits) {
  metric.histogram.sample_count = waits.count;
  metric.histogram.sample_sum = static_cast<double>(waits.sum_ms) / 1000;
  for (const auto& [ms, jobs] : waits.up_to_ms)
    metric.histogram.bucket.push_back({jobs, static_cast<double>(ms) / 1000});
  metric.histogram.bucket.push_back({waits.count, std::numeric_limits<double>::infinity()});
}

void add_waits(Page& page, const Observer& observer) {
  page.family("ojs_job_wait_duration_by_priority", "Seconds from enqueue to being handed out.",
              MetricType::Histogram);
  const std::vector<LevelWaits> levels = observer.waits();
  for (const LevelWaits& level : levels)
    set_histogram(page.add({{"queue", level.queue}, {"priority", std::to_string(level.priority)}}),
                  level.from_enqueue);
  const auto queues = waits_by_queue(levels);
  page.family("ojs_job_queue_time_seconds", "Seconds from enqueue to being handed out.",
              MetricType::Histogram);
  for (const auto& [queue, waits] : queues)
    set_histogram(page.add({{"queue", queue}}), waits.from_enqueue);
  page.family("ojs_scheduling_queue_wait_duration",
              "Seconds from becoming available to being handed out.", MetricType::Histogram);
  for (const auto& [queue, waits] : queues)
    set_histogram(page.add({{"queue", queue}}), waits.from_available);
  page.family("ojs_job_duration_seconds",
              "Seconds from being handed out to the ack, the failure or the time limit.",
              MetricType::Histogram);
  for (const auto& [queue, waits] : queues) set_histogram(page.add({{"queue", queue}}), waits.runs);
}

/// Source: ojs-fair-scheduling 11.2.
void add_scheduling(Page& page, const Observer& observer,
                    const std::vector<WorkerPoolInfo>& pools) {
  const SchedulingStats stats = observer.scheduling_stats();
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
              "Times no worker took a queue's jobs for a rotation interval.", MetricType::Counter);
  for (const QueueScheduling& queue : stats.queues)
    page.add({{"queue", queue.queue}}, queue.starvation_events_total);
}

/// Jobs may bring as many keys as they like, so the page is bounded: first those that an operator
/// set, then those that hold the most jobs back.
void add_limits(Page& page, std::vector<LimitInfo> limits, const Options& options) {
  const std::size_t shown = std::min(limits.size(), options.max_limits);
  page.family("ojs_limits_not_shown", "Keys of limits for which the page has no series.",
              MetricType::Gauge);
  page.add({}, limits.size() - shown);
  std::stable_sort(limits.begin(), limits.end(), [](const LimitInfo& a, const LimitInfo& b) {
    return std::tuple(a.by_operator, a.waiting, a.active) >
           std::tuple(b.by_operator, b.waiting, b.active);
  });
  limits.resize(shown);
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

void add_crons(Page& page, const std::vector<CronInfo>& crons) {
  const auto family = [&](const char* name, const char* help, MetricType type, auto value) {
    page.family(name, help, type);
    for (const CronInfo& cron : crons) page.add({{"cron", cron.name}}, value(cron));
  };
  family("ojs_cron_runs_total", "Jobs that the times and triggers of the cron enqueued.",
         MetricType::Counter, [](const CronInfo& cron) { return cron.run_count; });
  family("ojs_cron_skipped_total", "Times of the cron that passed without a job.",
         MetricType::Counter, [](const CronInfo& cron) { return cron.skipped_count; });
  family("ojs_cron_next_run_seconds", "When it fires next, in Unix time; 0: never.",
         MetricType::Gauge, [](const CronInfo& cron) { return cron.next_run_at_ms / 1000; });
}

struct ProcessNumber {
  const char* name;
  const char* help;
  bool (*counts)(const ProcessInfo& process);
};

constexpr ProcessNumber kProcessNumbers[] = {
    {"ojs_segment_processes", "Attached processes.", [](const ProcessInfo& p) { return p.alive; }},
    {"ojs_segment_processes_stopped", "Attached processes that a signal or a debugger stopped.",
     [](const ProcessInfo& p) { return p.stopped; }},
    {"ojs_segment_processes_dead", "Dead processes that are not repaired yet.",
     [](const ProcessInfo& p) { return !p.alive; }},
    {"ojs_segment_processes_busy", "Attached processes that hold a job.",
     [](const ProcessInfo& p) { return p.alive && p.active_jobs != 0; }},
    {"ojs_segment_brokers", "1: a broker runs, and is not stopped.",
     [](const ProcessInfo& p) { return p.broker && p.alive && !p.stopped; }},
    {"ojs_segment_supervisors", "1: a process looks after timers, leases and deaths.",
     [](const ProcessInfo& p) { return p.supervisor && p.alive && !p.stopped; }},
};

void add_processes(Page& page, const SegmentInfo& info) {
  for (const ProcessNumber& number : kProcessNumbers) {
    page.family(number.name, number.help, MetricType::Gauge);
    page.add({}, static_cast<std::uint64_t>(
                     std::count_if(info.processes.begin(), info.processes.end(), number.counts)));
  }
  page.family("ojs_segment_handles", "Producers, workers and other handles of living processes.",
              MetricType::Gauge);
  std::uint64_t handles = 0;
  for (const ProcessInfo& process : info.processes)
    if (process.alive) handles += process.handles;
  page.add({}, handles);
}

void add_workers(Page& page, const Observer& observer) {
  page.family("ojs_workers_active", "Registered workers that are running.", MetricType::Gauge);
  const auto workers = observer.registered_workers();
  page.add({}, static_cast<std::uint64_t>(std::ranges::count_if(
                   workers, [](const auto& worker) { return worker.state() == "running"; })));
}

void add_memory(Page& page, const SegmentInfo& info) {
  page.family("ojs_segment_size_bytes", "Size of the segment.", MetricType::Gauge);
  page.add({}, info.size_bytes);
  page.family("ojs_segment_pool_used", "Units in use of each pool of the segment's memory.",
              MetricType::Gauge);
  for (const PoolInfo& pool : info.pools) page.add({{"pool", pool.name}}, pool.used);
  page.family("ojs_segment_pool_capacity", "Units that each pool has.", MetricType::Gauge);
  for (const PoolInfo& pool : info.pools) page.add({{"pool", pool.name}}, pool.capacity);
  page.family("ojs_segment_pool_unit_bytes", "Bytes of a unit of each pool.", MetricType::Gauge);
  for (const PoolInfo& pool : info.pools) page.add({{"pool", pool.name}}, pool.unit_bytes);
}

void add_whole(Page& page, const SegmentInfo& info) {
  page.family("ojs_segment_info", "1; its labels say what the segment is.", MetricType::Gauge);
  page.add({{"format", std::to_string(info.format)},
            {"version", info.created_by_version},
            {"convention", info.convention}},
           1);
  page.family("ojs_segment_made_timestamp_seconds", "When the segment was made, Unix time.",
              MetricType::Gauge);
  page.add({}).gauge.value = static_cast<double>(info.created_at_ms) / 1000;
  add_processes(page, info);
  add_memory(page, info);
  page.family("ojs_segment_deaths_total", "Processes found dead.", MetricType::Counter);
  page.add({}, info.deaths_total);
  page.family("ojs_segment_repairs_total", "Jobs mended after a death.", MetricType::Counter);
  page.add({}, info.repairs_total);
  page.family("ojs_segment_overdue_seconds",
              "How late the scheduled or retryable job is whose time came first.",
              MetricType::Gauge);
  page.add({}).gauge.value = static_cast<double>(info.overdue_ms) / 1000;
  page.family("ojs_segment_unmeasured_waits_total",
              "Dispatches that no histogram counts, for want of memory.", MetricType::Counter);
  page.add({}, info.unmeasured_waits_total);
}

bool knows_tenants(const QueueInfo& queue) {
  return queue.tenant_fairness.enabled || queue.tenant_max_depth != 0 ||
         queue.tenant_max_size_bytes != 0 || !queue.tenant_bounds.empty();
}

/// Of each queue the tenants with jobs waiting; those with the most first, for the bound of a page
/// is on their number.
std::map<std::string, std::vector<const TenantCensus*>> waiting_tenants(const Census& census) {
  std::map<std::string, std::vector<const TenantCensus*>> by_queue;
  for (const TenantCensus& tenant : census.tenants)
    if (tenant.depth != 0) by_queue[tenant.queue].push_back(&tenant);
  for (auto& [queue, tenants] : by_queue)
    std::stable_sort(tenants.begin(), tenants.end(),
                     [](const auto* a, const auto* b) { return a->depth > b->depth; });
  return by_queue;
}

void add_tenants(Page& page, const Census& census, const Options& options) {
  auto by_queue = waiting_tenants(census);
  for (const QueueCensus& each : census.queues) {
    if (!knows_tenants(each.info)) continue;
    const std::string& name = each.info.name;
    std::vector<const TenantCensus*>& tenants = by_queue[name];
    const std::size_t shown = std::min(tenants.size(), options.max_tenants);
    page.family("ojs_tenants_not_shown", "Tenants with jobs for which the page has no series.",
                MetricType::Gauge);
    page.add({{"queue", name}}, tenants.size() - shown);
    tenants.resize(shown);
    page.family("ojs_tenant_depth", "Jobs of a tenant: available, scheduled, retryable, pending.",
                MetricType::Gauge);
    for (const TenantCensus* tenant : tenants)
      page.add({{"queue", name}, {"tenant", tenant->tenant}}, tenant->depth);
    page.family("ojs_tenant_oldest_age_seconds",
                "How long the tenant's longest available job has been waiting; 0: none waits.",
                MetricType::Gauge);
    for (const TenantCensus* tenant : tenants)
      page.add({{"queue", name}, {"tenant", tenant->tenant}}).gauge.value =
          static_cast<double>(tenant->oldest_age_ms) / 1000;
  }
}

}  // namespace

void add_segment(Page& page, const Observer& observer, const Options& options) {
  add_segment(page, observer, observer.census(), options);
}

void add_segment(Page& page, const Observer& observer, const Census& census,
                 const Options& options) {
  page.begin_segment(census.segment.name);
  std::vector<QueueInfo> queues;
  for (const QueueCensus& each : census.queues) queues.push_back(each.info);
  add_queues(page, queues);
  add_tenants(page, census, options);
  add_waits(page, observer);
  add_limits(page, census.limits, options);
  add_crons(page, observer.crons());
  add_workers(page, observer);
  add_scheduling(page, observer, census.pools);
  add_whole(page, census.segment);
}

}  // namespace ojs_shm::metrics
