// SPDX-License-Identifier: Apache-2.0
//
// The segment as a whole, for operators: numbers, maintenance, configuration.
#include <algorithm>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/retention_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

Reply stats(Desk& desk, const Request& request) {
  refuse_tenant(request, "these numbers are those");
  const auto census = desk.hall.census(desk.observer);
  std::uint64_t by_state[8] = {}, completed = 0, discarded = 0, cancelled = 0, dead = 0;
  for (const QueueCensus& each : census->queues) {
    const QueueInfo& queue = each.info;
    for (std::size_t state = 0; state < 8; ++state) by_state[state] += queue.by_state[state];
    completed += queue.completed_total;
    discarded += queue.discarded_total;
    cancelled += queue.cancelled_total;
    dead += queue.dead_letters;
  }
  const RecentEnds::Ended ended = desk.hall.stats().within_minute(*census);
  const std::uint64_t up = desk.now_ms() - std::min(desk.now_ms(), desk.hall.started_at_ms);
  return ok(object([&](json::ObjectWriter& writer) {
    count(writer, "queues", census->queues.size());
    count(writer, "workers", census->registered.size());
    json::ObjectWriter jobs(writer.open("jobs"));
    for (const State state :
         {State::kAvailable, State::kActive, State::kScheduled, State::kRetryable, State::kPending})
      count(jobs, state_name(state), by_state[static_cast<std::size_t>(state)]);
    count(jobs, "completed", completed);
    count(jobs, "discarded", discarded);
    count(jobs, "cancelled", cancelled);
    count(jobs, "dead", dead);
    jobs.close();
    json::ObjectWriter throughput(writer.open("throughput"));
    count(throughput, "processed_per_minute", ended.completed);
    count(throughput, "failed_per_minute", ended.failed);
    throughput.close();
    count(writer, "uptime_seconds", up / 1000);
  }));
}

std::string maintenance_text(const Maintenance& maintenance) {
  return object([&](json::ObjectWriter& writer) {
    writer.boolean("enabled", maintenance.enabled);
    writer.boolean("maintenance", maintenance.enabled);
    writer.text("reason", maintenance.reason);
    if (maintenance.since_ms == 0) return;
    writer.text("since", print_timestamp(maintenance.since_ms));
    if (maintenance.enabled) writer.text("enabled_at", print_timestamp(maintenance.since_ms));
    if (maintenance.estimated_end_ms != 0)
      writer.text("estimated_end", print_timestamp(maintenance.estimated_end_ms));
  });
}

Reply get_maintenance(Desk& desk, const Request&) {
  return ok(maintenance_text(desk.observer.maintenance()));
}

/// A time, or how long from now; Unix ms, 0: nothing is said.
std::uint64_t estimated_end(const Body& body, std::uint64_t now_ms) {
  const auto length = body.milliseconds(body.raw("duration") ? "duration" : "estimated_duration");
  const auto time = body.moment("estimated_end");
  if (length && time)
    throw invalid_request("give estimated_duration or estimated_end, not both", "estimated_end");
  return length ? now_ms + *length : time.value_or(0);
}

Reply set_maintenance(Desk& desk, const Request& request) {
  const Body body(request);
  const auto enabled = body.flag(body.raw("enabled") ? "enabled" : "maintenance");
  if (!enabled) throw invalid_request("enabled must be true or false", "enabled");
  must(desk.admin.set_maintenance(*enabled, body.text("reason").value_or(""),
                                  estimated_end(body, desk.now_ms())));
  if (!*enabled) desk.hall.jobs_came();
  return get_maintenance(desk, request);
}

Reply config(Desk& desk, const Request&) {
  const SegmentInfo segment = desk.observer.segment_info();
  const Options& options = desk.hall.options();
  return ok(object([&](json::ObjectWriter& writer) {
    json::ObjectWriter own(writer.open("segment"));
    own.text("name", segment.name);
    own.text("convention", segment.convention);
    count(own, "format", segment.format);
    count(own, "size_bytes", segment.size_bytes);
    count(own, "slots", segment.slots);
    count(own, "max_body_bytes", segment.max_body_bytes);
    count(own, "default_lease_ms", segment.default_lease_ms);
    count(own, "retention_ms", segment.retention_ms);
    own.open("dead_letter") += "{\"retention\":" + print_dead_retention(segment) + '}';
    own.boolean("events", segment.events);
    own.boolean("immutable_priorities", segment.immutable_priorities);
    own.text("created_at", print_timestamp(segment.created_at_ms));
    own.close();
    json::ObjectWriter gateway(writer.open("gateway"));
    gateway.text("version", library_version());
    count(gateway, "max_connections", options.max_connections);
    count(gateway, "max_body_bytes", options.max_body_bytes);
    gateway.boolean("tokens", !desk.hall.tokens().empty());
    gateway.boolean("test_hooks", options.test_hooks);
    gateway.close();
  }));
}

}  // namespace

std::span<const Route> admin_system_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/stats", Scope::kRead, &stats, {"", "Stats"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/system/maintenance", Scope::kRead, &get_maintenance, {"", "Maintenance"}},
      {"POST", "/ojs/v1/admin/system/maintenance", Scope::kAdmin, &set_maintenance, {"SetMaintenance", "Maintenance"}},
      {"GET", "/ojs/v1/admin/maintenance", Scope::kRead, &get_maintenance, {"", "Maintenance"}},
      {"POST", "/ojs/v1/admin/maintenance", Scope::kAdmin, &set_maintenance, {"SetMaintenance", "Maintenance"}},
      {"GET", "/ojs/v1/admin/system/config", Scope::kRead, &config, {"", "Configuration"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/config", Scope::kRead, &config, {"", "Configuration"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
