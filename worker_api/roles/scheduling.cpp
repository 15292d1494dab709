// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/scheduling.hpp>

#include <algorithm>

#include <ojs_shm/observer.hpp>

#include "engine/pools/samples.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {
namespace {

/// Of one queue, by the pools that there are.
std::uint64_t dispatched_by_pools(const engine::Store& store, std::uint32_t queue) {
  std::uint64_t jobs = 0;
  for (std::uint32_t i = 0; i < engine::kPools; ++i)
    for (const engine::Word& counter : store.pools[i].dispatched)
      if (const std::uint64_t word = counter.load(); word >> 52 == queue + 1)
        jobs += word & ((1ULL << 52) - 1);
  return jobs;
}

}  // namespace

SchedulingStats Observer::scheduling_stats() const {
  const engine::Store& store = segment_.attachment()->store();
  const std::vector<engine::Dispatched> window = engine::dispatched_in_window(store);
  SchedulingStats stats;
  stats.window_ms = engine::kWindowMs;
  std::uint64_t all = 0;
  for (const engine::Dispatched& queue : window) all += queue.jobs;
  for (std::uint32_t q = 0; q < window.size(); ++q) {
    QueueScheduling& info = stats.queues.emplace_back();
    const auto jobs = static_cast<double>(window[q].jobs);
    info.queue = store.queue_name(q);
    info.dispatch_count_1m = window[q].jobs;
    if (window[q].jobs != 0) {
      info.dispatch_ratio_1m = jobs / static_cast<double>(all);
      info.avg_wait_ms = static_cast<double>(window[q].waited_ms) / jobs;
    }
    info.starvation_events_total = engine::starvations(store.samples[q].starved.load());
    for (std::uint32_t l = 0; l < store.lanes(); ++l)
      info.poolless_dispatched_total += store.tally(q, l).dispatched.get_ordered();
    info.poolless_dispatched_total -=
        std::min(info.poolless_dispatched_total, dispatched_by_pools(store, q));
  }
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const engine::JobRecord& job = store.job(slot);
    const unsigned state = engine::Control(job.control.load()).state();
    if ((state == engine::kSlotActive || state == engine::kSlotSettling) &&
        job.queue.get() < stats.queues.size())
      ++stats.queues[job.queue.get()].active_jobs;
  }
  std::erase_if(stats.queues, [&store](const QueueScheduling& queue) {
    return store.deleted(store.find_queue(queue.queue));
  });
  return stats;
}

std::string print_scheduling(const SchedulingStats& stats) {
  std::string out;
  json::ObjectWriter writer(out);
  std::string& list = writer.open("queues");
  list += '[';
  for (const QueueScheduling& queue : stats.queues) {
    if (list.back() != '[') list += ',';
    json::ObjectWriter each(list);
    each.text("name", queue.queue);
    each.number("dispatch_count_1m", static_cast<std::int64_t>(queue.dispatch_count_1m));
    each.number("dispatch_ratio_1m", queue.dispatch_ratio_1m);
    each.number("avg_wait_ms", queue.avg_wait_ms);
    each.number("active_jobs", static_cast<std::int64_t>(queue.active_jobs));
    each.number("starved", static_cast<std::int64_t>(queue.starvation_events_total));
    each.close();
  }
  list += ']';
  writer.text("window", print_duration(stats.window_ms));
  writer.close();
  return out;
}

}  // namespace ojs_shm
