// SPDX-License-Identifier: Apache-2.0
#include "worker_api/c_api/c_api_json.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdint>

#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/maintenance_text.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/queue_policy.hpp"

namespace ojs_shm::c_api {
namespace {

using json::ObjectWriter;

void number(ObjectWriter& writer, std::string_view name, std::uint64_t count) {
  writer.number(name, static_cast<std::int64_t>(count));
}

template <class Item, class Append>
void append_list(std::string& out, const std::vector<Item>& items, Append append) {
  out += '[';
  for (const Item& item : items) {
    if (&item != &items.front()) out += ',';
    append(out, item);
  }
  out += ']';
}

template <class Item, class Append>
std::string list_of(const std::vector<Item>& items, Append append) {
  std::string out;
  append_list(out, items, append);
  return out;
}

void append_queue(std::string& out, const QueueInfo& queue) {
  ObjectWriter writer(out);
  writer.text("name", queue.name);
  if (queue.created_at_ms != 0) number(writer, "created_at_ms", queue.created_at_ms);
  writer.boolean("paused", queue.paused);
  number(writer, "max_depth", queue.max_depth);
  number(writer, "max_size_bytes", queue.max_size_bytes);
  number(writer, "depth", queue.depth);
  number(writer, "size_bytes", queue.size_bytes);
  writer.number("pressure", queue.pressure);
  number(writer, "waiting", queue.waiting);
  number(writer, "oldest_age_ms", queue.oldest_age_ms);
  number(writer, "dead_letters", queue.dead_letters);
  number(writer, "failed_attempts_total", queue.failed_attempts_total);
  ObjectWriter states(writer.open("by_state"));
  for (std::size_t state = 0; state < std::size(queue.by_state); ++state) {
    number(states, state_name(static_cast<State>(state)), queue.by_state[state]);
  }
  states.close();
  number(writer, "enqueued_total", queue.enqueued_total);
  number(writer, "dispatched_total", queue.dispatched_total);
  number(writer, "completed_total", queue.completed_total);
  number(writer, "discarded_total", queue.discarded_total);
  number(writer, "cancelled_total", queue.cancelled_total);
  number(writer, "retried_total", queue.retried_total);
  number(writer, "returned_total", queue.returned_total);
  number(writer, "rejected_total", queue.rejected_total);
  number(writer, "conflicts_total", queue.conflicts_total);
  number(writer, "dropped_total", queue.dropped_total);
  number(writer, "expired_total", queue.expired_total);
  number(writer, "pruned_total", queue.pruned_total);
  number(writer, "reprioritized_total", queue.reprioritized_total);
  ObjectWriter levels(writer.open("available_by_priority"));  // best first
  for (const auto& [priority, jobs] : queue.available_by_priority)
    number(levels, std::to_string(priority), jobs);
  levels.close();
  writer.value("policy", ojs_shm::print_queue_policy(queue));
  writer.boolean("aging_inherited", queue.aging_is_default);
  writer.value("age_rates", fmt::format("[{}]", fmt::join(queue.age_rates, ",")));
  writer.close();
}

void append_pool(std::string& out, const PoolInfo& pool) {
  ObjectWriter writer(out);
  writer.text("name", pool.name);
  number(writer, "used", pool.used);
  number(writer, "capacity", pool.capacity);
  number(writer, "unit_bytes", pool.unit_bytes);
  writer.text("option", pool.option);
  writer.text("larger", pool.larger);
  writer.close();
}

void append_process(std::string& out, const ProcessInfo& process) {
  ObjectWriter writer(out);
  number(writer, "index", process.index);
  number(writer, "pid", process.pid);
  writer.boolean("alive", process.alive);
  writer.boolean("stopped", process.stopped);
  writer.boolean("supervisor", process.supervisor);
  writer.boolean("broker", process.broker);
  number(writer, "handles", process.handles);
  number(writer, "active_jobs", process.active_jobs);
  writer.close();
}

void append_segment(std::string& out, const SegmentInfo& segment) {
  ObjectWriter writer(out);
  writer.text("name", segment.name);
  writer.text("path", segment.path);
  number(writer, "format", segment.format);
  writer.text("convention", segment.convention);
  writer.text("created_by_version", segment.created_by_version);
  writer.text("created_at", print_timestamp(segment.created_at_ms));
  number(writer, "size_bytes", segment.size_bytes);
  number(writer, "slots", segment.slots);
  number(writer, "max_body_bytes", segment.max_body_bytes);
  number(writer, "default_lease_ms", segment.default_lease_ms);
  number(writer, "retention_ms", segment.retention_ms);
  number(writer, "dead_max_age_ms", segment.dead_max_age_ms);
  number(writer, "dead_max_count", segment.dead_max_count);
  ObjectWriter priority(writer.open("priority"));
  priority.number("min", segment.priority_min);
  priority.number("max", segment.priority_max);
  priority.number("default", segment.priority_default);
  priority.close();
  writer.value("aging", internal::print_aging(segment.aging, segment.lower_first));
  writer.boolean("immutable_priorities", segment.immutable_priorities);
  writer.boolean("events", segment.events);
  writer.value("maintenance", print_maintenance(segment.maintenance));
  number(writer, "deaths_total", segment.deaths_total);
  number(writer, "repairs_total", segment.repairs_total);
  if (segment.last_repair) writer.value("last_repair", print_last_repair(*segment.last_repair));
  number(writer, "overdue_ms", segment.overdue_ms);
  writer.close();
}

}  // namespace

std::string print(const SegmentInfo& segment) {
  std::string out;
  ObjectWriter writer(out);
  append_segment(writer.open("segment"), segment);
  append_list(writer.open("pools"), segment.pools, append_pool);
  append_list(writer.open("processes"), segment.processes, append_process);
  writer.close();
  return out;
}

std::string print(const QueueInfo& queue) {
  std::string out;
  append_queue(out, queue);
  return out;
}

std::string print(const std::vector<QueueInfo>& queues) { return list_of(queues, append_queue); }

std::string print(const std::vector<JobInfo>& jobs) {
  return list_of(jobs, [](std::string& out, const JobInfo& job) { out += print_job(job); });
}

std::string print_fetched(const std::vector<JobInfo>& jobs) {
  return list_of(jobs, [](std::string& out, const JobInfo& job) {
    out += fmt::format("{{\"fence\":{},", job.fence);
    out.append(print_job(job), 1);
  });
}

std::string print(const std::vector<Violation>& violations) {
  return list_of(violations, [](std::string& out, const Violation& violation) {
    ObjectWriter writer(out);
    number(writer, "invariant", violation.invariant);
    writer.text("text", violation.text);
    writer.close();
  });
}

std::string print(const std::vector<Transition>& transitions) {
  return list_of(transitions, [](std::string& out, const Transition& transition) {
    out += print_transition(transition);
  });
}

std::string print(const std::vector<LimitInfo>& limits) {
  return list_of(limits,
                 [](std::string& out, const LimitInfo& limit) { out += print_limit(limit); });
}

std::string print(const std::vector<SegmentFile>& files) {
  return list_of(files, [](std::string& out, const SegmentFile& file) {
    ObjectWriter writer(out);
    writer.text("name", file.name);
    writer.text("path", file.path);
    number(writer, "size_bytes", file.size_bytes);
    writer.text("state", !file.readable ? "unreadable" : file.alive ? "alive" : "stale");
    if (!file.problem.empty()) writer.text("problem", file.problem);
    writer.close();
  });
}

}  // namespace ojs_shm::c_api
