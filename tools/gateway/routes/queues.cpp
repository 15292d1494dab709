// SPDX-License-Identifier: Apache-2.0
//
// Queues, for clients: list, numbers, pause and resume.
#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/replies/queue_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/metrics/queue_waits.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

Reply list(Desk& desk, const Request& request) {
  return ok(Slice::of(request).list({"queues"}, desk.observer.queues(), [&](QueueInfo queue) {
    narrow_to_tenant(desk, request, queue);
    return queue_text(queue);
  }));
}

/// Source: ojs-queue-config 9.3.
Reply get(Desk& desk, const Request& request) {
  const QueueInfo queue = queue_seen(desk, request);
  const std::string own = queue_text(queue);
  const std::string text =
      joined(joined(own, print_queue_policy(queue)), "{\"stats\":" + own + "}");
  return ok(wrapped_and_flat("queue", joined(text, config_text(desk, queue))));
}

/// How fast the queue is. Source: ojs-http-binding 11.2.
std::string speed_text(Desk& desk, const std::string& name) {
  const RecentEnds::Of ended =
      desk.hall.stats().recent_ends().of(queue_of(desk, name), desk.now_ms());
  const metrics::QueueWaits waits = metrics::waits_by_queue(desk.observer.waits())[name];
  return object([&](json::ObjectWriter& writer) {
    writer.number("completed_last_hour", static_cast<std::int64_t>(ended.hour.completed));
    writer.number("failed_last_hour", static_cast<std::int64_t>(ended.hour.failed));
    writer.number("avg_duration_ms", static_cast<std::int64_t>(metrics::mean_ms(waits.runs)));
    writer.number("avg_wait_ms", static_cast<std::int64_t>(metrics::mean_ms(waits.from_available)));
    writer.number("throughput_per_second", static_cast<double>(ended.minute.completed) / 60);
  });
}

/// One reply that the suites, three clients and the command line of OJS each read in their way.
Reply stats(Desk& desk, const Request& request) {
  const QueueInfo queue = queue_seen(desk, request);
  std::string own = queue_text(queue);
  if (request.header("x-ojs-tenant").empty()) own = joined(own, speed_text(desk, queue.name));
  const std::string stats = joined("{\"queue\":" + quoted(queue.name) + "}", own);
  const std::string at = "{\"computed_at\":" + quoted(print_timestamp(desk.now_ms())) + "}";
  if (const std::string* shape = request.asked("shape"); shape != nullptr && *shape == "binding")
    return ok(joined("{\"queue\":" + quoted(queue.name) +
                         ",\"status\":" + quoted(status_of(queue)) + ",\"stats\":" + stats + "}",
                     at));
  return ok(joined(joined("{\"queue\":" + own + ",\"stats\":" + stats + "}", own), at));
}

Reply set_paused(Desk& desk, const Request& request, bool paused) {
  const std::string& name = request.names[0];
  pause_queue(desk, name, paused);
  const std::string queue = queue_text(queue_seen(desk, request));
  const std::string when = object([&](json::ObjectWriter& writer) {
    writer.text("name", name);
    writer.boolean("paused", paused);
    writer.text("status", paused ? "paused" : "active");
    writer.text(paused ? "paused_at" : "resumed_at", print_timestamp(desk.now_ms()));
  });
  return ok(joined("{\"queue\":" + queue + "}", when));
}

Reply pause(Desk& desk, const Request& request) { return set_paused(desk, request, true); }
Reply resume(Desk& desk, const Request& request) { return set_paused(desk, request, false); }

Reply create(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string name = body.required_text("name");
  configure_queue(desk, name, body.object());
  QueueInfo queue = queue_of(desk, name);
  narrow_to_tenant(desk, request, queue);
  Reply reply = ok(wrapped_and_flat("queue", joined(queue_text(queue), config_text(desk, queue))));
  reply.status = 201;
  reply.headers.emplace_back("Location", "/ojs/v1/queues/" + name);
  return reply;
}

/// A tenant is not to end jobs that are not its own. One that comes in between is not seen.
void check_no_other_tenant(Desk& desk, const std::string& name, std::string_view tenant) {
  for (const JobInfo& job : desk.observer.list({.queue = name})) {
    if (is_terminal(job.state) || tenant_of(job.extra) == tenant) continue;
    Fault fault{.status = 409, .code = "conflict"};
    fault.message = "queue " + name + " has unfinished jobs that are not the tenant's";
    fault.details = {{"queue", quoted(name)}};
    throw fault;
  }
}

/// {"strategy": "reject" (also without a body) or "discard"}. Source: ojs-queue-config 5.3.
Reply remove(Desk& desk, const Request& request) {
  const std::string& name = request.names[0];
  queue_of(desk, name);
  const Body body(request);
  const std::string strategy = body.text("strategy").value_or("reject");
  if (strategy == "move")
    throw unsupported(
        "jobs cannot be moved to another queue: reject refuses while there are unfinished jobs, "
        "discard discards them");
  if (strategy != "reject" && strategy != "discard")
    throw invalid_request("strategy must be reject or discard", "strategy");
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    check_no_other_tenant(desk, name, tenant);
  const std::uint64_t jobs =
      must(desk.admin.delete_queue(
               name, strategy == "discard" ? QueueDeletion::kDiscard : QueueDeletion::kReject),
           name);
  desk.hall.jobs_came();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("deleted", true);
    writer.text("queue", name);
    writer.text("name", name);
    writer.text("strategy", strategy);
    writer.number("jobs_affected", static_cast<std::int64_t>(jobs));
    writer.text("state", "deleted");
  }));
}

/// The waiting jobs of each priority. Source: ojs-priority 10.3.
Reply priority_stats(Desk& desk, const Request& request) {
  const QueueInfo queue = queue_seen(desk, request);
  std::uint64_t total = 0;
  for (const auto& [priority, jobs] : queue.available_by_priority) total += jobs;
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("queue", queue.name);
    json::ObjectWriter levels(writer.open("counts_by_priority"));
    for (const auto& [priority, jobs] : queue.available_by_priority)
      levels.number(std::to_string(priority), static_cast<std::int64_t>(jobs));
    levels.close();
    writer.number("total", static_cast<std::int64_t>(total));
    writer.value("distribution", array_of(queue.available_by_priority, [](const auto& level) {
                   return object([&](json::ObjectWriter& each) {
                     each.number("priority", level.first);
                     each.number("count", static_cast<std::int64_t>(level.second));
                   });
                 }));
  }));
}

}  // namespace

std::span<const Route> queue_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/queues", Scope::kRead, &list, {"", "QueueList"}, Pace::kSlow},
      {"POST", "/ojs/v1/queues", Scope::kAdmin, &create, {"NewQueue", "CreatedQueue"}, Pace::kSlow},
      {"GET", "/ojs/v1/queues/{name}", Scope::kRead, &get, {"", "ShownQueue"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/queues/{name}", Scope::kAdmin, &remove, {"QueueDeletion", "DeletedQueue"}, Pace::kSlow},
      {"GET", "/ojs/v1/queues/{name}/stats", Scope::kRead, &stats, {"", "QueueStats"}, Pace::kSlow},
      {"GET", "/ojs/v1/queues/{name}/priority-stats", Scope::kRead, &priority_stats, {"", "LevelStats"}, Pace::kSlow},
      {"POST", "/ojs/v1/queues/{name}/pause", Scope::kAdmin, &pause, {"", "PausedQueue"}, Pace::kSlow},
      {"POST", "/ojs/v1/queues/{name}/resume", Scope::kAdmin, &resume, {"", "PausedQueue"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
