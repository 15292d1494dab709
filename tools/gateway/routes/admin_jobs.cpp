// SPDX-License-Identifier: Apache-2.0
//
// Jobs, for operators: lists by filter, details, many at once.
#include <algorithm>
#include <charconv>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/json/unique_key.hpp"

namespace ojs_shm::gateway {
namespace {

/// Which jobs are meant; `since` is not in the segment's own filter.
struct Choice {
  JobFilter filter;
  std::uint64_t since_ms = 0;
  std::string type_prefix;

  JobPageRequest request() const {
    return {
        .filter = filter, .type_prefix = type_prefix, .created_from_ms = since_ms, .falls = false};
  }
  void choose_type(const std::string& type) {
    if (type.ends_with('*'))
      type_prefix = type.substr(0, type.size() - 1);
    else
      filter.type = type;
  }
};

Choice asked(Desk& desk, const Request& request) {
  Choice choice;
  if (const std::string* queue = request.asked("queue")) choice.filter.queue = *queue;
  if (const std::string* state = request.asked("state")) choice.filter.state = state_named(*state);
  if (const std::string* type = request.asked("type")) choice.choose_type(*type);
  if (const std::string* since = request.asked("since"))
    choice.since_ms = time_of(desk.now_ms(), *since, "since");
  if (const std::string* until = request.asked("until"))
    choice.filter.created_before_ms = time_of(desk.now_ms(), *until, "until");
  if (const std::string* tenant = request.asked("tenant")) choice.filter.tenant = *tenant;
  if (const std::string* unique = request.asked("unique")) {
    if (*unique != "true" && *unique != "false")
      throw invalid_request("unique must be true or false", "unique");
    choice.filter.unique = *unique == "true";
  }
  if (const std::string_view own = request.header("x-ojs-tenant"); !own.empty()) {
    if (choice.filter.tenant && *choice.filter.tenant != own)
      throw not_found("tenant", *choice.filter.tenant);
    choice.filter.tenant = std::string(own);
  }
  return choice;
}

/// Of a list of unique jobs: with the key that keeps other jobs out, its policy, and until when.
std::string item_text(Desk& desk, const JobInfo& job, bool unique) {
  std::string text = job_text(desk, job);
  if (!unique || job.unique_key.empty()) return text;
  return joined(std::move(text), object([&](json::ObjectWriter& writer) {
                  writer.text("unique_key", job.unique_key);
                  writer.value("unique_policy", print_unique(job.unique_key, job.unique));
                  if (job.unique.period_ms != 0)
                    writer.text("unique_until",
                                print_timestamp(job.created_at_ms + job.unique.period_ms));
                }));
}

Reply list_chosen(Desk& desk, const Request& request, const Choice& choice) {
  const Page page = Page::of(request);
  JobPageRequest wanted = choice.request();
  wanted.order = order_asked(request);
  wanted.falls = falls_asked(request);
  wanted.offset = page.begin();
  wanted.limit = page.per_page;
  if (const std::string* cursor = request.asked("cursor")) {
    if (page.page != 1) throw invalid_request("a list has either a cursor or a page", "cursor");
    if (wanted.order != JobOrder::kCreated)
      throw invalid_request("a cursor goes with sort=created_at", "cursor");
    wanted.behind = place_of(*cursor);
  }
  const JobPage found = desk.observer.page(wanted);
  const std::string items = joined_texts(
      found.jobs, [&](const JobInfo& job) { return item_text(desk, job, choice.filter.unique); });
  std::string pagination = page.text(found.total, found.more);
  if (found.more && !found.jobs.empty())
    pagination = joined(std::move(pagination),
                        "{\"next_cursor\":" + quoted(cursor_of(found.jobs.back())) + "}");
  return ok("{" + named({"items", "jobs"}, items) + ",\"pagination\":" + pagination + "}");
}

Reply list(Desk& desk, const Request& request) {
  return list_chosen(desk, request, asked(desk, request));
}

/// Source: ojs-multi-tenancy 10.3.
Reply list_of_tenant(Desk& desk, const Request& request) {
  const std::string& tenant = named_tenant(request);
  Choice choice = asked(desk, request);
  if (choice.filter.tenant.value_or(tenant) != tenant) throw not_found("tenant", tenant);
  choice.filter.tenant = tenant;
  return list_chosen(desk, request, choice);
}

/// With `result` and `errors` where there are none, and the times once more in `metadata`. Source:
/// ojs-admin-api 7.2.
Reply get(Desk& desk, const Request& request) {
  const JobInfo job = job_of(desk, request, request.names[0]);
  const std::string text = job_text(desk, job);
  std::string retry = "{}";
  bool result = false, errors = false;
  for (const json::Member& member : json::members_of(text)) {
    if (member.name == "retry") retry = std::string(member.value);
    result = result || member.name == "result";
    errors = errors || member.name == "errors";
  }
  return ok(joined(text, object([&](json::ObjectWriter& writer) {
                     if (!result) writer.value("result", "null");
                     if (!errors) writer.value("errors", "[]");
                     writer.value("retry_policy", retry);
                     json::ObjectWriter times(writer.open("metadata"));
                     for (const auto& [name, at] : {std::pair("created_at", job.created_at_ms),
                                                    std::pair("enqueued_at", job.enqueued_at_ms),
                                                    std::pair("started_at", job.started_at_ms),
                                                    std::pair("scheduled_at", job.scheduled_at_ms),
                                                    std::pair("completed_at", job.completed_at_ms),
                                                    std::pair("cancelled_at", job.cancelled_at_ms),
                                                    std::pair("discarded_at", job.discarded_at_ms)})
                       if (at != 0)
                         times.text(name, print_timestamp(at));
                       else
                         times.value(name, "null");
                     times.close();
                   })));
}

Reply retry(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  const JobInfo job = job_of(desk, request, id);
  if (job.state == State::kRetryable || job.state == State::kScheduled)
    must(desk.producer().promote(id), id);
  else
    must_from("discarded, cancelled, retryable or scheduled", desk.producer().retry(id), id);
  desk.hall.jobs_came();
  return job_reply(desk, job_of(desk, request, id));
}

/// {"filter": {...}, "confirm": true}.
Choice confirmed(Desk& desk, const Request& request) {
  const Body body(request);
  if (!body.flag("confirm").value_or(false))
    throw invalid_request("many jobs at once are changed only with \"confirm\": true", "confirm");
  Choice choice;
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    choice.filter.tenant = std::string(tenant);
  for (const json::Member& member : body.members())
    if ((member.name != "filter" && member.name != "confirm") ||
        json::kind_of(member.value) == json::Kind::kNull)
      throw invalid_request(member.name.substr(0, 64) + " chooses no jobs", member.name);
  const auto filter = body.object("filter");
  if (!filter) return choice;
  filter->choose_by({"queue", "state", "type", "since", "until", "tenant"});
  if (const auto queue = filter->text("queue")) choice.filter.queue = *queue;
  if (const auto state = filter->text("state")) choice.filter.state = state_named(*state);
  if (const auto type = filter->text("type")) choice.choose_type(*type);
  if (const auto since = filter->text("since"))
    choice.since_ms = time_of(desk.now_ms(), *since, "filter.since");
  if (const auto until = filter->text("until"))
    choice.filter.created_before_ms = time_of(desk.now_ms(), *until, "filter.until");
  if (const auto tenant = filter->text("tenant")) {
    if (choice.filter.tenant && *choice.filter.tenant != *tenant)
      throw invalid_request("X-OJS-Tenant and filter.tenant name different tenants",
                            "filter.tenant");
    choice.filter.tenant = *tenant;
  }
  return choice;
}

bool any(const BriefJob&) { return true; }

/// To the jobs of the choice that it is for.
template <class Change>
Reply in_bulk(Desk& desk, const Choice& choice, std::string_view action, Change change,
              bool (*is_for)(const BriefJob&) = &any) {
  std::vector<std::pair<std::string, std::string>> errors;
  std::int64_t matched = 0, succeeded = 0, failed = 0;
  for (const BriefJob& job : desk.observer.brief_list(choice.request())) {
    if (!is_for(job)) continue;
    ++matched;
    const Status done = change(job.id);
    done ? ++succeeded : ++failed;
    if (!done && errors.size() < 100) errors.emplace_back(job.id, done.error().message);
  }
  desk.hall.jobs_came();
  desk.admin.tell_bulk(action == "retry"    ? BulkKind::kRetry
                       : action == "cancel" ? BulkKind::kCancel
                                            : BulkKind::kDelete,
                       static_cast<std::uint64_t>(matched), static_cast<std::uint64_t>(succeeded));
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("action", action);
    writer.number("matched", matched);
    writer.number("succeeded", succeeded);
    writer.number("failed", failed);
    writer.value("errors", array_of(errors, [](const auto& each) {
                   return object([&](json::ObjectWriter& error) {
                     error.text("job_id", each.first);
                     error.text("error", each.second);
                   });
                 }));
  }));
}

/// Cancelled jobs only by their name.
Reply bulk_retry(Desk& desk, const Request& request) {
  Choice choice = confirmed(desk, request);
  if (!choice.filter.state) choice.filter.state = State::kDiscarded;
  return in_bulk(desk, choice, "retry", [&](const std::string& id) {
    return choice.filter.state == State::kRetryable ? desk.producer().promote(id)
                                                    : desk.producer().retry(id);
  });
}

/// Without a state: of jobs that wait and of active ones. Source: ojs-admin-api 8.2.
Reply bulk_cancel(Desk& desk, const Request& request) {
  const Choice choice = confirmed(desk, request);
  const auto cancel = [&](const std::string& id) -> Status {
    const auto done = desk.producer().cancel(id);
    return done ? Status() : Status(done.error());
  };
  if (choice.filter.state) return in_bulk(desk, choice, "cancel", cancel);
  return in_bulk(desk, choice, "cancel", cancel,
                 [](const BriefJob& job) { return !is_terminal(job.state); });
}

Reply bulk_delete(Desk& desk, const Request& request) {
  const Choice choice = confirmed(desk, request);
  if (choice.filter.state && !is_terminal(*choice.filter.state))
    throw invalid_request("only completed, cancelled and discarded jobs can be deleted",
                          "filter.state");
  return in_bulk(
      desk, choice, "delete", [&](const std::string& id) { return desk.admin.drop(id); },
      [](const BriefJob& job) { return is_terminal(job.state); });
}

}  // namespace

std::span<const Route> admin_job_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/jobs", Scope::kRead, &list, {"", "JobPage"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/jobs/bulk/retry", Scope::kAdmin, &bulk_retry, {"ManyJobs", "BulkReport"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/jobs/bulk/cancel", Scope::kAdmin, &bulk_cancel, {"ManyJobs", "BulkReport"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/jobs/bulk/delete", Scope::kAdmin, &bulk_delete, {"ManyJobs", "BulkReport"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{tenant}/jobs", Scope::kRead, &list_of_tenant, {"", "JobPage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/jobs/{id}", Scope::kRead, &get, {"", "JobDetail"}},
      {"POST", "/ojs/v1/admin/jobs/{id}/retry", Scope::kAdmin, &retry, {"", "ShownJob"}},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
