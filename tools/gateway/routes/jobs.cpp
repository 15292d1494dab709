// SPDX-License-Identifier: Apache-2.0
//
// One job by its id: look, cancel, activate, change its priority, wait for its result.
#include <spdlog/fmt/fmt.h>

#include <boost/beast/core/string.hpp>

#include <optional>
#include <set>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/shift.hpp"
#include "worker_api/json/last_error.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

/// Of a job that has not ended it says when to ask again. Source: ojs-results 8.1.
Reply get(Desk& desk, const Request& request) {
  const JobInfo job = job_of(desk, request, request.names[0]);
  Reply reply = ok(wrapped_and_flat("job", job_text(desk, job)));
  if (!is_terminal(job.state)) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

Reply cancel(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  job_of(desk, request, id);
  const JobInfo job = must_from("scheduled, available, pending, retryable or active",
                                desk.producer().cancel(id), id);
  desk.hall.notes().forget(id);
  return job_reply(desk, job);
}

Reply activate(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  job_of(desk, request, id);
  must_from("pending", desk.producer().activate(id), id);
  desk.hall.jobs_came();
  const JobInfo job = job_of(desk, request, id);
  const std::string change = object([&](json::ObjectWriter& writer) {
    writer.text("previous_state", "pending");
    writer.text("activated_at", print_timestamp(job.enqueued_at_ms));
  });
  return ok(wrapped_and_flat("job", joined(job_text(desk, job), change)));
}

Reply change(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  const Body body(request);
  const JobInfo job = job_of(desk, request, id);
  const auto priority = body.integer("priority");
  if (!priority) throw invalid_request("priority is missing", "priority");
  const auto changed = desk.producer().reprioritize(id, *priority);
  if (!changed && changed.error().subject == "immutable_priorities") {
    Fault fault = fault_of(changed.error(), id);
    fault.details.emplace_back("current_state", quoted(state_name(job.state)));
    throw fault;
  }
  const std::int64_t previous = must_from("available or scheduled", changed, id);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("id", id);
    writer.number("priority", *priority);
    writer.number("previous_priority", previous);
  }));
}

/// 410: the job is gone, or its result alone. Source: ojs-results 10.5.
Fault result_pruned(const std::string& id, std::string message) {
  return {.status = 410,
          .code = "RESULT_PRUNED",
          .message = std::move(message),
          .type = "gone",
          .details = {{"job_id", quoted(id)}}};
}

/// The job, for its result. Throws a Fault where that is kept no longer.
JobInfo job_with_result(Desk& desk, const Request& request, const std::string& id) {
  JobInfo job;
  try {
    job = job_of(desk, request, id);
  } catch (const Fault&) {
    const auto found = desk.observer.get(id);
    if (found || found.error().state != "gone") throw;
    // Whose job it was is known of the latest jobs alone; of older jobs a tenant learns nothing.
    if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty()) {
      const auto known = desk.hall.tape().jobs().known(id);
      if (!known || known->tenant != tenant) throw not_found("job", id);
    }
    throw result_pruned(id, found.error().message);
  }
  if (!job.result_pruned) return job;
  Fault fault = result_pruned(id, "Result expired at " + print_timestamp(job.result_expires_at_ms));
  fault.details.emplace_back("state", quoted(state_name(job.state)));
  throw fault;
}

std::string result_text(const JobInfo& job) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("job_id", job.id);
    writer.text("state", state_name(job.state));
    writer.value("result", job.result.empty() || !json::check(job.result) ? "null" : job.result);
    if (const auto last = last_error_of(job)) {
      json::ObjectWriter error(writer.open("error"));
      error.text("code", last->code);
      error.text("type", error_type(*last));
      error.text("message", last->message);
      error.close();
    } else {
      writer.value("error", "null");
    }
    const auto time = [&](std::string_view name, std::uint64_t at) {
      if (at != 0) writer.text(name, print_timestamp(at));
    };
    time("completed_at", job.completed_at_ms);
    if (job.result.empty()) return;
    time("result_stored_at", job.completed_at_ms);
    time("result_expires_at", job.result_expires_at_ms);
    writer.number("result_size_bytes", static_cast<std::int64_t>(job.result.size()));
  });
}

constexpr std::chrono::milliseconds kLongestWait{60'000};
/// How often it looks where nothing tells it of the end.
constexpr std::chrono::milliseconds kLook{50};

/// ?wait=true&timeout=30: seconds, or a duration as a text. Nothing: not to wait.
std::optional<std::chrono::milliseconds> wanted_wait(const Request& request) {
  const std::string* wait = request.asked("wait");
  const auto says = [&](std::string_view word) { return boost::beast::iequals(*wait, word); };
  if (wait == nullptr || says("false") || says("0")) return {};
  if (!says("true") && !says("1") && !wait->empty())
    throw invalid_request("wait must be true or false", "wait");
  const std::string* timeout = request.asked("timeout");
  if (timeout == nullptr) return std::chrono::seconds(30);
  const bool bare = timeout->find_first_not_of("0123456789.") == std::string::npos;
  const ParsedMs parsed = parse_duration(bare ? *timeout + "s" : *timeout);
  if (!parsed) throw no_duration("timeout", parsed.fault, "seconds or a duration such as PT30S");
  return std::min(kLongestWait, std::chrono::milliseconds(parsed.ms));
}

/// 408: the job is not over. Source: ojs-results 8.2.
Fault not_yet(const JobInfo& job) {
  return {.status = 408,
          .code = "timeout",
          .message = fmt::format("job {} is {}; the time to wait for its result is over", job.id,
                                 state_name(job.state)),
          .retryable = true,
          .details = {{"job_id", quoted(job.id)}, {"state", quoted(state_name(job.state))}},
          .hint = "Ask again, with a longer timeout."};
}

/// A request among those that wait for the end of the job.
class EndSeeker {
 public:
  EndSeeker(Visit& visit, const std::string& job)
      : visit_(visit), job_(job), is_told_(visit.shift().await_end(job, visit)) {}
  ~EndSeeker() { visit_.shift().forget_end(job_, visit_); }
  EndSeeker(const EndSeeker&) = delete;
  bool is_told() const { return is_told_; }

 private:
  Visit& visit_;
  const std::string& job_;
  bool is_told_;
};

asio::awaitable<Reply> result(Desk& desk, const Request& request, Visit& visit) {
  const std::string& id = request.names[0];
  const auto wait = wanted_wait(request);
  const auto end = std::chrono::steady_clock::now() + wait.value_or(std::chrono::milliseconds(0));
  for (;;) {
    const JobInfo job = job_with_result(desk, request, id);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (is_terminal(job.state) || !wait) co_return ok(result_text(job));
    if (visit.over())
      throw fault_of(Error{Code::kClosed, "the gateway ends while the job is " +
                                              std::string(state_name(job.state)) + "; ask again"});
    if (left.count() <= 0) throw not_yet(job);
    const EndSeeker seeker(visit, job.id);
    co_await visit.sleep(seeker.is_told() ? left : std::min(left, kLook));
  }
}

/// "null" without one.
std::string detail_of(const Fault& fault, std::string_view wanted) {
  for (const auto& [name, value] : fault.details)
    if (name == wanted) return value;
  return "null";
}

/// What became of one of many. What has no result, not yet or no longer, has null.
std::string result_of_many(Desk& desk, const Request& request, const std::string& id) {
  try {
    return result_text(job_with_result(desk, request, id));
  } catch (const Fault& fault) {
    return object([&](json::ObjectWriter& writer) {
      writer.text("job_id", id);
      writer.value("state", detail_of(fault, "state"));
      writer.value("result", "null");
      json::ObjectWriter error(writer.open("error"));
      error.text("code", fault.code);
      error.text("message", fault.message);
      error.close();
    });
  }
}

/// {"ids": [...]}: by id. Source: ojs-results 10.4.
Reply results(Desk& desk, const Request& request) {
  const Body body(request);
  const auto ids = body.ids(body.raw("job_ids") ? "job_ids" : "ids");
  if (!ids || ids->empty()) throw invalid_request("job_ids must be an array of ids", "job_ids");
  if (ids->size() > 1000) throw invalid_request("job_ids takes at most 1000 ids", "job_ids");
  const std::set<std::string> known(ids->begin(), ids->end());
  return ok(object([&](json::ObjectWriter& writer) {
    json::ObjectWriter by_id(writer.open("results"));
    for (const std::string& id : known) by_id.value(id, result_of_many(desk, request, id));
    by_id.close();
  }));
}

}  // namespace

std::span<const Route> job_routes() {
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/jobs/results", Scope::kRead, &results, {"WantedResults", "JobResults"}},
      {"GET", "/ojs/v1/jobs/{id}", Scope::kRead, &get, {"", "ShownJob"}},
      {"DELETE", "/ojs/v1/jobs/{id}", Scope::kWrite, &cancel, {"", "ShownJob"}},
      {"PATCH", "/ojs/v1/jobs/{id}", Scope::kWrite, &change, {"JobChange", "ChangedJob"}},
      {"POST", "/ojs/v1/jobs/{id}/cancel", Scope::kWrite, &cancel, {"", "ShownJob"}},
      {"POST", "/ojs/v1/jobs/{id}/activate", Scope::kWrite, &activate, {"", "ShownJob"}},
      {"GET", "/ojs/v1/jobs/{id}/result", Scope::kRead, &result, {"", "JobResult"}},
      {"POST", "/ojs/v1/admin/jobs/{id}/cancel", Scope::kAdmin, &cancel, {"", "ShownJob"}},
      {"PATCH", "/ojs/v1/admin/jobs/{id}", Scope::kAdmin, &change, {"JobChange", "ChangedJob"}},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
