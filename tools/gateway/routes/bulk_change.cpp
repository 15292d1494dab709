// SPDX-License-Identifier: Apache-2.0
//
// Many jobs are changed by one request, each with its own outcome. Source: ojs-bulk-operations 6 to
// 8.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/receipt.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/bulk.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::size_t kMostByFilter = 10'000;

/// What is done to each job, and to which it can be done.
struct Change {
  BulkKind kind;
  std::string_view operation, done;  ///< "cancel", "cancelled"
  std::vector<State> states, unless_said;
  std::function<Status(const std::string& id, State state)> act;
};

/// A list of them, or one by itself. Source: ojs-bulk-operations 6.1, ojs-admin-api 8.1.
std::vector<State> states_of(const Body& filter, const Change& change) {
  const auto given = filter.raw("state");
  if (!given) return change.unless_said;
  const auto one = json::string_of(*given);
  const auto names = one ? std::vector{*one} : *filter.texts("state");
  std::vector<State> states;
  for (const std::string& name : names) {
    const auto state = std::ranges::find(change.states, name, state_name);
    if (state == change.states.end())
      throw invalid_request(
          fmt::format("jobs that are '{}' cannot be {}", name.substr(0, 64), change.done),
          "filter.state");
    states.push_back(*state);
  }
  return states;
}

/// Whether the job's meta has all of these members.
bool has_meta(const JobInfo& job, const Body& wanted) {
  const auto is_object = [](std::string_view text) {
    return json::check(text) && json::kind_of(json::trim(text)) == json::Kind::kObject;
  };
  if (!is_object(job.extra)) return false;
  const auto text = Body(json::trim(job.extra), "").raw("meta");
  if (!text || !is_object(*text)) return false;
  const Body meta(*text, "");
  return std::ranges::all_of(wanted.members(), [&](const json::Member& member) {
    const auto value = meta.raw(member.name);
    return value && json::compact(*value) == json::compact(member.value);
  });
}

/// A filter, understood.
struct Choice {
  JobFilter wanted;
  std::vector<State> states;
  std::uint64_t before, after;  ///< Unix ms
  std::optional<Body> meta;
};

Choice read_choice(const Request& request, const Body& filter, const Change& change) {
  filter.choose_by(
      {"type", "queue", "state", "enqueued_before", "enqueued_after", "priority", "meta"});
  if (filter.members().empty())
    throw invalid_request("a filter names at least one member of the jobs that it chooses",
                          "filter");
  JobFilter wanted{.queue = filter.text("queue").value_or(""),
                   .type = filter.text("type").value_or(""),
                   .priority = filter.integer("priority")};
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    wanted.tenant = std::string(tenant);
  return {.wanted = wanted,
          .states = states_of(filter, change),
          .before = filter.moment("enqueued_before").value_or(~0ULL),
          .after = filter.moment("enqueued_after").value_or(0),
          .meta = filter.object("meta")};
}

std::vector<std::string> chosen(Desk& desk, Choice choice) {
  std::vector<std::string> ids;
  const bool looks_inside = choice.meta || choice.before != ~0ULL || choice.after != 0;
  for (const State state : choice.states) {
    choice.wanted.state = state;
    for (const BriefJob& brief :
         desk.observer.brief_list({.filter = choice.wanted, .falls = false})) {
      if (looks_inside) {
        const auto job = desk.observer.get(brief.id);
        if (!job || job->enqueued_at_ms >= choice.before || job->enqueued_at_ms < choice.after ||
            (choice.meta && !has_meta(*job, *choice.meta)))
          continue;
      }
      ids.push_back(brief.id);
      check_bulk_size(ids.size(), kMostByFilter);
    }
  }
  return ids;
}

/// What the same request chose before its gateway died, or what it chooses now, and leaves to the
/// next.
std::vector<std::string> chosen_once(Desk& desk, const Choice& choice,
                                     std::optional<Receipt>& receipt) {
  if (receipt && receipt->chosen()) return *receipt->chosen();
  try {
    std::vector<std::string> ids = chosen(desk, choice);
    if (receipt) receipt->note(desk, ids);
    return ids;
  } catch (const Fault&) {
    if (receipt) receipt->give_up(desk);
    throw;
  }
}

/// Why it was left alone, if it was.
std::optional<Fault> refusal(Desk& desk, const Request& request, const std::string& id,
                             const Change& change) {
  try {
    const JobInfo job = job_of(desk, request, id);
    if (std::ranges::find(change.states, job.state) == change.states.end())
      return Fault{.status = 409,
                   .code = "conflict",
                   .message = fmt::format("the job is {}", state_name(job.state))};
    must(change.act(id, job.state), id);
    return {};
  } catch (Fault& fault) {
    return std::move(fault);
  }
}

std::size_t skips(const std::vector<std::optional<Fault>>& reasons) {
  return static_cast<std::size_t>(
      std::ranges::count_if(reasons, [](const auto& reason) { return reason.has_value(); }));
}

/// What became of each job. Without the reasons it is short enough to be kept.
Reply told(const Change& change, const std::vector<std::string>& ids,
           const std::vector<std::optional<Fault>>& reasons, bool with_reasons) {
  const std::size_t skipped = skips(reasons), changed = ids.size() - skipped;
  Reply reply{.status = bulk_status(changed, skipped, 200)};
  reply.headers.emplace_back(kBatchSize, std::to_string(ids.size()));
  reply.body = object([&](json::ObjectWriter& writer) {
    writer.number("total_matched", static_cast<std::int64_t>(ids.size()));
    writer.number(std::string(change.done), static_cast<std::int64_t>(changed));
    writer.number("skipped", static_cast<std::int64_t>(skipped));
    std::string& items = writer.open("items") += '[';
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i != 0) items += ',';
      items += object([&](json::ObjectWriter& item) {
        item.number("index", static_cast<std::int64_t>(i));
        item.text("job_id", ids[i]);
        item.text("status", reasons[i] ? "skipped" : change.done);
        if (!reasons[i] || !with_reasons) return;
        item.text("reason", reasons[i]->message);
        item.value("error", error_text(*reasons[i]));
      });
    }
    items += ']';
  });
  return reply;
}

/// {"job_ids": [...]} or {"filter": {...}}.
Reply change_each(Desk& desk, const Request& request, const Change& change) {
  const auto begin = std::chrono::steady_clock::now();
  const Body body(request);
  if (is_atomic(body))
    throw unsupported(
        fmt::format("many jobs are {} one by one; atomicity must be partial", change.done));
  auto ids = body.ids("job_ids");
  const auto filter = body.object("filter");
  if (ids.has_value() == filter.has_value())
    throw invalid_request("give either job_ids or filter", ids ? "filter" : "job_ids");
  if (ids) check_bulk_size(ids->size());
  std::optional<Choice> choice;
  if (filter) choice = read_choice(request, *filter, change);
  auto receipt = Receipt::of(desk, request, body, change.operation);
  if (receipt && receipt->reply()) return *receipt->reply();
  if (choice) ids = chosen_once(desk, *choice, receipt);
  std::vector<std::optional<Fault>> reasons;
  reasons.reserve(ids->size());
  for (const std::string& id : *ids) reasons.push_back(refusal(desk, request, id, change));
  const std::size_t skipped = skips(reasons), changed = ids->size() - skipped;
  desk.hall.jobs_came();
  desk.admin.tell_bulk(change.kind, ids->size(), changed);
  desk.hall.bulk_meter().count(change.operation, false,
                               {{change.done, changed}, {"skipped", skipped}},
                               std::chrono::steady_clock::now() - begin);
  Reply reply = told(change, *ids, reasons, true);
  if (receipt && !receipt->keep(desk, reply)) {
    reply = told(change, *ids, reasons, false);
    receipt->keep(desk, reply);
  }
  return reply;
}

/// An active job is left to its worker.
Reply cancel(Desk& desk, const Request& request) {
  return change_each(desk, request,
                     {.kind = BulkKind::kCancel,
                      .operation = "cancel",
                      .done = "cancelled",
                      .states = {State::kAvailable, State::kScheduled, State::kRetryable},
                      .unless_said = {State::kAvailable, State::kScheduled},
                      .act = [&](const std::string& id, State) -> Status {
                        const auto done = desk.producer().cancel(id);
                        return done ? Status() : Status(done.error());
                      }});
}

Reply retry(Desk& desk, const Request& request) {
  return change_each(desk, request,
                     {.kind = BulkKind::kRetry,
                      .operation = "retry",
                      .done = "retried",
                      .states = {State::kDiscarded, State::kRetryable},
                      .unless_said = {State::kDiscarded, State::kRetryable},
                      .act = [&](const std::string& id, State state) {
                        return state == State::kRetryable ? desk.producer().promote(id)
                                                          : desk.producer().retry(id);
                      }});
}

Reply remove(Desk& desk, const Request& request) {
  const std::vector<State> over = {State::kCompleted, State::kCancelled, State::kDiscarded};
  return change_each(desk, request,
                     {.kind = BulkKind::kDelete,
                      .operation = "delete",
                      .done = "deleted",
                      .states = over,
                      .unless_said = over,
                      .act = [&](const std::string& id, State) { return desk.admin.drop(id); }});
}

}  // namespace

std::span<const Route> bulk_change_routes() {
  static const Route kRoutes[] = {
      {"POST",
       "/ojs/v1/jobs/bulk/cancel",
       Scope::kWrite,
       &cancel,
       {"ChosenJobs", "BulkChanged", "422"},
       Pace::kSlow},
      {"POST",
       "/ojs/v1/jobs/bulk/retry",
       Scope::kWrite,
       &retry,
       {"ChosenJobs", "BulkChanged", "422"},
       Pace::kSlow},
      {"POST",
       "/ojs/v1/jobs/bulk/delete",
       Scope::kAdmin,
       &remove,
       {"ChosenJobs", "BulkChanged", "422"},
       Pace::kSlow},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
