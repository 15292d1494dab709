// SPDX-License-Identifier: Apache-2.0
//
// Crons: jobs that are enqueued again and again. Each under both names of the specification's
// texts, /cron and /crons. Source: ojs-cron 8; requirements B.4.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/cron_change.hpp"

namespace ojs_shm::gateway {
namespace {

CronInfo cron_of(Desk& desk, const Request& request, const std::string& name) {
  auto found = desk.observer.cron(name);
  if (!found && found.code() == Code::kNotFound) throw not_found("cron", name);
  CronInfo cron = must(std::move(found));
  if (const std::string_view tenant = request.header("x-ojs-tenant");
      !tenant.empty() && tenant_of(cron.job.extra) != tenant)
    throw not_found("cron", name);
  return cron;
}

/// Some clients look for an id; it is the name.
std::string cron_text(const CronInfo& cron) {
  return joined(print_cron(cron), "{\"id\":" + quoted(cron.name) + "}");
}

/// In both wrappers, and without one.
std::string text_of(const CronInfo& cron) {
  const std::string text = cron_text(cron);
  return joined("{\"cron\":" + text + ",\"cron_job\":" + text + "}", without(text, "cron"));
}

/// A cron of that name that another tenant has is not replaced, and not told of.
bool is_taken(Desk& desk, const Request& request, std::string_view name) {
  const std::string_view tenant = request.header("x-ojs-tenant");
  if (tenant.empty()) return false;
  const auto known = desk.observer.cron(name);
  return known && tenant_of(known->job.extra) != tenant;
}

Reply set(Desk& desk, const Request& request, std::unique_ptr<CronText> cron) {
  check_members(desk, shell::Document::kCron, cron->unknown);
  CronSpec& spec = cron->spec;
  if (!request.header("x-ojs-tenant").empty()) {
    const std::uint64_t lifetime = spec.job.expires_at_ms;
    give_tenant(request, cron->job);
    spec.job = cron->job.spec();
    spec.job.expires_at_ms = lifetime;
  }
  if (is_taken(desk, request, spec.name))
    throw invalid_request("the cron " + cron->name + " belongs to another tenant", "name");
  const bool made = must(desk.admin.set_cron(spec));
  Reply reply = ok(text_of(must(desk.observer.cron(spec.name))));
  if (made) {
    reply.status = 201;
    reply.headers.emplace_back("Location", "/ojs/v1/cron/" + cron->name);
  }
  return reply;
}

Reply create(Desk& desk, const Request& request) {
  return set(desk, request, must(parse_cron(request.body, desk.now_ms())));
}

Reply get(Desk& desk, const Request& request) {
  return ok(text_of(cron_of(desk, request, request.names[0])));
}

/// {"enabled": false} alone leaves the times as they are; anything else is a new registration.
Reply change(Desk& desk, const Request& request) {
  const CronInfo cron = cron_of(desk, request, request.names[0]);
  const Body body(request);
  if (const auto name = body.text("name"); name && *name != cron.name)
    throw invalid_request("a cron keeps its name", "name");
  const auto enabled = body.flag("enabled");
  const auto others = std::ranges::count_if(body.members(), [](const json::Member& member) {
    return member.name != "enabled" && member.name != "name";
  });
  if (others == 0) {
    if (!enabled)
      throw invalid_request("enabled is missing, or another member to change", "enabled");
    must(desk.admin.enable_cron(cron.name, *enabled));
    return get(desk, request);
  }
  return set(desk, request, must(parse_cron_changes(cron, request.body, desk.now_ms())));
}

Reply remove(Desk& desk, const Request& request) {
  const CronInfo cron = cron_of(desk, request, request.names[0]);
  must(desk.admin.remove_cron(cron.name));
  return ok(object([&](json::ObjectWriter& writer) {
    writer.value("cron", cron_text(cron));
    writer.boolean("deleted", true);
    writer.text("name", cron.name);
  }));
}

Reply trigger(Desk& desk, const Request& request) {
  const CronInfo before = cron_of(desk, request, request.names[0]);
  const std::string id = must(desk.admin.trigger_cron(before.name), before.name).str();
  desk.hall.jobs_came();
  const auto cron = desk.observer.cron(before.name);
  const auto job = desk.observer.get(id);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("triggered", true);
    writer.text("name", before.name);
    writer.text("job_id", id);
    if (job) writer.value("job", job_text(desk, *job));
    writer.value("cron", cron_text(cron ? *cron : before));
  }));
}

Reply list(Desk& desk, const Request& request) {
  std::vector<CronInfo> crons = desk.observer.crons();
  const std::string_view tenant = request.header("x-ojs-tenant");
  const std::string* enabled = request.asked("enabled");
  if (enabled != nullptr && *enabled != "true" && *enabled != "false")
    throw invalid_request("enabled must be true or false", "enabled");
  std::erase_if(crons, [&](const CronInfo& cron) {
    return (enabled != nullptr && cron.enabled != (*enabled == "true")) ||
           (!tenant.empty() && tenant_of(cron.job.extra) != tenant);
  });
  const std::string body =
      Slice::of(request, kMostCrons).list({"crons", "cron_jobs", "items"}, crons, cron_text);
  return ok(joined(body, "{\"count\":" + std::to_string(crons.size()) + "}"));
}

}  // namespace

std::span<const Route> cron_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/cron", Scope::kRead, &list, {"", "CronList"}},
      {"POST", "/ojs/v1/cron", Scope::kWrite, &create, {"NewCron", "OneCron"}},
      {"GET", "/ojs/v1/cron/{name}", Scope::kRead, &get, {"", "OneCron"}},
      {"PATCH", "/ojs/v1/cron/{name}", Scope::kWrite, &change, {"CronChange", "OneCron"}},
      {"DELETE", "/ojs/v1/cron/{name}", Scope::kWrite, &remove, {"", "RemovedCron"}},
      {"POST", "/ojs/v1/cron/{name}/trigger", Scope::kWrite, &trigger, {"", "TriggeredCron"}},
      {"GET", "/ojs/v1/crons", Scope::kRead, &list, {"", "CronList"}},
      {"POST", "/ojs/v1/crons", Scope::kWrite, &create, {"NewCron", "OneCron"}},
      {"GET", "/ojs/v1/crons/{name}", Scope::kRead, &get, {"", "OneCron"}},
      {"PATCH", "/ojs/v1/crons/{name}", Scope::kWrite, &change, {"CronChange", "OneCron"}},
      {"DELETE", "/ojs/v1/crons/{name}", Scope::kWrite, &remove, {"", "RemovedCron"}},
      {"POST", "/ojs/v1/crons/{name}/trigger", Scope::kWrite, &trigger, {"", "TriggeredCron"}},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
