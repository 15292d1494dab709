// SPDX-License-Identifier: Apache-2.0
//
// What the gateway is and how it stands: manifest, health, metrics.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "engine/rules/names.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/metrics/negotiate.hpp"
#include "tools/metrics/table.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {
namespace {

std::uint64_t uptime_s(Desk& desk) {
  const std::uint64_t now = desk.now_ms();
  return (now - std::min(now, desk.hall.started_at_ms)) / 1000;
}

void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

void write_workers(json::ObjectWriter& writer, const std::vector<RegisteredWorker>& workers) {
  const auto stale = std::ranges::count_if(
      workers, [](const RegisteredWorker& each) { return each.state() == "stale"; });
  json::ObjectWriter inner(writer.open("workers"));
  count(inner, "total", workers.size());
  for (const std::string_view name : {"active", "connected"})  // also of ojs-observability 10.1
    count(inner, name, workers.size() - static_cast<std::size_t>(stale));
  count(inner, "stale", static_cast<std::uint64_t>(stale));
  inner.close();
}

/// Degraded when no process has supervised the segment for a while: jobs go on, but due times wait.
Reply health(Desk& desk, const Request&) {
  const auto begun = std::chrono::steady_clock::now();
  const auto census = desk.hall.census(desk.observer);
  const auto took =
      std::chrono::round<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  const bool supervised =
      std::ranges::any_of(census->segment.processes,
                          [](const ProcessInfo& each) { return each.alive && each.supervisor; });
  Reply reply;
  reply.status = supervised ? 200 : 503;
  reply.body = object([&](json::ObjectWriter& writer) {
    writer.text("status", supervised ? "ok" : "degraded");
    writer.text("version", "1.0");
    count(writer, "uptime_seconds", uptime_s(desk));
    json::ObjectWriter backend(writer.open("backend"));
    backend.text("type", "shm");
    backend.text("status", supervised ? "ok" : "degraded");
    backend.number("latency_ms", std::int64_t{took.count()});
    if (!supervised) backend.text("error", "no process supervises the segment; start the broker");
    backend.close();
    json::ObjectWriter counts(writer.open("queues"));
    const auto paused = static_cast<std::uint64_t>(
        std::ranges::count_if(census->queues, [](const auto& each) { return each.info.paused; }));
    count(counts, "total", census->queues.size());
    count(counts, "active", census->queues.size() - paused);
    count(counts, "paused", paused);
    counts.close();
    write_workers(writer, census->registered);
  });
  return reply;
}

Reply ready(Desk&, const Request&) { return ok("{\"status\":\"ready\"}"); }

constexpr std::array kCapabilities = {
    std::pair("batch_enqueue", true),      std::pair("cron", true),
    std::pair("cron_jobs", true),          std::pair("dead_letter", true),
    std::pair("delayed_jobs", true),       std::pair("job_ttl", true),
    std::pair("priority_queues", true),    std::pair("rate_limiting", true),
    std::pair("schema_validation", false), std::pair("unique_jobs", true),
    std::pair("workflows", true),          std::pair("pause_resume", true),
    std::pair("bulk_operations", true),    std::pair("events", true),
    std::pair("progress", true),           std::pair("backpressure", true),
    std::pair("fair_scheduling", true),    std::pair("multi_tenancy", true),
    std::pair("admin_api", true),          std::pair("priority_aging", true)};
constexpr std::array kExtensions = {
    "admin-api",         "backpressure",  "bulk-operations", "dead-letter", "fair-scheduling",
    "graceful-shutdown", "observability", "priority",        "progress",    "queue-config",
    "rate-limiting",     "results",       "timeouts"};

constexpr std::string_view kUri = "urn:ojs:ext:";
constexpr std::string_view kMultiTenancy = "urn:ojs:ext:experimental:multi-tenancy";

/// Source: ojs-payload-limits 8.1.
void write_payload_limits(json::ObjectWriter& extensions, const Options& options) {
  json::ObjectWriter limits(extensions.open("payload_limits"));
  const auto number = [&](std::string_view name, std::size_t most) {
    limits.number(name, static_cast<std::int64_t>(most));
  };
  number("max_envelope_bytes", options.max_body_bytes);
  number("max_meta_bytes", kMaxMetaBytes);
  number("max_queue_name_bytes", engine::kMaxQueueNameLength);
  number("max_job_type_bytes", engine::kMaxTypeLength);
  limits.value("supported_compression", "[]");
  limits.boolean("external_references", true);  // passed through, as all args are
  limits.boolean("chunking", false);
  limits.boolean("per_queue_limits", false);
  limits.close();
}

Reply manifest(Desk& desk, const Request&) {
  const SegmentInfo segment = desk.observer.segment_settings();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("specversion", "1.0");
    writer.text("ojs_version", "1.0");
    json::ObjectWriter implementation(writer.open("implementation"));
    implementation.text("name", "ojs-shm");
    implementation.text("version", library_version());
    implementation.text("language", "c++");
    implementation.text("repository", "https://github.com/openjobspec/ojs-shm");
    implementation.close();
    writer.number("conformance_level", std::int64_t{4});
    writer.text("conformance_tier", "runtime");
    writer.value("protocols", "[\"http\"]");
    writer.text("backend", "shm");
    writer.text("delivery", "at-least-once");
    writer.text("event_delivery", "best-effort");
    writer.text("unique_job_strength", "strong");
    writer.text("unique_job_mechanism", "an index in shared memory, changed by compare-and-swap");
    json::ObjectWriter capabilities(writer.open("capabilities"));
    for (const auto& [name, has] : kCapabilities) capabilities.boolean(name, has);
    capabilities.boolean("dynamic_priority", !segment.immutable_priorities);
    capabilities.close();
    json::ObjectWriter extensions(writer.open("extensions"));
    extensions.value("official", array_of(kExtensions, [](std::string_view name) {
                       return object([&](json::ObjectWriter& each) {
                         each.text("name", name);
                         each.text("uri", fmt::format("{}{}", kUri, name));
                         each.text("version", "1.0.0-rc.1");
                       });
                     }));
    extensions.value(
        "experimental",
        fmt::format(R"([{{"name":"multi-tenancy","uri":"{}","version":"0.1.0"}}])", kMultiTenancy));
    write_payload_limits(extensions, desk.hall.options());
    extensions.close();
    json::ObjectWriter endpoints(writer.open("endpoints"));
    for (const auto& [name, path] :
         {std::pair("manifest", "/ojs/manifest"), std::pair("health", "/ojs/v1/health"),
          std::pair("jobs", "/ojs/v1/jobs"), std::pair("workers", "/ojs/v1/workers"),
          std::pair("cron", "/ojs/v1/cron"), std::pair("workflows", "/ojs/v1/workflows"),
          std::pair("queues", "/ojs/v1/queues"), std::pair("dead_letter", "/ojs/v1/dead-letter"),
          std::pair("events", "/ojs/v1/events"), std::pair("admin", "/ojs/v1/admin"),
          std::pair("openapi", "/ojs/v1/openapi.json"), std::pair("metrics", "/metrics")})
      endpoints.text(name, path);
    endpoints.close();
    json::ObjectWriter priority(writer.open("priority"));
    priority.text("convention", segment.convention);
    priority.number("min", segment.priority_min);
    priority.number("max", segment.priority_max);
    priority.number("default", segment.priority_default);
    priority.boolean("lower_first", segment.lower_first);
    priority.close();
    writer.value("queue_strategies", "[\"strict\",\"weighted\",\"round-robin\",\"least-loaded\"]");
  }));
}

Reply metrics_page(Desk& desk, const Request& request) {
  metrics::Page page;
  page.begin_segment(desk.hall.options().where.name);
  page.family("ojs_segment_up", "1: the segment could be read; 0: it is missing, or damaged.",
              prometheus::MetricType::Gauge);
  page.add({}, 1);
  metrics::add_segment(page, desk.observer, *desk.hall.census(desk.observer), {});
  for (const prometheus::MetricFamily& family : desk.hall.bulk_meter().collect())
    if (!family.metric.empty()) page.add_counted(family);
  if (metrics::wants_openmetrics(request.header("accept")))
    return {.status = 200,
            .body = page.openmetrics_text(),
            .content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"};
  return {.status = 200,
          .body = page.prometheus_text(),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace

bool offers_extension(std::string_view uri) {
  if (uri == kMultiTenancy) return true;
  return uri.starts_with(kUri) &&
         std::ranges::find(kExtensions, uri.substr(kUri.size())) != kExtensions.end();
}

std::span<const Route> health_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/manifest", Scope::kNone, &manifest, {"", "Manifest"}},
      {"GET", "/ojs/v1/health", Scope::kNone, &health, {"", "Health", "503"}, Pace::kSlow},
      {"GET", "/health", Scope::kNone, &health, {"", "Health", "503"}, Pace::kSlow},
      {"GET", "/healthz", Scope::kNone, &health, {"", "Health", "503"}, Pace::kSlow},
      {"GET", "/ready", Scope::kNone, &ready, {"", "Ready"}},
      {"GET", "/readyz", Scope::kNone, &ready, {"", "Ready"}},
      {"GET", "/metrics", Scope::kRead, &metrics_page, {}, Pace::kSlow},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
