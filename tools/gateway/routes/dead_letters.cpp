// SPDX-License-Identifier: Apache-2.0
//
// Dead letters: jobs that failed for good and are kept for an operator.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/retention_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::uint32_t kMostDeadLetters = 1U << 24;  // as many as a segment has slots

/// What a query or a body may choose dead letters by.
constexpr std::array<std::string_view, 6> kChoosing = {"queue", "type",  "error_type",
                                                       "since", "until", "older_than"};

/// `since` and `until` are of when they were discarded. Source: ojs-dead-letter 6.2, 9.1.
void choose(JobFilter& filter, std::string_view name, const std::string& value,
            std::uint64_t now_ms) {
  if (name == "queue") filter.queue = value;
  if (name == "type") filter.type = value;
  if (name == "error_type") filter.error_type = value;
  const auto until = [&](std::uint64_t ms) {
    filter.ended_before_ms =
        filter.ended_before_ms == 0 ? ms : std::min(filter.ended_before_ms, ms);
  };
  if ((name == "since" || name == "until") && value.starts_with('+'))
    throw invalid_request("dead letters are of the past; no time counts from now on", name);
  if (name == "since")
    filter.ended_from_ms = std::max(filter.ended_from_ms, time_of(now_ms, value, name));
  if (name == "until") until(time_of(now_ms, value, name) + 1);
  if (name != "older_than") return;
  const ParsedMs age = parse_duration(value);  // how long ago, or when (ojs-admin-api 11.3)
  until(!age || age.ms < 0 ? time_of(now_ms, value, name)
                           : now_ms - std::min(now_ms - 1, static_cast<std::uint64_t>(age.ms)));
}

/// Which dead letters a request is about, as far as its query says it.
JobFilter wanted(Desk& desk, const Request& request) {
  JobFilter filter{.dead_letter = true};
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    filter.tenant = std::string(tenant);
  for (const std::string_view name : kChoosing)
    if (const std::string* value = request.asked(std::string(name)))
      choose(filter, name, *value, desk.now_ms());
  return filter;
}

/// The oldest jobs first. A type may end with a star.
JobPageRequest some(Desk& desk, const Request& request, std::size_t offset, std::size_t limit) {
  JobPageRequest some{
      .filter = wanted(desk, request), .falls = false, .offset = offset, .limit = limit};
  if (some.filter.type.ends_with('*')) {
    some.type_prefix = some.filter.type.substr(0, some.filter.type.size() - 1);
    some.filter.type.clear();
  }
  return some;
}

Reply list(Desk& desk, const Request& request) {
  const Slice slice = Slice::of_jobs(request);
  JobPageRequest asked = some(desk, request, slice.offset, slice.limit);
  asked.behind = slice.behind;
  return ok(slice.list({"jobs"}, desk.observer.page(asked),
                       [&](const JobInfo& job) { return job_text(desk, job); }));
}

/// With the order and the filters of a list of jobs. Source: ojs-admin-api 11.1.
Reply list_for_admin(Desk& desk, const Request& request) {
  const Page page = Page::of(request);
  JobPageRequest asked = some(desk, request, page.begin(), page.per_page);
  asked.order = order_asked(request);
  asked.falls = falls_asked(request);
  if (const std::string* state = request.asked("state")) asked.filter.state = state_named(*state);
  return ok(page.list(desk.observer.page(asked),
                      [&](const JobInfo& job) { return job_text(desk, job); }));
}

/// Source: ojs-http-binding 12.3.
JobInfo dead_letter_of(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  try {
    if (JobInfo job = job_of(desk, request, id); job.dead_letter) return job;
  } catch (const Fault& of_job) {
    if (of_job.status != 404) throw;
    Fault fault = not_found("dead_letter_job", id);
    const auto is_gone = [](const auto& detail) { return detail.first == "gone"; };
    if (std::ranges::any_of(of_job.details, is_gone)) {
      fault.message = of_job.message;
      fault.details.emplace_back("gone", "true");
    }
    throw fault;
  }
  throw not_found("dead_letter_job", id);
}

Reply retry(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  if (Body(request).raw("override"))
    throw unsupported("a dead letter is retried as it is; enqueue a new job to change it");
  dead_letter_of(desk, request);
  must_from("discarded", desk.admin.retry_dead(id), id);
  desk.hall.jobs_came();
  const std::string change = object([&](json::ObjectWriter& writer) {
    writer.text("re_enqueued_at", print_timestamp(desk.now_ms()));
  });
  return ok(wrapped_and_flat("job", joined(job_text(desk, job_of(desk, request, id)), change)));
}

Reply remove(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  dead_letter_of(desk, request);
  must_from("discarded", desk.admin.drop_dead(id), id);
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
  const std::vector<JobInfo> jobs = desk.observer.list(wanted(desk, request));
  std::map<std::string, std::int64_t> queues, types, errors;
  std::uint64_t oldest = 0, newest = 0;
  for (const JobInfo& job : jobs) {
    ++queues[job.queue];
    ++types[job.type];
    if (!job.errors.empty()) ++errors[std::string(error_type(job.errors.back()))];
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
    writer.value("retention", print_dead_retention(desk.observer.segment_settings()));
  }));
}

Reply get_retention(Desk& desk, const Request&) {
  return ok("{\"retention\":" + print_dead_retention(desk.observer.segment_settings()) + '}');
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
    if (!parsed) throw no_duration("max_age", parsed.fault, "a duration such as P180D");
    if (parsed.ms <= 0) throw invalid_request("max_age must be longer than nothing", "max_age");
    wanted.max_age_ms = static_cast<std::uint64_t>(parsed.ms);
  }
  if (const auto most = body.whole("max_count", 1, kMostDeadLetters)) wanted.max_count = *most;
  if (unlimited("max_age")) wanted.max_age_ms = 0;
  if (unlimited("max_count")) wanted.max_count = 0;
  if (!wanted.max_age_ms && !wanted.max_count)
    throw invalid_request("give max_age, such as \"P180D\", or max_count", "max_age");
  must(desk.admin.set_dead_retention(wanted));
  return get_retention(desk, request);
}

Reply get_one(Desk& desk, const Request& request) {
  const JobInfo job = dead_letter_of(desk, request);
  const std::string times = object([&](json::ObjectWriter& writer) {
    json::ObjectWriter metadata(writer.open("metadata"));  // ojs-dead-letter 9.2
    metadata.text("created_at", print_timestamp(job.created_at_ms));
    metadata.text("discarded_at", print_timestamp(job.discarded_at_ms));
    metadata.close();
  });
  return ok(wrapped_and_flat("job", joined(job_text(desk, job), times)));
}

/// What query and body choose: {"filter": {...}}, or the same at the top. What says nothing is
/// refused, for it was meant to keep some out.
JobFilter chosen(Desk& desk, const Request& request) {
  const auto check = [](const std::string& name, std::string_view value) {
    if (std::ranges::find(kChoosing, name) == kChoosing.end() || value.empty())
      throw invalid_request(fmt::format("{} chooses no dead letters", name), name);
  };
  for (const auto& [name, value] : request.query)
    if (name != "confirm") check(name, value);
  const Body body(request);
  if (body.flag("confirm") == false)
    throw invalid_request("nothing is done with \"confirm\": false", "confirm");
  JobFilter filter = wanted(desk, request);
  const auto take = [&](const Body& from, bool is_filter) {
    for (const json::Member& member : from.members()) {
      if (!is_filter && (member.name == "filter" || member.name == "confirm")) continue;
      const std::string value = from.text(member.name).value_or("");
      check(member.name, value);
      choose(filter, member.name, value, desk.now_ms());
    }
  };
  take(body, false);
  if (const auto inner = body.object("filter"))
    take(*inner, true);
  else if (std::ranges::any_of(body.members(),
                               [](const auto& each) { return each.name == "filter"; }))
    throw invalid_request("filter chooses no dead letters", "filter");
  if (filter.type.ends_with('*'))
    throw invalid_request("a type that ends in * chooses in lists alone", "type");
  return filter;
}

Reply in_bulk(Desk& desk, const JobFilter& filter, BulkAction action,
              std::initializer_list<std::string_view> counts) {
  const BulkReport report = must(desk.admin.bulk(action, filter));
  desk.hall.jobs_came();
  return ok(object([&](json::ObjectWriter& writer) {
    for (const std::string_view count : counts)
      writer.number(count, static_cast<std::int64_t>(report.done));
    writer.number("matched", static_cast<std::int64_t>(report.matched));
    for (const std::string_view name : {"skipped", "failed"})
      writer.number(name, static_cast<std::int64_t>(report.skipped));
  }));
}

Reply retry_all(Desk& desk, const Request& request) {
  return in_bulk(desk, chosen(desk, request), BulkAction::kRetryDead, {"retried", "succeeded"});
}
Reply purge(Desk& desk, const Request& request) {
  return in_bulk(desk, chosen(desk, request), BulkAction::kDropDead, {"purged", "deleted"});
}
/// Source: ojs-admin-api 11.3.
Reply purge_for_admin(Desk& desk, const Request& request) {
  if (!Body(request).flag("confirm").value_or(false))
    throw invalid_request("dead letters are purged only with \"confirm\": true", "confirm");
  return purge(desk, request);
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
      {"GET", "/ojs/v1/dead-letter/{id}", Scope::kRead, &get_one, {"", "DeadLetter"}},
      {"POST", "/ojs/v1/dead-letter/{id}/retry", Scope::kWrite, &retry, {"", "ShownJob"}},
      {"DELETE", "/ojs/v1/dead-letter/{id}", Scope::kWrite, &remove, {"", "DeletedJob"}},
      {"GET", "/ojs/v1/admin/dead-letter", Scope::kRead, &list_for_admin, {"", "JobPage"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/admin/dead-letter", Scope::kAdmin, &purge_for_admin, {"ConfirmedDeadLetters", "Dropped"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/dead-letter/stats", Scope::kRead, &stats, {"", "DeadLetterStats"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/dead-letter/retry", Scope::kAdmin, &retry_all, {"SomeDeadLetters", "Retried"}, Pace::kSlow},
      {"POST", "/ojs/v1/admin/dead-letter/{id}/retry", Scope::kAdmin, &retry, {"", "ShownJob"}},
      {"GET", "/ojs/v1/admin/dead-letter/{id}", Scope::kRead, &get_one, {"", "DeadLetter"}},
      {"DELETE", "/ojs/v1/admin/dead-letter/{id}", Scope::kAdmin, &remove_for_admin},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
