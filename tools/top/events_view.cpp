// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::top {
namespace {

std::string detail_of(const Event& event) {
  if (event.pid != 0)
    return fmt::format("{} by {}, {} slots", event.pid, event.repaired_by, event.mended);
  if (event.error) return event.error->code + " " + event.error->message;
  if (!event.limit_key.empty()) return event.limit_key;
  if (!event.pool.empty()) return event.pool;
  if (event.bound != 0) return fmt::format("{} of {} {}", event.depth, event.bound, event.unit);
  if (!event.worker_id.empty())
    return event.worker_id + (event.reason.empty() ? "" : ": ") + std::string(event.reason);
  if (!event.cron_name.empty())
    return event.cron_name + (event.reason.empty() ? "" : ": ") + std::string(event.reason);
  if (event.count != 0) return fmt::format("{} jobs", event.count);
  if (event.duration_ms != 0) return duration_text(event.duration_ms);
  if (event.previous_priority != event.priority && event.type == "priority.changed")
    return fmt::format("{} -> {}", event.previous_priority, event.priority);
  return "-";
}

}  // namespace

Grid events_grid(const Sample& sample, const EventLog& log) {
  Grid grid;
  grid.nothing = sample.census.segment.events
                     ? "no event yet"
                     : "events are off: `ojs-shm events --on` turns them on for every process";
  grid.columns = {{"TIME"}, {"EVENT"},          {"QUEUE"},         {"JOB"},
                  {"TYPE"}, {"PRIORITY", true}, {"ATTEMPT", true}, {"DETAIL"}};
  for (auto event = log.events.rbegin(); event != log.events.rend(); ++event) {
    Row row{event->id, {}, {}};
    row.cells = {text_cell(print_timestamp(event->time_ms).substr(11)),
                 text_cell(event->type),
                 text_cell(event->queue.empty() ? "-" : event->queue),
                 text_cell(event->job_id.empty() ? "-" : event->job_id),
                 text_cell(event->job_type.empty() ? "-" : event->job_type),
                 {std::to_string(event->priority), static_cast<double>(event->priority), {}},
                 count_cell(event->attempt),
                 text_cell(detail_of(*event))};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

Grid past_grid(const Observer& observer) {
  constexpr std::size_t kMost = 1000;
  Grid grid;
  grid.nothing = "no job has changed its state yet";
  grid.columns = {{"TIME"}, {"JOB"}, {"QUEUE"}, {"FROM"}, {"TO"}, {"HANDLE", true}, {"PID", true}};
  const std::vector<Transition> transitions = observer.recent(kMost);
  for (std::size_t i = transitions.size(); i-- > 0;) {
    const Transition& each = transitions[i];
    Row row{fmt::format("{} {}", i, each.job), {}, {}};
    row.cells = {text_cell(print_timestamp(each.time_ms).substr(11)),
                 text_cell(each.job.empty() ? fmt::format("slot {}", each.slot) : each.job),
                 text_cell(each.queue.empty() ? "-" : each.queue),
                 text_cell(each.from),
                 text_cell(each.to),
                 count_cell(each.handle),
                 each.pid == 0 ? text_cell("-") : count_cell(each.pid)};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

Grid counters_grid(const Sample& sample) {
  const Census& census = sample.census;
  Grid grid;
  grid.columns = {{"OF"},          {"COUNTER"},      {"UNIT"},        {"VALUE", true},
                  {"/S 5S", true}, {"/S 30S", true}, {"/S 5M", true}, {"CAPACITY", true}};
  const auto add = [&grid](const std::string& of, const CounterInfo& info,
                           std::uint64_t value) -> Row& {
    Row& row = grid.rows.emplace_back(Row{of + " " + info.label, {}, {}});
    row.cells = {text_cell(of), text_cell(info.label), text_cell(info.unit), count_cell(value)};
    return row;
  };
  for (const PoolInfo& pool : census.segment.pools) {
    Row& row = add("memory", {0, pool.name, "objects", CounterFlow::kNone}, pool.used);
    for (std::size_t i = 0; i < kSpanCount; ++i) row.cells.push_back(rate_cell({}));
    row.cells.push_back(count_cell(pool.capacity));
  }
  for (std::size_t i = 0; i < census.segment_counters.size(); ++i)
    add("segment", census.segment_counters[i], census.segment_values[i]);
  for (std::size_t q = 0; q < census.queues.size(); ++q)
    for (std::size_t i = 0; i < census.queue_counters.size(); ++i) {
      const QueueCensus& queue = census.queues[q];
      Row& row = add("queue " + queue.info.name, census.queue_counters[i],
                     i < queue.counters.size() ? queue.counters[i] : 0);
      for (const Sample::Span& span : sample.spans)
        row.cells.push_back(rate_cell(q < span.queues.size() && i < span.queues[q].size()
                                          ? span.queues[q][i]
                                          : std::nullopt));
    }
  return grid;
}

}  // namespace ojs_shm::top
