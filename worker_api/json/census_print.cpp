// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/census.hpp>

#include <algorithm>

#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {
namespace {

using json::ObjectWriter;

void count(ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

template <class Items, class Write>
void list(ObjectWriter& writer, std::string_view name, const Items& items, Write write) {
  std::string& out = writer.open(name) += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    ObjectWriter each(out);
    write(each, item);
    each.close();
  }
  out += ']';
}

void names(ObjectWriter& writer, std::string_view name, const std::vector<std::string>& items) {
  std::string& out = writer.open(name) += '[';
  for (const std::string& item : items) {
    if (&item != &items.front()) out += ',';
    json::append_quoted(out, item);
  }
  out += ']';
}

void counters(ObjectWriter& writer, std::string_view name, const std::vector<CounterInfo>& infos,
              const std::vector<std::uint64_t>& values) {
  ObjectWriter inner(writer.open(name));
  for (std::size_t i = 0; i < infos.size() && i < values.size(); ++i)
    count(inner, infos[i].label, values[i]);
  inner.close();
}

void durations(ObjectWriter& writer, std::string_view name, const Durations& times) {
  ObjectWriter inner(writer.open(name));
  count(inner, "count", times.count);
  count(inner, "p50_ms", times.p50_ms);
  count(inner, "p99_ms", times.p99_ms);
  inner.close();
}

void write_segment(ObjectWriter& writer, const Census& census) {
  const SegmentInfo& info = census.segment;
  ObjectWriter segment(writer.open("segment"));
  segment.text("name", info.name);
  segment.text("path", info.path);
  segment.text("convention", info.convention);
  count(segment, "format", info.format);
  segment.text("broker", census.broker_state());
  segment.text("supervisor", census.supervisor_state());
  segment.boolean("post_mortem", census.post_mortem);
  const std::uint64_t age = census.at_ms - std::min(census.at_ms, info.created_at_ms);
  segment.number("uptime_s", static_cast<double>(age) / 1000);
  count(segment, "bytes_total", info.size_bytes);
  count(segment, "bytes_used", census.bytes_used());
  count(segment, "overdue_ms", info.overdue_ms);
  list(segment, "memory", info.pools, [](ObjectWriter& pool, const PoolInfo& each) {
    pool.text("name", each.name);
    count(pool, "used", each.used);
    count(pool, "capacity", each.capacity);
    count(pool, "unit_bytes", each.unit_bytes);
  });
  counters(segment, "counters", census.segment_counters, census.segment_values);
  if (info.last_repair) segment.value("last_repair", print_last_repair(*info.last_repair));
  segment.close();
}

void write_queue(ObjectWriter& writer, const Census& census, const QueueCensus& queue) {
  const QueueInfo& info = queue.info;
  writer.text("name", info.name);
  writer.text("state", queue.state());
  writer.boolean("paused", info.paused);
  writer.boolean("starving", queue.starving);
  count(writer, "starved", queue.starved_total);
  count(writer, "depth", info.depth);
  count(writer, "size_bytes", info.size_bytes);
  count(writer, "active", info.by_state[static_cast<std::size_t>(State::kActive)]);
  count(writer, "oldest_age_ms", info.oldest_age_ms);
  count(writer, "waiting", info.waiting);
  count(writer, "dead_letters", info.dead_letters);
  count(writer, "max_depth", info.max_depth);
  count(writer, "max_size_bytes", info.max_size_bytes);
  writer.number("pressure", info.pressure);
  writer.text("order", queue.order());
  ObjectWriter states(writer.open("by_state"));
  for (std::size_t state = 0; state < std::size(info.by_state); ++state)
    count(states, state_name(static_cast<State>(state)), info.by_state[state]);
  states.close();
  ObjectWriter levels(writer.open("available_by_priority"));
  for (const auto& [priority, jobs] : info.available_by_priority)
    count(levels, std::to_string(priority), jobs);
  levels.close();
  counters(writer, "totals", census.queue_counters, queue.counters);
  durations(writer, "wait", queue.wait);
  durations(writer, "run", queue.run);
}

void write_worker(ObjectWriter& writer, const Census& census, std::size_t i) {
  const WorkerCensus& worker = census.workers[i];
  const ProcessInfo& process = census.segment.processes[i];
  count(writer, "pid", process.pid);
  writer.text("state", census.state_of(process));
  writer.boolean("broker", process.broker);
  writer.boolean("supervisor", process.supervisor);
  count(writer, "handles", process.handles);
  names(writer, "pools", worker.pools);
  names(writer, "queues", worker.queues);
  count(writer, "active_jobs", process.active_jobs);
  if (!worker.oldest_job.empty()) {
    ObjectWriter oldest(writer.open("oldest"));
    oldest.text("id", worker.oldest_job);
    oldest.text("type", worker.oldest_type);
    count(oldest, "age_ms", worker.oldest_age_ms);
    oldest.close();
  }
  count(writer, "dispatched_total", worker.dispatched_total);
  if (worker.last_sign_ms != 0) writer.text("last_sign", print_timestamp(worker.last_sign_ms));
}

void write_tenant(ObjectWriter& writer, const TenantCensus& tenant) {
  writer.text("queue", tenant.queue);
  writer.text("tenant", tenant.tenant);
  count(writer, "weight", tenant.weight);
  count(writer, "depth", tenant.depth);
  count(writer, "active", tenant.active);
  count(writer, "oldest_age_ms", tenant.oldest_age_ms);
  count(writer, "max_depth", tenant.max_depth);
  count(writer, "max_size_bytes", tenant.max_size_bytes);
  count(writer, "begun_1m", tenant.begun_1m);
  if (tenant.entitled) writer.number("entitled_share", *tenant.entitled);
  writer.number("actual_share", tenant.actual);
}

template <class Items, class Print>
void printed(ObjectWriter& writer, std::string_view name, const Items& items, Print print) {
  std::string& out = writer.open(name) += '[';
  for (const auto& item : items) {
    if (&item != &items.front()) out += ',';
    out += print(item);
  }
  out += ']';
}

}  // namespace

std::string_view Census::state_of(const ProcessInfo& process) const {
  if (post_mortem) return "attached";
  return !process.alive ? "dead" : process.stopped ? "stopped" : "alive";
}

std::string_view Census::broker_state() const {
  for (const ProcessInfo& process : segment.processes)
    if (process.broker) return state_of(process);
  return "none";
}

std::string_view Census::supervisor_state() const {
  for (const ProcessInfo& process : segment.processes)
    if (process.supervisor) return state_of(process);
  return "none";
}

std::uint64_t Census::bytes_used() const {
  std::uint64_t unused = 0;
  for (const PoolInfo& pool : segment.pools)
    unused += (pool.capacity - std::min(pool.used, pool.capacity)) * pool.unit_bytes;
  return segment.size_bytes - std::min(segment.size_bytes, unused);
}

std::string_view QueueCensus::state() const {
  const bool bounded = info.max_depth != 0 || info.max_size_bytes != 0;
  if (info.paused) return "paused";
  if (bounded && info.pressure >= 1) return "full";
  if (starving) return "starving";
  if (bounded && info.pressure >= info.warning_threshold) return "warning";
  return "running";
}

std::string QueueCensus::order() const {
  std::string order = !info.level_weights.empty() ? "weights"
                      : info.aging.enabled        ? "ageing"
                                                  : "strict";
  if (info.tenant_fairness.enabled)
    order += info.tenant_fairness.across ? ", tenants across" : ", tenants";
  if (info.shards > 1) order += ", " + std::to_string(info.shards) + " shards";
  return order;
}

std::vector<std::uint64_t> Census::totals() const {
  std::vector<std::uint64_t> sums(queue_counters.size());
  for (const QueueCensus& queue : queues)
    for (std::size_t i = 0; i < sums.size() && i < queue.counters.size(); ++i)
      sums[i] += queue.counters[i];
  return sums;
}

std::string print_last_repair(const LastRepair& repair) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("at", print_timestamp(repair.at_ms));
  count(writer, "pid", repair.pid);
  count(writer, "repaired_by", repair.by_pid);
  count(writer, "slots_mended", repair.mended);
  writer.close();
  return out;
}

std::string print_census(const Census& census) {
  std::string out;
  ObjectWriter writer(out);
  writer.number("schema", std::int64_t{1});
  writer.text("at", print_timestamp(census.at_ms));
  write_segment(writer, census);
  counters(writer, "totals", census.queue_counters, census.totals());
  list(writer, "queues", census.queues, [&census](ObjectWriter& each, const QueueCensus& queue) {
    write_queue(each, census, queue);
  });
  std::vector<std::size_t> workers(
      std::min(census.workers.size(), census.segment.processes.size()));
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i] = i;
  list(writer, "workers", workers,
       [&census](ObjectWriter& each, std::size_t i) { write_worker(each, census, i); });
  printed(writer, "registered_workers", census.registered, &print_registered_worker);
  printed(writer, "pools", census.pools, &print_pool);
  list(writer, "tenants", census.tenants, &write_tenant);
  printed(writer, "limits", census.limits, &print_limit);
  writer.close();
  return out;
}

}  // namespace ojs_shm
