// SPDX-License-Identifier: Apache-2.0
//
// The workers of the segment: registration, what they are told, lists.
#include <algorithm>
#include <limits>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/turns.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

RegisteredWorker worker_of(Desk& desk, const std::string& id) {
  auto worker = desk.observer.registered_worker(id);
  if (!worker) throw not_found("worker", id);
  return std::move(*worker);
}

/// As it is listed. Its labels are the metadata of ojs-admin-api 9.1 too.
std::string worker_text(const RegisteredWorker& worker) {
  std::string text = print_registered_worker(worker);
  if (!json::check(worker.labels)) return text;
  return joined(std::move(text), "{\"metadata\":" + worker.labels + "}");
}

Reply enroll(Desk& desk, const Request& request) {
  const Body whole(request);
  const auto inside = whole.object("worker");
  const Body& body = inside ? *inside : whole;
  WorkerReport report;
  report.registers = true;
  report.id = body.raw("id") && !body.raw("worker_id") ? body.required_text("id")
                                                       : body.required_text("worker_id");
  report.pool = body.text("pool");
  if (report.pool && !report.pool->empty() && !desk.observer.pool(*report.pool))
    throw not_found("pool", *report.pool);
  report.queues = body.texts("queues");
  report.concurrency = body.whole("concurrency", 0, std::numeric_limits<std::uint32_t>::max());
  report.hostname = body.text("hostname");
  report.version = body.text("version");
  report.pid = body.whole("pid", 0, std::numeric_limits<std::uint32_t>::max());
  if (std::string labels = labels_with_turns(body, ""); !labels.empty()) report.labels = labels;
  if (const auto known = desk.proxy.report(report); !known) throw worker_fault(known.error());
  const SegmentInfo segment = desk.observer.segment_settings();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("ok", true);
    writer.text("worker_id", report.id);
    writer.text("server_time", print_timestamp(desk.now_ms()));
    writer.number("heartbeat_interval", std::int64_t{5});
    writer.number("heartbeat_timeout", static_cast<std::int64_t>(kWorkerSilenceMs / 1000));
    writer.number("visibility_timeout_default",
                  static_cast<std::int64_t>(segment.default_lease_ms / 1000));
  }));
}

Reply deregister(Desk& desk, const Request& request) {
  if (!desk.admin.remove_worker(request.names[0])) throw not_found("worker", request.names[0]);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("ok", true);
    writer.boolean("deleted", true);
    writer.text("worker_id", request.names[0]);
  }));
}

/// Of a worker that has fallen silent. Source: ojs-admin-api 9.4.
Reply deregister_stale(Desk& desk, const Request& request) {
  const RegisteredWorker worker = worker_of(desk, request.names[0]);
  if (worker.state() == "stale") return deregister(desk, request);
  Fault fault{.status = 409, .code = "conflict"};
  fault.message = "worker " + worker.id.substr(0, 128) +
                  " has reported lately; only one that has fallen silent is removed";
  fault.details = {{"worker_id", quoted(worker.id)},
                   {"current_state", quoted(worker.state())},
                   {"expected_state", quoted("stale")}};
  throw fault;
}

/// As the worker reported last. Source: ojs-graceful-shutdown.
Reply health(Desk& desk, const Request& request) {
  const RegisteredWorker worker = worker_of(desk, request.names[0]);
  const std::string state = worker.directive == WorkerDirective::kTerminate ? "shutting_down"
                            : worker.directive == WorkerDirective::kQuiet   ? "drain"
                                                                            : worker.said;
  Reply reply{.status = state == "running" ? 200U : 503U};
  reply.body = object([&](json::ObjectWriter& writer) {
    writer.text("worker_id", worker.id);
    writer.text("state", state);
    writer.number("active_jobs", std::int64_t{worker.active_jobs});
    writer.text("last_heartbeat_at", print_timestamp(worker.last_sign_ms));
  });
  return reply;
}

Reply list(Desk& desk, const Request& request) {
  const auto workers = desk.observer.registered_workers();
  std::int64_t running = 0, quiet = 0, stale = 0;
  for (const RegisteredWorker& worker : workers) {
    const std::string_view state = worker.state();
    ++(state == "stale" ? stale : state == "running" ? running : quiet);
  }
  const std::string items = Page::of(request).list(
      workers, [](const RegisteredWorker& worker) { return worker_text(worker); });
  return ok(joined(items, object([&](json::ObjectWriter& writer) {
                     json::ObjectWriter summary(writer.open("summary"));
                     summary.number("total", static_cast<std::int64_t>(workers.size()));
                     summary.number("running", running);
                     summary.number("quiet", quiet);
                     summary.number("stale", stale);
                     summary.close();
                   })));
}

/// With the jobs that it has. Source: ojs-admin-api 9.2.
Reply get(Desk& desk, const Request& request) {
  const RegisteredWorker worker = worker_of(desk, request.names[0]);
  JobFilter filter{.state = State::kActive};
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    filter.tenant = std::string(tenant);
  std::vector<JobInfo> jobs = desk.observer.list(filter);
  std::erase_if(jobs, [&](const JobInfo& job) { return job.worker_id != worker.id; });
  return ok(joined(worker_text(worker), object([&](json::ObjectWriter& writer) {
                     writer.value("jobs", array_of(jobs, [&](const JobInfo& job) {
                                    return job_text(desk, job);
                                  }));
                   })));
}

void tell_worker(Desk& desk, const std::string& id, WorkerDirective directive) {
  const Status told = desk.admin.direct_worker(id, directive);
  if (told.code() == Code::kNotFound) throw not_found("worker", id);
  must(told);
}

Reply quiet(Desk& desk, const Request& request) {
  tell_worker(desk, request.names[0], WorkerDirective::kQuiet);
  return get(desk, request);
}

/// {"worker_id", "directive"}: what its next heartbeat is answered; without an id for all of them.
Reply direct(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string said = body.text(body.raw("directive") ? "directive" : "state").value_or("");
  const auto directive = parse_directive(said == "resume" ? "running" : said);
  if (!directive) throw fault_of(directive.error());
  std::vector<std::string> told;
  const auto id = body.text("worker_id");
  for (const RegisteredWorker& worker : desk.observer.registered_workers())
    if ((!id || worker.id == *id) && desk.admin.direct_worker(worker.id, *directive))
      told.push_back(worker.id);
  if (id && told.empty()) throw not_found("worker", *id);
  return ok("{\"directive\":" + quoted(directive_name(*directive)) +
            ",\"workers\":" + array_of(told, quoted) + "}");
}

}  // namespace

std::span<const Route> roster_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/workers/register", Scope::kWrite, &enroll, {"Registration", "Registered"}},
      {"DELETE", "/ojs/v1/workers/{worker}", Scope::kWrite, &deregister, {"", "RemovedWorker"}},
      {"GET", "/ojs/v1/workers/{worker}/health", Scope::kRead, &health, {"", "WorkerHealth", "503"}},
      {"GET", "/ojs/v1/admin/workers", Scope::kRead, &list, {"", "WorkerPage"}},
      {"POST", "/ojs/v1/admin/workers/directive", Scope::kAdmin, &direct, {"Directive", "Directed"}},
      {"GET", "/ojs/v1/admin/workers/{worker}", Scope::kRead, &get, {"", "WorkerDetail"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/workers/{worker}/quiet", Scope::kAdmin, &quiet, {"", "WorkerDetail"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/admin/workers/{worker}", Scope::kAdmin, &deregister_stale, {"", "RemovedWorker"}},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
