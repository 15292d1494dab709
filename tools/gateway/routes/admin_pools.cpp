// SPDX-License-Identifier: Apache-2.0
//
// Pools of workers and what queues handed out. Source: ojs-fair-scheduling 10.
#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"

namespace ojs_shm::gateway {
namespace {

std::string pool_text(Desk& desk, const WorkerPoolInfo& pool) {
  std::vector<std::string> workers;
  for (const RegisteredWorker& worker : desk.observer.registered_workers())
    if (worker.pool == pool.name && !worker.ended) workers.push_back(worker.id);
  return joined(print_pool(pool),
                "{\"id\":" + quoted(pool.name) + ",\"workers\":" + array_of(workers, quoted) + "}");
}

WorkerPoolInfo pool_of(Desk& desk, const std::string& name) {
  auto pool = desk.observer.pool(name);
  if (!pool && pool.code() == Code::kNotFound) throw not_found("pool", name);
  return must(std::move(pool));
}

/// One page has all of them, unless it is asked for less.
Reply list(Desk& desk, const Request& request) {
  constexpr std::size_t kMost = 100;
  return ok(Page::of(request, kMost)
                .list(desk.observer.pools(),
                      [&](const WorkerPoolInfo& pool) { return pool_text(desk, pool); },
                      {"items", "pools"}));
}

Reply get(Desk& desk, const Request& request) {
  return ok(wrapped_and_flat("pool", pool_text(desk, pool_of(desk, request.names[0]))));
}

Reply put(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string& name = request.names[0];
  const auto inner = body.object("pool");
  if (const auto named = (inner ? *inner : body).text("name"); named && *named != name)
    throw invalid_request("the body names another pool than the path", "name");
  const bool fresh = must(desk.admin.set_pool(name, must(parse_pool_settings(body.object()))));
  desk.hall.jobs_came();
  Reply reply = get(desk, request);
  if (fresh) reply.status = 201;
  return reply;
}

Reply remove(Desk& desk, const Request& request) {
  pool_of(desk, request.names[0]);
  must(desk.admin.remove_pool(request.names[0]));
  return ok("{\"deleted\":true,\"name\":" + quoted(request.names[0]) + "}");
}

Reply scheduling(Desk& desk, const Request& request) {
  refuse_tenant(request, "these numbers are those");
  const SchedulingStats stats = desk.observer.scheduling_stats();
  const std::string own = print_scheduling(stats);
  std::string strategy = "strict";
  for (const WorkerPoolInfo& pool : desk.observer.pools())
    strategy = pool_strategy_name(pool.settings.strategy);
  // The admin UI reads three more members of each queue.
  std::string window = "\"PT1M\"";
  for (const json::Member& member : json::members_of(own))
    if (member.name == "window") window = std::string(member.value);
  const std::string queues = array_of(stats.queues, [](const QueueScheduling& each) {
    return object([&](json::ObjectWriter& writer) {
      writer.text("name", each.queue);
      writer.number("dispatch_count_1m", static_cast<std::int64_t>(each.dispatch_count_1m));
      writer.number("dispatch_ratio_1m", each.dispatch_ratio_1m);
      writer.number("avg_wait_ms", each.avg_wait_ms);
      writer.number("active_jobs", static_cast<std::int64_t>(each.active_jobs));
      writer.number("dispatched", static_cast<std::int64_t>(each.dispatch_count_1m));
      writer.number("starved", static_cast<std::int64_t>(each.starvation_events_total));
    });
  });
  return ok("{\"queues\":" + queues + ",\"window\":" + window + ",\"stats\":" + own +
            ",\"strategy\":" + quoted(strategy) + "}");
}

}  // namespace

std::span<const Route> admin_pool_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/pools", Scope::kRead, &list, {"", "PoolList"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/pools/{name}", Scope::kRead, &get, {"", "ShownPool"}, Pace::kSlow},
      {"PUT", "/ojs/v1/admin/pools/{name}", Scope::kAdmin, &put, {"PoolSettings", "ShownPool"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/admin/pools/{name}", Scope::kAdmin, &remove, {"", "Deleted"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/scheduling/stats", Scope::kRead, &scheduling, {"", "SchedulingStats"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
