// SPDX-License-Identifier: Apache-2.0
//
// Dead letters: jobs that failed for good and are kept for an operator.
#include <map>

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

JobFilter wanted(const Request& request) {
  JobFilter filter{.dead_letter = true};
  if (const std::string* queue = request.asked("queue")) filter.queue = *queue;
  if (const std::string* type = request.asked("type")) filter.type = *type;
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    filter.tenant = std::string(tenant);
  return filter;
}

Reply list(Desk& desk, const Request& request) {
  return ok(Slice::of(request).list("jobs", desk.observer.list(wanted(request)),
                                    [&](const JobInfo& job) { return job_text(desk, job); }));
}

Reply list_for_admin(Desk& desk, const Request& request) {
  return ok(Page::of(request).list(desk.observer.list(wanted(request)),
                                   [&](const JobInfo& job) { return job_text(desk, job); }));
}

Reply retry(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  job_of(desk, request, id);
  must(desk.admin.retry_dead(id), id);
  desk.hall.jobs_came();
  const JobInfo job = job_of(desk, request, id);
  return ok(wrapped_and_flat("job", job_text(desk, job)));
}

Reply remove(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  job_of(desk, request, id);
  must(desk.admin.drop_dead(id), id);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("deleted", true);
    writer.text("job_id", id);
  }));
}

Reply remove_for_admin(Desk& desk, const Request& request) {
  remove(desk, request);
  return {.status = 204};
}

void write_tally(json::ObjectWriter& writer, std::string_view name,
                 const std::map<std::string, std::int64_t>& tally) {
  json::ObjectWriter inner(writer.open(name));
  for (const auto& [key, jobs] : tally) inner.number(key, jobs);
  inner.close();
}

Reply stats(Desk& desk, const Request& request) {
  const std::vector<JobInfo> jobs = desk.observer.list(wanted(request));
  std::map<std::string, std::int64_t> queues, types, errors;
  std::uint64_t oldest = 0, newest = 0;
  for (const JobInfo& job : jobs) {
    ++queues[job.queue];
    ++types[job.type];
    if (!job.errors.empty())
      ++errors[job.errors.back().type.empty() ? job.errors.back().code : job.errors.back().type];
    if (oldest == 0 || job.discarded_at_ms < oldest) oldest = job.discarded_at_ms;
    newest = std::max(newest, job.discarded_at_ms);
  }
  return ok(object([&](json::ObjectWriter& writer) {
    writer.number("total", static_cast<std::int64_t>(jobs.size()));
    write_tally(writer, "by_queue", queues);
    write_tally(writer, "by_type", types);
    write_tally(writer, "by_error_type", errors);
    for (const auto& [name, at] : {std::pair("oldest_at", oldest), std::pair("newest_at", newest)})
      if (at != 0)
        writer.text(name, print_timestamp(at));
      else
        writer.value(name, "null");
  }));
}

/// {"queue"?, "type"?}: what the body chooses; many at once need a confirmation where they are lost.
Reply in_bulk(Desk& desk, const Request& request, BulkAction action, std::string_view count) {
  const Body body(request);
  JobFilter filter = wanted(request);
  if (const auto queue = body.text("queue")) filter.queue = *queue;
  if (const auto type = body.text("type")) filter.type = *type;
  const BulkReport report = must(desk.admin.bulk(action, filter));
  desk.hall.jobs_came();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.number(count, static_cast<std::int64_t>(report.done));
    writer.number("matched", static_cast<std::int64_t>(report.matched));
    writer.number("skipped", static_cast<std::int64_t>(report.skipped));
  }));
}

Reply retry_all(Desk& desk, const Request& request) {
  return in_bulk(desk, request, BulkAction::kRetryDead, "retried");
}
Reply purge(Desk& desk, const Request& request) {
  return in_bulk(desk, request, BulkAction::kDropDead, "purged");
}

}  // namespace

std::span<const Route> dead_letter_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/dead-letter", Scope::kRead, &list, Pace::kSlow},
      {"GET", "/ojs/v1/dead-letter/stats", Scope::kRead, &stats, Pace::kSlow},
      {"POST", "/ojs/v1/dead-letter/purge", Scope::kAdmin, &purge, Pace::kSlow},
      {"POST", "/ojs/v1/dead-letter/retry", Scope::kAdmin, &retry_all, Pace::kSlow},
      {"POST", "/ojs/v1/dead-letter/{id}/retry", Scope::kWrite, &retry},
      {"DELETE", "/ojs/v1/dead-letter/{id}", Scope::kWrite, &remove},
      {"GET", "/ojs/v1/admin/dead-letter", Scope::kRead, &list_for_admin, Pace::kSlow},
      {"GET", "/ojs/v1/admin/dead-letter/stats", Scope::kRead, &stats, Pace::kSlow},
      {"POST", "/ojs/v1/admin/dead-letter/{id}/retry", Scope::kAdmin, &retry},
      {"DELETE", "/ojs/v1/admin/dead-letter/{id}", Scope::kAdmin, &remove_for_admin},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
