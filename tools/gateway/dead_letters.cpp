// SPDX-License-Identifier: Apache-2.0
//
// Dead letters: jobs that failed for good and are kept for an operator.
#include <algorithm>
#include <map>

#include "tools/gateway/body.hpp"
#include "tools/gateway/fault.hpp"
#include "tools/gateway/hall.hpp"
#include "tools/gateway/handlers.hpp"
#include "tools/gateway/job_reply.hpp"
#include "tools/gateway/json_text.hpp"
#include "tools/gateway/paging.hpp"
#include "worker_api/json/retention_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::uint32_t kMostDeadLetters = 1U << 24;  // as many as a segment has slots

JobFilter wanted(const Request& request) {
  JobFilter filter{.dead_letter = true};
  if (const std::string* queue = request.asked("queue")) filter.queue = *queue;
  if (const std::string* type = request.asked("type")) filter.type = *type;
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    filter.tenant = std::string(tenant);
  return filter;
}

/// The oldest jobs first.
JobPage some(Desk& desk, const Request& request, std::size_t offset, std::size_t limit) {
  return desk.observer.page(
      {.filter = wanted(request), .falls = false, .offset = offset, .limit = limit});
}

Reply list(Desk& desk, const Request& request) {
  const Slice slice = Slice::of(request);
  return ok(slice.list("jobs", some(desk, request, slice.offset, slice.limit),
                       [&](const JobInfo& job) { return job_text(desk, job); }));
}

Reply list_for_admin(Desk& desk, const Request& request) {
  const Page page = Page::of(request);
  return ok(page.list(some(desk, request, page.begin(), page.per_page),
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
    writer.value("retention", print_dead_retention(desk.observer.segment_info()));
  }));
}

Reply get_retention(Desk& desk, const Request&) {
  return ok("{\"retention\":" + print_dead_retention(desk.observer.segment_info()) + '}');
}

/// {"max_age": a duration, "max_count": a number}, at the top or as the configuration has it; null:
/// without limit. What is left out stays.
Reply set_retention(Desk& desk, const Request& request) {
  const Body whole(request);
  const auto outer = whole.object("dead_letter");
  const auto inner = outer ? outer->object("retention") : whole.object("retention");
  const Body& body = inner ? *inner : whole;
  const auto unlimited = [&body](std::string_view name) {
    return std::ranges::any_of(body.members(), [&](const json::Member& member) {
      return member.name == name && json::kind_of(member.value) == json::Kind::kNull;
    });
  };
  DeadLetterRetention wanted;
  if (const auto age = body.text("max_age")) {
    const ParsedMs parsed = parse_duration(*age);
    if (!parsed) throw invalid_request("max_age must be a duration such as P180D", "max_age");
    wanted.max_age_ms = static_cast<std::uint64_t>(parsed.ms);
  }
  if (const auto most = body.whole("max_count", 0, kMostDeadLetters)) wanted.max_count = *most;
  if (unlimited("max_age")) wanted.max_age_ms = 0;
  if (unlimited("max_count")) wanted.max_count = 0;
  if (!wanted.max_age_ms && !wanted.max_count)
    throw invalid_request("give max_age, such as \"P180D\", or max_count", "max_age");
  must(desk.admin.set_dead_retention(wanted));
  return get_retention(desk, request);
}

Reply get_one(Desk& desk, const Request& request) {
  const JobInfo job = job_of(desk, request, request.names[0]);
  if (!job.dead_letter) throw not_found("dead_letter", request.names[0]);
  return ok(wrapped_and_flat("job", job_text(desk, job)));
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
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/dead-letter", Scope::kRead, &list, {"", "DeadLetters"}, Pace::kSlow},
      {"GET", "/ojs/v1/dead-letter/stats", Scope::kRead, &stats, {"", "DeadLetterStats"}, Pace::kSlow},
      {"POST", "/ojs/v1/dead-letter/purge", Scope::kAdmin, &purge, {"SomeDeadLetters", "Dropped"}, Pace::kSlow},
      {"POST", "/ojs/v1/dead-letter/retry", Scope::kAdmin, &retry_all, {"SomeDeadLetters", "Retried"}, Pace::kSlow},
      {"GET", "/ojs/v1/dead-letter/retention", Scope::kRead, &get_retention, {"", "Retention"}},
      {"PUT", "/ojs/v1/dead-letter/retention", Scope::kAdmin, &set_retention, {"NewRetention", "Retention"}},
      {"GET", "/ojs/v1/admin/dead-letter/retention", Scope::kRead, &get_retention, {"", "Retention"}},
      {"PUT", "/ojs/v1/admin/dead-letter/retention", Scope::kAdmin, &set_retention, {"NewRetention", "Retention"}},
      {"DELETE", "/ojs/v1/dead-letter", Scope::kAdmin, &purge, {"SomeDeadLetters", "Dropped"}, Pace::kSlow},
      {"GET", "/ojs/v1/dead-letter/{id}", Scope::kRead, &get_one, {"", "ShownJob"}},
      {"POST", "/ojs/v1/dead-letter/{id}/retry", Scope::kWrite, &retry, {"", "ShownJob"}},
      {"DELETE", "/ojs/v1/dead-letter/{id}", Scope::kWrite, &remove, {"", "DeletedJob"}},
      {"GET", "/ojs/v1/admin/dead-letter", Scope::kRead, &list_for_admin, {"", "JobPage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/dead-letter/stats", Scope::kRead, &stats, {"", "DeadLetterStats"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/dead-letter/{id}/retry", Scope::kAdmin, &retry, {"", "ShownJob"}},
      {"DELETE", "/ojs/v1/admin/dead-letter/{id}", Scope::kAdmin, &remove_for_admin},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
