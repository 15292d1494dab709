// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdio>

#include <ojs_shm/observer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/priorities.hpp"
#include "tools/cli/view.hpp"
#include "tools/metrics/table.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "tools/shell/text_file.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/json/maintenance_text.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/queue_policy.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct StatsOptions {
  std::string out;
  bool metrics = false, priorities = false, scheduling = false, times = false;
  std::string queue;
  metrics::Options bounds;
};

void write_segment(json::ObjectWriter& writer, const SegmentInfo& info) {
  writer.text("name", info.name);
  writer.text("path", info.path);
  count(writer, "format", info.format);
  writer.text("convention", info.convention);
  writer.text("created_by_version", info.created_by_version);
  writer.text("created_at", print_timestamp(info.created_at_ms));
  count(writer, "size_bytes", info.size_bytes);
  count(writer, "slots", info.slots);
  count(writer, "max_body_bytes", info.max_body_bytes);
  count(writer, "default_lease_ms", info.default_lease_ms);
  count(writer, "retention_ms", info.retention_ms);
  count(writer, "dead_max_age_ms", info.dead_max_age_ms);
  count(writer, "dead_max_count", info.dead_max_count);
  writer.value("maintenance", print_maintenance(info.maintenance));
  writer.open("priority") += object([&](json::ObjectWriter& priority) {
    priority.number("min", info.priority_min);
    priority.number("max", info.priority_max);
    priority.number("default", info.priority_default);
  });
  writer.value("aging", internal::print_aging(info.aging, info.lower_first));
  writer.boolean("immutable_priorities", info.immutable_priorities);
  writer.boolean("events", info.events);
  count(writer, "deaths_total", info.deaths_total);
  count(writer, "repairs_total", info.repairs_total);
  if (info.last_repair) writer.value("last_repair", print_last_repair(*info.last_repair));
}

void write_pool(json::ObjectWriter& writer, const PoolInfo& pool) {
  writer.text("name", pool.name);
  count(writer, "used", pool.used);
  count(writer, "capacity", pool.capacity);
  count(writer, "unit_bytes", pool.unit_bytes);
  writer.text("option", pool.option);
  if (!pool.larger.empty()) writer.text("larger", pool.larger);
}

void write_process(json::ObjectWriter& writer, const ProcessInfo& process) {
  count(writer, "index", process.index);
  count(writer, "pid", process.pid);
  writer.boolean("alive", process.alive);
  writer.boolean("stopped", process.stopped);
  writer.boolean("broker", process.broker);
  writer.boolean("supervisor", process.supervisor);
  count(writer, "handles", process.handles);
  count(writer, "active_jobs", process.active_jobs);
}

template <class Item>
void write_list(json::ObjectWriter& writer, std::string_view name, const std::vector<Item>& items,
                void (*write)(json::ObjectWriter&, const Item&)) {
  std::string& out = writer.open(name) += '[';
  for (const Item& item : items) {
    if (&item != &items.front()) out += ',';
    out += object([&](json::ObjectWriter& inner) { write(inner, item); });
  }
  out += ']';
}

int print_json(const SegmentInfo& info, const std::vector<QueueInfo>& queues,
               const std::vector<CronInfo>& crons) {
  print_line(object([&](json::ObjectWriter& writer) {
    writer.open("segment") +=
        object([&](json::ObjectWriter& inner) { write_segment(inner, info); });
    write_list(writer, "queues", queues, &write_queue);
    std::string& all = writer.open("crons") += '[';
    for (const CronInfo& cron : crons) all += (all.back() == '[' ? "" : ",") + print_cron(cron);
    all += ']';
    write_list(writer, "processes", info.processes, &write_process);
    write_list(writer, "pools", info.pools, &write_pool);
  }));
  return shell::kExitOk;
}

std::string role_of(const ProcessInfo& process) {
  std::string role = process.broker ? "broker" : "";
  if (process.supervisor) role += role.empty() ? "supervisor" : ", supervisor";
  return role;
}

std::string state_of(const ProcessInfo& process) {
  return !process.alive ? "dead" : process.stopped ? "stopped" : "alive";
}

std::string text(std::uint64_t value) { return std::to_string(value); }

/// On a terminal tables; for scripts one list, whose first cell tells what the line speaks
/// of.
int print_text(const SegmentInfo& info, const std::vector<QueueInfo>& queues,
               const std::vector<CronInfo>& crons) {
  if (!shell::stdout_is_terminal()) {
    shell::Table lines({"WHAT", "NAME", "A", "B", "C", "D", "E", "F", "G", "H", "I"});
    lines.row({"segment", info.name, info.path, text(info.size_bytes), info.convention,
               text(info.deaths_total), text(info.repairs_total)});
    if (info.maintenance.enabled)
      lines.row(
          {"maintenance", info.maintenance.reason, print_timestamp(info.maintenance.since_ms)});
    if (info.last_repair)
      lines.row({"repair", text(info.last_repair->pid), text(info.last_repair->by_pid),
                 text(info.last_repair->mended), print_timestamp(info.last_repair->at_ms)});
    for (const auto& pool : info.pools)
      lines.row({"pool", pool.name, text(pool.used), text(pool.capacity)});
    for (const auto& process : info.processes) {
      lines.row({"process", text(process.pid), state_of(process), role_of(process),
                 text(process.handles), text(process.active_jobs)});
    }
    for (const auto& queue : queues) {
      lines.row({"queue", queue.name, text(queue.depth),
                 text(queue.by_state[static_cast<std::size_t>(State::kActive)]),
                 text(queue.enqueued_total), text(queue.completed_total),
                 text(queue.discarded_total), text(queue.retried_total), text(queue.returned_total),
                 text(queue.dead_letters), text(queue.oldest_age_ms)});
    }
    for (const CronInfo& cron : crons)
      lines.row({"cron", cron.name, cron.enabled ? "enabled" : "paused",
                 text(cron.enabled ? cron.next_run_at_ms : 0), text(cron.last_run_at_ms),
                 text(cron.run_count), text(cron.skipped_count), cron.job.queue});
    lines.print();
    return shell::kExitOk;
  }
  fmt::print("segment {}  {}  {}  convention {}  format {}  deaths {}  repairs {}\n", info.name,
             info.path, shell::bytes_text(info.size_bytes), info.convention, info.format,
             info.deaths_total, info.repairs_total);
  if (info.maintenance.enabled)
    fmt::print("in maintenance since {}: no job is handed out{}\n",
               print_timestamp(info.maintenance.since_ms),
               info.maintenance.reason.empty()
                   ? ""
                   : " (" + shell::printable(info.maintenance.reason) + ")");
  if (info.last_repair)
    fmt::print("last repair {}: process {} mended {} slots of dead process {}\n",
               print_timestamp(info.last_repair->at_ms), info.last_repair->by_pid,
               info.last_repair->mended, info.last_repair->pid);
  fmt::print("\n");
  shell::Table queue_table({"QUEUE", "DEPTH>", "ACTIVE>", "ENQUEUED>", "DISPATCHED>", "COMPLETED>",
                            "DISCARDED>", "CANCELLED>", "RETRIED>", "RETURNED>", "REJECTED>",
                            "DEAD>", "OLDEST>"});
  for (const auto& queue : queues) {
    queue_table.row(
        {queue.name, text(queue.depth),
         text(queue.by_state[static_cast<std::size_t>(State::kActive)]), text(queue.enqueued_total),
         text(queue.dispatched_total), text(queue.completed_total), text(queue.discarded_total),
         text(queue.cancelled_total), text(queue.retried_total), text(queue.returned_total),
         text(queue.rejected_total), text(queue.dead_letters),
         queue.oldest_age_ms == 0
             ? "-"
             : fmt::format("{:.1f} s", static_cast<double>(queue.oldest_age_ms) / 1000)});
  }
  queue_table.print();
  fmt::print("\n");
  shell::Table process_table({"PID>", "STATE!", "ROLE", "HANDLES>", "ACTIVE>"});
  for (const auto& process : info.processes) {
    process_table.row({text(process.pid), state_of(process), role_of(process),
                       text(process.handles), text(process.active_jobs)});
  }
  process_table.print();
  fmt::print("\n");
  if (!crons.empty()) {
    shell::Table cron_table({"CRON", "STATE!", "NEXT", "LAST", "RUNS>", "SKIPPED>", "QUEUE"});
    const auto time = [](std::uint64_t ms) {
      return ms == 0 ? std::string("-") : print_timestamp(ms);
    };
    for (const CronInfo& cron : crons)
      cron_table.row({cron.name, cron.enabled ? "enabled" : "paused",
                      time(cron.enabled ? cron.next_run_at_ms : 0), time(cron.last_run_at_ms),
                      text(cron.run_count), text(cron.skipped_count), cron.job.queue});
    cron_table.print();
    fmt::print("\n");
  }
  shell::Table pool_table({"POOL", "USED>", "CAPACITY>", "MEMORY>"});
  for (const auto& pool : info.pools) {
    pool_table.row({pool.name, text(pool.used), text(pool.capacity),
                    shell::bytes_text(pool.capacity * pool.unit_bytes)});
  }
  pool_table.print();
  return shell::kExitOk;
}

int print_last_minute(const Observer& observer, bool json) {
  const SchedulingStats stats = observer.scheduling_stats();
  if (json) {
    print_line(print_scheduling(stats));
    return shell::kExitOk;
  }
  shell::Table table({"QUEUE", "DISPATCHED>", "SHARE>", "MEAN WAIT>", "ACTIVE>", "STARVED>"});
  for (const QueueScheduling& queue : stats.queues)
    table.row({queue.queue, text(queue.dispatch_count_1m),
               fmt::format("{:.1f}%", queue.dispatch_ratio_1m * 100),
               fmt::format("{:.1f} ms", queue.avg_wait_ms), text(queue.active_jobs),
               text(queue.starvation_events_total)});
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

/// The bound that so large a share of them did not pass.
std::string within(const WaitHistogram& times, double share) {
  if (times.count == 0) return "-";
  for (const auto& [ms, jobs] : times.up_to_ms)
    if (static_cast<double>(jobs) >= share * static_cast<double>(times.count))
      return fmt::format("{} ms", ms);
  return "longer";
}

int print_times(const Observer& observer, bool json) {
  const std::vector<LevelWaits> levels = observer.waits();
  if (json) {
    print_line(print_waits(levels));
    return shell::kExitOk;
  }
  shell::Table table(
      {"QUEUE", "PRIORITY>", "WHAT", "JOBS>", "MEAN>", "HALF WITHIN>", "99% WITHIN>"});
  for (const LevelWaits& level : levels)
    for (const auto& [what, times] :
         {std::pair{"wait from enqueue", &level.from_enqueue},
          std::pair{"wait", &level.from_available}, std::pair{"run", &level.runs}})
      table.row({level.queue, std::to_string(level.priority), what, text(times->count),
                 times->count == 0
                     ? "-"
                     : fmt::format("{:.1f} ms", static_cast<double>(times->sum_ms) /
                                                    static_cast<double>(times->count)),
                 within(*times, 0.5), within(*times, 0.99)});
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

std::string metrics_page(const Observer& observer, const metrics::Options& bounds) {
  metrics::Page page;
  metrics::add_segment(page, observer, bounds);
  return page.prometheus_text();
}

int stats(const Request& request, const StatsOptions& options) {
  if (options.metrics && request.json)
    shell::refuse(Code::kInvalid,
                  "--metrics is a page for Prometheus and not JSON: give --metrics or --json");
  const Observer observer = must(Observer::attach(request.where));
  if (options.metrics) {
    if (!options.out.empty()) {
      must(shell::replace_text_file(options.out, metrics_page(observer, options.bounds)));
      return shell::kExitOk;
    }
    fmt::print("{}", metrics_page(observer, options.bounds));
    return shell::kExitOk;
  }
  if (options.times) return print_times(observer, request.json);
  if (options.scheduling) return print_last_minute(observer, request.json);
  if (options.priorities) return print_priorities(observer, options.queue, request.json);
  const SegmentInfo info = observer.segment_info();
  const auto queues = observer.queues();
  const auto crons = observer.crons();
  return request.json ? print_json(info, queues, crons) : print_text(info, queues, crons);
}

}  // namespace

void add_stats_command(CLI::App& app, Request& request) {
  auto [command, options] = add_command<StatsOptions>(
      app, request, "stats", "The segment, its queues, processes and memory pools", &stats);
  auto* priorities = command->add_flag("--priorities", options->priorities,
                                       "How many jobs of each priority are available");
  auto* scheduling = command
                         ->add_flag("--scheduling", options->scheduling,
                                    "What each queue handed out in the last minute")
                         ->excludes(priorities);
  auto* times = command
                    ->add_flag("--times", options->times,
                               "How long jobs waited and ran, by queue and priority")
                    ->excludes(priorities)
                    ->excludes(scheduling);
  auto* metrics =
      command->add_flag("--metrics", options->metrics, "All numbers as a page for Prometheus")
          ->excludes(priorities)
          ->excludes(scheduling)
          ->excludes(times);
  command
      ->add_option("--out", options->out,
                   "With --metrics: replace this file by the page, whole or not at all, for a "
                   "textfile collector")
      ->type_name("FILE")
      ->needs(metrics);
  for (CLI::Option* bound : metrics::add_bounds(*command, options->bounds)) bound->needs(metrics);
  command->add_option("queue", options->queue, "With --priorities: only this queue")
      ->type_name("QUEUE")
      ->needs(priorities);
}

}  // namespace ojs_shm::cli
