// SPDX-License-Identifier: Apache-2.0
//
// Queues, for operators: numbers, settings, purge.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/replies/queue_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/metrics/queue_waits.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

void write_throughput(json::ObjectWriter& writer, const RecentEnds::Ended& ended) {
  json::ObjectWriter throughput(writer.open("throughput"));
  throughput.number("processed_per_minute", static_cast<std::int64_t>(ended.completed));
  throughput.number("failed_per_minute", static_cast<std::int64_t>(ended.failed));
  throughput.close();
}

using WaitsByQueue = std::map<std::string, metrics::QueueWaits, std::less<>>;

/// How long jobs waited until they began, to a bucket of the histogram.
void write_latency(json::ObjectWriter& writer, const WaitHistogram& waits) {
  json::ObjectWriter latency(writer.open("latency_ms"));
  for (const auto& [name, permille] : {std::pair("p50", 500U), {"p95", 950U}, {"p99", 990U}})
    latency.number(name, static_cast<std::int64_t>(metrics::quantile_ms(waits, permille)));
  latency.close();
}

/// `waits`: of all tenants; null for one, of which it is not known, nor how many jobs ended lately.
std::string summary_text(Desk& desk, const QueueInfo& queue, const WaitsByQueue* waits) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("name", queue.name);
    writer.text("state", status_of(queue));
    json::ObjectWriter counts(writer.open("counts"));
    write_counts(counts, queue);
    counts.close();
    writer.boolean("paused", queue.paused);
    writer.number("depth", static_cast<std::int64_t>(queue.depth));
    if (waits != nullptr) {
      write_throughput(writer, desk.hall.stats().recent_ends().of(queue, desk.now_ms()).minute);
      if (const auto of = waits->find(queue.name); of != waits->end())
        write_latency(writer, of->second.from_available);
    }
    write_created(writer, queue);
  });
}

std::string detail_text(Desk& desk, const QueueInfo& queue, const WaitsByQueue* waits) {
  const std::string more = object([&](json::ObjectWriter& writer) {
    writer.value("configuration", settings_text(desk, queue));
    if (queue.oldest_age_ms != 0)
      writer.text("oldest_available_at", print_timestamp(desk.now_ms() - queue.oldest_age_ms));
    else
      writer.value("oldest_available_at", "null");
  });
  // The policy stands at the top as well, as it was sent, and all by the names of ojs-queue-config.
  return joined(joined(joined(summary_text(desk, queue, waits), more), print_queue_policy(queue)),
                config_text(desk, queue));
}

std::optional<WaitsByQueue> waits_seen(Desk& desk, const Request& request) {
  if (!request.header("x-ojs-tenant").empty()) return std::nullopt;
  return metrics::waits_by_queue(desk.observer.waits());
}

Reply list(Desk& desk, const Request& request) {
  const auto waits = waits_seen(desk, request);
  return ok(Page::of(request).list(desk.observer.queues(), [&](QueueInfo queue) {
    narrow_to_tenant(desk, request, queue);
    return summary_text(desk, queue, waits ? &*waits : nullptr);
  }));
}

Reply get(Desk& desk, const Request& request) {
  const auto waits = waits_seen(desk, request);
  return ok(detail_text(desk, queue_seen(desk, request), waits ? &*waits : nullptr));
}

Reply configure(Desk& desk, const Request& request) {
  const Body body(request);
  configure_queue(desk, request.names[0], body.object());
  desk.hall.jobs_came();
  return get(desk, request);
}

Reply set_paused(Desk& desk, const std::string& name, bool paused) {
  pause_queue(desk, name, paused);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("name", name);
    writer.boolean("paused", paused);
    writer.text(paused ? "paused_at" : "resumed_at", print_timestamp(desk.now_ms()));
  }));
}
Reply pause(Desk& desk, const Request& request) { return set_paused(desk, request.names[0], true); }
Reply resume(Desk& desk, const Request& request) {
  return set_paused(desk, request.names[0], false);
}

/// `older_than` is a moment (ojs-admin-api 6.5), or how long ago that was. 0: any.
std::uint64_t moment_before(Desk& desk, const Body& body) {
  const auto raw = body.raw("older_than");
  const auto text = raw ? json::string_of(*raw) : std::nullopt;
  if (text && !text->starts_with('+'))
    if (const ParsedMs moment = parse_time(*text, 0); moment && moment.ms > 0)
      return static_cast<std::uint64_t>(moment.ms);
  const auto age = body.milliseconds("older_than");
  const std::uint64_t now = desk.now_ms();
  return age ? now - std::min<std::uint64_t>(now - 1, *age) : 0;
}

State purgeable(const std::string& name) {
  for (unsigned number = 0; number < 8; ++number) {
    const auto state = static_cast<State>(number);
    if (state_name(state) == name && state != State::kActive) return state;
  }
  throw invalid_request(
      fmt::format("'{}' cannot be purged; all states but active can", name.substr(0, 64)),
      "states");
}

/// {"states": [...], "older_than"?, "confirm": true}: waiting jobs are cancelled, and what is kept
/// of those that are over goes.
Reply purge(Desk& desk, const Request& request) {
  const Body body(request);
  if (!body.flag("confirm").value_or(false))
    throw invalid_request("a queue's jobs are purged only with \"confirm\": true", "confirm");
  const auto states = body.texts("states");
  if (!states || states->empty())
    throw invalid_request("states must name at least one state, such as [\"completed\"]", "states");
  const std::string queue = queue_of(desk, request.names[0]).name;
  const std::uint64_t before = moment_before(desk, body);
  std::vector<std::pair<BulkAction, JobFilter>> steps;
  for (const std::string& name : *states) {
    JobFilter one{.queue = queue, .state = purgeable(name)};
    if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
      one.tenant = std::string(tenant);
    const bool over = is_terminal(*one.state);
    (over ? one.ended_before_ms : one.created_before_ms) = before;
    steps.emplace_back(over ? BulkAction::kDrop : BulkAction::kCancel, std::move(one));
  }
  std::int64_t purged = 0;
  for (const auto& [action, chosen] : steps)
    purged += static_cast<std::int64_t>(must(desk.admin.bulk(action, chosen)).done);
  desk.hall.jobs_came();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.number("purged_count", purged);
    writer.value("states", array_of(*states, quoted));
  }));
}

}  // namespace

std::span<const Route> admin_queue_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/queues", Scope::kRead, &list, {"", "QueuePage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/queues/{name}", Scope::kRead, &get, {"", "QueueView"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/queues/{name}/config", Scope::kRead, &get, {"", "QueueView"}, Pace::kSlow},
      {"GET", "/ojs/v1/queues/{name}/config", Scope::kRead, &get, {"", "QueueView"}, Pace::kSlow},
      {"PUT", "/ojs/v1/admin/queues/{name}/config", Scope::kAdmin, &configure, {"SetQueue", "QueueView"}, Pace::kSlow},
      {"PUT", "/ojs/v1/queues/{name}/config", Scope::kAdmin, &configure, {"SetQueue", "QueueView"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/admin/queues/{name}/jobs", Scope::kAdmin, &purge, {"Purge", "Purged"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/queues/{name}/pause", Scope::kAdmin, &pause, {"", "PausedQueue"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/queues/{name}/resume", Scope::kAdmin, &resume, {"", "PausedQueue"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
