// SPDX-License-Identifier: Apache-2.0
//
// The workers that speak to this gateway: registration, what they are told, lists.
#include <algorithm>
#include <limits>

#include "tools/gateway/body.hpp"
#include "tools/gateway/fault.hpp"
#include "tools/gateway/hall.hpp"
#include "tools/gateway/handlers.hpp"
#include "tools/gateway/job_reply.hpp"
#include "tools/gateway/json_text.hpp"
#include "tools/gateway/paging.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::string_view state_of(const WorkerEntry& worker, std::uint64_t now) {
  if (worker.last_seen_ms + Roster::kSilenceMs < now) return "stale";
  return worker.directive != "running" ? worker.directive : worker.reported;
}

WorkerEntry worker_of(Desk& desk, const std::string& id) {
  auto worker = desk.hall.roster().find(id);
  if (!worker) throw not_found("worker", id);
  return std::move(*worker);
}

std::string worker_text(Desk& desk, const WorkerEntry& worker) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("id", worker.id);
    writer.text("state", state_of(worker, desk.now_ms()));
    writer.value("queues", array_of(worker.queues, quoted));
    if (!worker.pool.empty()) writer.text("pool", worker.pool);
    writer.number("concurrency", std::int64_t{worker.concurrency});
    writer.number("active_jobs", std::int64_t{worker.active_jobs});
    if (!worker.hostname.empty()) writer.text("hostname", worker.hostname);
    if (!worker.version.empty()) writer.text("version", worker.version);
    if (worker.pid != 0) writer.number("pid", std::int64_t{worker.pid});
    if (!worker.labels.empty()) writer.value("labels", worker.labels);
    writer.text("started_at", print_timestamp(worker.started_at_ms));
    writer.text("last_heartbeat_at", print_timestamp(worker.last_seen_ms));
  });
}

Reply enroll(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string id =
      body.raw("worker_id") ? body.required_text("worker_id") : body.required_text("id");
  const std::string pool = body.text("pool").value_or("");
  if (!pool.empty() && !desk.observer.pool(pool)) throw not_found("pool", pool);
  const auto known = desk.hall.roster().find(id);
  if (known && !known->pool.empty() && !pool.empty() && known->pool != pool) {
    Fault fault{.status = 409, .code = "conflict"};
    fault.message =
        "worker " + id + " is registered in pool " + known->pool + "; a worker has one pool";
    throw fault;
  }
  const auto queues = body.texts("queues");
  const auto concurrency = body.whole("concurrency", 0, std::numeric_limits<std::uint32_t>::max());
  desk.hall.roster().update(id, desk.now_ms(), [&](WorkerEntry& entry) {
    if (!pool.empty()) entry.pool = pool;
    if (queues) entry.queues = *queues;
    if (concurrency) entry.concurrency = *concurrency;
    if (const auto host = body.text("hostname")) entry.hostname = *host;
    if (const auto labels = body.raw("labels")) entry.labels = json::compact(*labels);
    entry.reported = entry.directive = "running";
  });
  const SegmentInfo segment = desk.observer.segment_info();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("ok", true);
    writer.text("worker_id", id);
    writer.text("server_time", print_timestamp(desk.now_ms()));
    writer.number("heartbeat_interval", std::int64_t{5});
    writer.number("heartbeat_timeout", std::int64_t{Roster::kSilenceMs / 1000});
    writer.number("visibility_timeout_default",
                  static_cast<std::int64_t>(segment.default_lease_ms / 1000));
  }));
}

Reply deregister(Desk& desk, const Request& request) {
  if (!desk.hall.roster().remove(request.names[0])) throw not_found("worker", request.names[0]);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("ok", true);
    writer.boolean("deleted", true);
    writer.text("worker_id", request.names[0]);
  }));
}

/// As the worker reported last. Source: ojs-graceful-shutdown.
Reply health(Desk& desk, const Request& request) {
  const WorkerEntry worker = worker_of(desk, request.names[0]);
  const std::string state = worker.directive == "terminate" ? "shutting_down"
                            : worker.directive == "quiet"   ? "drain"
                                                            : worker.reported;
  Reply reply{.status = state == "running" ? 200U : 503U};
  reply.body = object([&](json::ObjectWriter& writer) {
    writer.text("worker_id", worker.id);
    writer.text("state", state);
    writer.number("active_jobs", std::int64_t{worker.active_jobs});
    writer.text("last_heartbeat_at", print_timestamp(worker.last_seen_ms));
  });
  return reply;
}

Reply list(Desk& desk, const Request& request) {
  const std::uint64_t now = desk.now_ms();
  const auto workers = desk.hall.roster().all();
  std::int64_t running = 0, quiet = 0, stale = 0;
  for (const WorkerEntry& worker : workers) {
    const std::string_view state = state_of(worker, now);
    ++(state == "stale" ? stale : state == "running" ? running : quiet);
  }
  const std::string items = Page::of(request).list(
      workers, [&](const WorkerEntry& worker) { return worker_text(desk, worker); });
  return ok(joined(items, object([&](json::ObjectWriter& writer) {
                     json::ObjectWriter summary(writer.open("summary"));
                     summary.number("total", static_cast<std::int64_t>(workers.size()));
                     summary.number("running", running);
                     summary.number("quiet", quiet);
                     summary.number("stale", stale);
                     summary.close();
                   })));
}

Reply get(Desk& desk, const Request& request) {
  return ok(worker_text(desk, worker_of(desk, request.names[0])));
}

Reply quiet(Desk& desk, const Request& request) {
  if (!desk.hall.roster().direct(request.names[0], "quiet"))
    throw not_found("worker", request.names[0]);
  return get(desk, request);
}

/// {"worker_id", "directive"}: what its next heartbeat is answered; without an id for all of them.
Reply direct(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string directive =
      body.text(body.raw("directive") ? "directive" : "state").value_or("");
  if (directive != "running" && directive != "quiet" && directive != "terminate")
    throw invalid_request("directive must be running, quiet or terminate", "directive");
  std::vector<std::string> told;
  const auto id = body.text("worker_id");
  for (const WorkerEntry& worker : desk.hall.roster().all())
    if ((!id || worker.id == *id) && desk.hall.roster().direct(worker.id, directive))
      told.push_back(worker.id);
  if (id && told.empty()) throw not_found("worker", *id);
  return ok("{\"directive\":" + quoted(directive) + ",\"workers\":" + array_of(told, quoted) + "}");
}

}  // namespace

std::span<const Route> roster_routes() {
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/workers/register", Scope::kWrite, &enroll},
      {"DELETE", "/ojs/v1/workers/{id}", Scope::kWrite, &deregister},
      {"GET", "/ojs/v1/workers/{id}/health", Scope::kRead, &health},
      {"GET", "/ojs/v1/admin/workers", Scope::kRead, &list},
      {"POST", "/ojs/v1/admin/workers/directive", Scope::kAdmin, &direct},
      {"GET", "/ojs/v1/admin/workers/{id}", Scope::kRead, &get},
      {"POST", "/ojs/v1/admin/workers/{id}/quiet", Scope::kAdmin, &quiet},
      {"DELETE", "/ojs/v1/admin/workers/{id}", Scope::kAdmin, &deregister},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
