// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/routes/fault.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "tools/gateway/replies/json_text.hpp"

namespace ojs_shm::gateway {
namespace {

/// What the native error is over HTTP.
struct Row {
  Code native;
  std::string_view code;
  unsigned status;
  bool retryable;
};
constexpr Row kTable[] = {
    {Code::kInvalid, "invalid_request", 400, false},
    {Code::kNotFound, "not_found", 404, false},
    {Code::kWrongState, "conflict", 409, false},
    {Code::kLost, "conflict", 409, false},
    {Code::kEmpty, "conflict", 409, false},
    {Code::kDuplicate, "duplicate", 409, false},
    {Code::kTooLarge, "envelope_too_large", 413, false},
    {Code::kQueueFull, "QUEUE_FULL", 429, true},
    {Code::kSegmentFull, "SEGMENT_FULL", 503, true},
    {Code::kNoSpace, "SEGMENT_FULL", 503, true},
    {Code::kTimeout, "backend_error", 503, true},
    {Code::kClosed, "backend_error", 503, true},
    {Code::kCannotAttach, "backend_error", 503, true},
    {Code::kInUse, "backend_error", 503, true},
    {Code::kOtherFormat, "backend_error", 503, true},
    {Code::kStaleVersion, "backend_error", 503, true},
    {Code::kPermission, "backend_error", 500, true},
    {Code::kInternal, "backend_error", 500, true},
};

const Row& row_of(Code code) {
  for (const Row& row : kTable)
    if (row.native == code) return row;
  return kTable[std::size(kTable) - 1];
}

/// A full queue speaks as ojs-backpressure 7 says: members in the error, numbers in headers.
void tell_full_queue(const Error& error, Fault& fault) {
  if (error.tenant) fault.code = "TENANT_LIMIT_EXCEEDED";
  const std::string unit = error.unit == "bytes" ? " bytes" : "";
  const std::string who =
      error.tenant ? fmt::format("Tenant '{}' of queue '{}'", *error.tenant, error.subject)
                   : fmt::format("Queue '{}'", error.subject);
  fault.message = fmt::format("{} has reached its {} bound ({}{})", who,
                              unit.empty() ? "depth" : "size", error.bound, unit);
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  fault.members = {{"queue", quoted(error.subject)},
                   {"depth", number(error.depth)},
                   {"bound", number(error.bound)},
                   {"strategy", quoted(error.strategy)},
                   {"unit", quoted(error.unit)}};
  if (error.tenant) {
    fault.members.emplace_back("tenant", quoted(*error.tenant));
    // as ojs-multi-tenancy 8.2 names them
    fault.details = {{"tenant_id", quoted(*error.tenant)},
                     {"limit", quoted(unit.empty() ? "max_queue_depth" : "max_size_bytes")},
                     {"current", number(error.depth)},
                     {"maximum", number(error.bound)}};
    fault.members.insert(fault.members.end(), fault.details.begin(), fault.details.end());
  }
  const std::uint64_t seconds = std::max<std::uint64_t>(1, (error.retry_after_ms + 999) / 1000);
  fault.headers = {{"Retry-After", number(seconds)},
                   {"X-OJS-Queue-Depth", number(error.depth)},
                   {"X-OJS-Queue-Bound", number(error.bound)}};
}

constexpr std::string_view kDocs = "https://openjobspec.org/docs/errors";

std::string hint_of(const Fault& fault) {
  if (!fault.hint.empty()) return fault.hint;
  switch (fault.status) {
    case 400: return "Correct the request; the message names the member.";
    case 401: return "Send the header Authorization: Bearer TOKEN.";
    case 403: return "Use a token that has the scope.";
    case 404: return "Check the name.";
    case 405: return "See /ojs/v1/openapi.json for the methods of each path.";
    case 409: return "Read the present state and decide anew.";
    case 410: return "Enqueue with a longer result_ttl, or ask sooner.";
    case 413: return "Send less, or keep large data elsewhere and a reference in the job.";
    case 415: return "Send the body as it is, without the header.";
    case 422: return "Correct the value, or leave the feature out.";
    case 429: return "Wait as Retry-After says, then send it again.";
    default: return "Send it again later; the log of the gateway says more.";
  }
}

/// What to do about a thing that is not there.
std::string_view where_to_look(std::string_view resource) {
  struct Place {
    std::string_view resource, hint;
  };
  static constexpr Place kPlaces[] = {
      {"job", "Check the id; finished jobs are kept until their room is needed."},
      {"workflow", "Check the id; ended workflows are kept until their room is needed."},
      {"dead_letter_job", "Check the id; GET /ojs/v1/dead-letter lists dead letters."},
      {"queue", "Check the name; GET /ojs/v1/queues lists queues, each from its first job on."},
      {"pool", "Check the name; GET /ojs/v1/admin/pools lists pools."},
      {"rate_limit", "Check the key; GET /ojs/v1/rate-limits lists limits."},
      {"tenant", "Check the id; GET /ojs/v1/admin/tenants lists the tenants that have jobs."},
      {"worker", "Check the id; GET /ojs/v1/admin/workers lists workers."},
      {"cron", "Check the name; GET /ojs/v1/cron lists crons."},
      {"schema", "Check the name; GET /ojs/v1/schemas lists schemas."},
  };
  for (const Place& place : kPlaces)
    if (place.resource == resource) return place.hint;
  return {};
}

}  // namespace

Fault invalid_request(std::string message, std::string_view field) {
  Fault fault{.status = 400, .code = "invalid_request", .message = std::move(message)};
  if (!field.empty()) fault.details.emplace_back("field", quoted(field));
  return fault;
}

Fault no_duration(std::string_view field, TimeFault why, std::string_view expected) {
  const bool is_long = why == TimeFault::kTooLong;
  return invalid_request(is_long ? fmt::format("{} {}", field, text_of(why))
                                 : fmt::format("{} must be {}", field, expected),
                         field);
}

Fault not_found(std::string_view resource, std::string_view id) {
  const std::string_view shown = id.substr(0, 128);
  // What has an id is told of in the library's words, which another tenant's job must not differ
  // from.
  const bool is_dead = resource == "dead_letter_job";
  const bool has_id = resource == "job" || resource == "workflow" || is_dead;
  Fault fault{
      .status = 404,
      .code = "not_found",
      .message = has_id ? fmt::format("no {} with id {}", is_dead ? "dead letter" : resource, shown)
                        : fmt::format("there is no {} '{}'", resource, shown)};
  fault.details = {{"resource_type", quoted(resource)}, {"resource_id", quoted(id)}};
  fault.hint = where_to_look(resource);
  return fault;
}

Fault not_found(std::string_view resource, std::string_view id, const Error& why) {
  Fault fault = not_found(resource, id);
  fault.message = why.message;
  if (why.state == "gone") fault.details.emplace_back("gone", "true");
  return fault;
}

Fault unsupported(std::string message) {
  return {.status = 422, .code = "unsupported", .message = std::move(message)};
}

void refuse_tenant(const Request& request, std::string_view what) {
  if (!request.header("x-ojs-tenant").empty())
    throw unsupported(std::string(what) + " of all tenants; ask without X-OJS-Tenant");
}

Fault fault_of(const Error& error, std::string_view job) {
  if (error.code == Code::kNotFound && !job.empty()) return not_found("job", job, error);
  // a name that is too long is a wrong value: 413 is said of bodies
  if (error.code == Code::kTooLarge && (error.subject == "type" || error.subject == "queue"))
    return invalid_request(error.message, error.subject);
  const Row& row = row_of(error.code);
  Fault fault{.status = row.status,
              .code = std::string(row.code),
              .message = error.message,
              .retryable = row.retryable};
  switch (error.code) {
    case Code::kInvalid:
      if (error.subject == "json") fault.code = "invalid_payload";
      // A wrong retry policy is a wrong value in a well-formed request. Source: ojs-retry.
      if (error.subject.starts_with("retry.") || error.subject == "retry") {
        fault.status = 422;
        fault.type = "validation_error";
      }
      fault.details.emplace_back("field", quoted(error.subject));
      if ((error.subject == "priority" || error.subject.ends_with(".priority")) && error.bound != 0)
        fault.details.emplace_back("max_priority", std::to_string(error.bound));
      break;
    case Code::kDuplicate:
      if (!error.state.empty()) {
        fault.details = {{"existing_job_id", quoted(error.subject)},
                         {"existing_job_state", quoted(error.state)}};
        fault.hint = "Wait for the other job, or say with unique.on_conflict what becomes of both.";
      }
      break;
    case Code::kWrongState:
      if (error.subject == "queue" || error.subject == "cron") {
        if (!job.empty()) fault.details.emplace_back(error.subject, quoted(job));
      } else if (!job.empty()) {
        fault.details.emplace_back("job_id", quoted(job));
        if (error.subject == "immutable_priorities")
          fault.details.emplace_back("setting", quoted(error.subject));
        else
          fault.details.emplace_back("current_state", quoted(error.subject));
      }
      break;
    case Code::kTooLarge:
      if (!error.subject.empty()) fault.details.emplace_back("field", quoted(error.subject));
      if (error.bound != 0) fault.details.emplace_back("max_bytes", std::to_string(error.bound));
      if (error.depth != 0) fault.details.emplace_back("actual_bytes", std::to_string(error.depth));
      break;
    case Code::kLost:
      if (!job.empty()) fault.details.emplace_back("job_id", quoted(job));
      break;
    case Code::kQueueFull: tell_full_queue(error, fault); break;
    case Code::kSegmentFull:
      fault.headers.emplace_back("Retry-After", "1");
      fault.details = {{"pool", quoted(error.subject)},
                       {"used", std::to_string(error.depth)},
                       {"capacity", std::to_string(error.bound)}};
      break;
    default: break;
  }
  return fault;
}

Fault in_wrong_state(const Error& error, std::string_view job, std::string_view expected) {
  Fault fault = fault_of(error, job);
  if (error.code == Code::kWrongState && error.subject != "immutable_priorities")
    fault.details.emplace_back("expected_state", quoted(expected));
  return fault;
}

std::string error_text(const Fault& fault) {
  return object([&](json::ObjectWriter& error) {
    error.text("code", fault.code);
    error.text("type", fault.type.empty() ? fault.code : fault.type);
    error.text("message", fault.message);
    error.boolean("retryable", fault.retryable);
    for (const auto& [name, value] : fault.members) error.value(name, value);
    if (!fault.details.empty()) {
      json::ObjectWriter details(error.open("details"));
      for (const auto& [name, value] : fault.details) details.value(name, value);
      details.close();
    }
    error.text("hint", hint_of(fault));
    error.text("docs_url", fmt::format("{}#{}", kDocs, fault.code));
  });
}

Reply reply_of(const Fault& fault, const Request& request) {
  Reply reply{.status = fault.status, .headers = fault.headers};
  // Source: ojs-errors 10.
  const auto says_when = [](const auto& header) { return header.first == "Retry-After"; };
  if ((fault.status == 429 || fault.status == 503) &&
      std::ranges::none_of(fault.headers, says_when))
    reply.headers.emplace_back("Retry-After", "1");
  reply.body =
      "{\"error\":" + joined(error_text(fault), "{\"request_id\":" + quoted(request.id) + '}') +
      '}';
  return reply;
}

}  // namespace ojs_shm::gateway
