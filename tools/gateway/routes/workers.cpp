// SPDX-License-Identifier: Apache-2.0
//
// The worker protocol: fetch, ack, nack, heartbeat. A job that is handed out belongs to this
// process until its client has the reply, and to its lease from then on.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/turns.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/shift.hpp"
#include "tools/shell/known_id.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

constexpr std::uint32_t kMostJobs = 1000, kLongestPollMs = 2000;
constexpr std::uint32_t kLongestLeaseMs = 7 * 24 * 3'600'000;
/// As the periods of limits.
constexpr std::uint64_t kLongestClosedMs = 49ULL * 24 * 3'600'000;

/// As the worker registered, where its fetch says nothing of it.
std::vector<std::uint32_t> weights_of(Desk& desk, const FetchRequest& wanted) {
  if (wanted.worker.empty() || wanted.queues.size() < 2) return {};
  const auto worker = desk.observer.registered_worker(wanted.worker);
  return worker ? turns_in(worker->labels, wanted.queues) : std::vector<std::uint32_t>();
}

/// Then its strategy holds, and what the request says of one is not looked at. Source:
/// ojs-fair-scheduling 5.2.
bool pool_decides(Desk& desk, const FetchRequest& wanted) {
  if (!wanted.pool.empty() || desk.observer.pool("default").ok()) return true;
  const auto worker = desk.observer.registered_worker(wanted.worker);
  return worker && !worker->pool.empty();
}

FetchRequest read_fetch(Desk& desk, const Request& request, const Body& body) {
  FetchRequest wanted;
  const auto queues = body.texts("queues");
  if (!queues || queues->empty())
    throw invalid_request("queues must be an array of at least one queue", "queues");
  wanted.queues = *queues;
  wanted.pool = body.text("pool").value_or("");
  // `batch_size`: as the Ruby worker has it
  wanted.count = body.whole(body.raw("count") ? "count" : "batch_size", 1, kMostJobs).value_or(1);
  const auto lease = body.milliseconds("visibility_timeout_ms");
  if (lease && (*lease == 0 || *lease > kLongestLeaseMs))
    throw invalid_request("visibility_timeout_ms must be from 1 to 604800000",
                          "visibility_timeout_ms");
  wanted.lease_ms = lease.value_or(0);
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    wanted.tenant = std::string(tenant);
  wanted.worker = worker_in(body).value_or("");
  if (!body.raw("strategy") && !body.raw("weights"))
    wanted.weights = weights_of(desk, wanted);
  else if (!pool_decides(desk, wanted))
    wanted.weights = read_weights(body, wanted.queues);
  wanted.held = true;
  return wanted;
}

/// The jobs as a reply. When it cannot be delivered they go back, and the attempt is not counted.
Reply hand_out(Desk& desk, const std::string& worker, std::vector<JobInfo> jobs) {
  for (const JobInfo& job : jobs)
    if (!worker.empty() && job.worker_id.empty())
      desk.hall.notes().note(job.id, {.fence = job.fence, .worker = worker});
  constexpr std::size_t kUsualJob = 768;
  Reply reply;
  reply.body.reserve((jobs.size() + 1) * kUsualJob);
  reply.body = "{\"jobs\":[";
  for (const JobInfo& job : jobs) {
    if (&job != &jobs.front()) reply.body += ',';
    append_job_text(reply.body, desk, job);
  }
  reply.body += "]}";
  if (jobs.empty()) return reply;
  reply.sent = [&desk, jobs = std::move(jobs)](bool delivered) {
    for (const JobInfo& job : jobs)  // a job that has ended meanwhile is not ours to give
      (void)(delivered ? desk.proxy.hand_over(job.id, job.fence)
                       : desk.proxy.requeue(job.id, job.fence));
    if (!delivered) desk.hall.jobs_came();
  };
  return reply;
}

/// Whose jobs it would get. Without a pool's name the pool of the worker is meant, else the pool
/// `default`, if there is one.
std::vector<Shift::Source> sources_of(Desk& desk, const FetchRequest& wanted) {
  if (!wanted.pool.empty()) return {{true, wanted.pool}};
  if (const auto worker = desk.observer.registered_worker(wanted.worker);
      worker && !worker->pool.empty() && desk.observer.pool(worker->pool))
    return {{true, worker->pool}};
  if (desk.observer.pool("default")) return {{true, "default"}};
  std::vector<Shift::Source> sources;
  for (const std::string& queue : wanted.queues) sources.push_back({false, queue});
  return sources;
}

Fault fetch_fault(const Error& error, const FetchRequest& wanted) {
  const bool no_pool = error.code == Code::kNotFound && error.subject == "pool";
  if (error.code == Code::kInUse) return worker_fault(error);
  return no_pool ? not_found("pool", wanted.pool) : fault_of(error);
}

asio::awaitable<Reply> fetch(Desk& desk, const Request& request, Visit& visit) {
  const Body body(request);
  const FetchRequest wanted = read_fetch(desk, request, body);
  const std::uint32_t patience = std::min(body.milliseconds("wait_ms").value_or(0), kLongestPollMs);
  if (desk.observer.maintenance().enabled) co_return ok("{\"jobs\":[]}");
  auto at_once = desk.proxy.fetch(wanted);
  if (!at_once) throw fetch_fault(at_once.error(), wanted);
  std::vector<JobInfo> jobs = std::move(*at_once);
  if (jobs.empty() && patience != 0) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience);
    std::optional<Error> failed;
    Shift& shift = visit.shift();
    const auto place = shift.stand_in_line({[&] {
                                              if (!jobs.empty() || failed || visit.over())
                                                return true;
                                              auto got = desk.proxy.fetch(wanted);
                                              if (got)
                                                jobs = std::move(*got);
                                              else
                                                failed = got.error();
                                              return !jobs.empty() || failed.has_value();
                                            },
                                            &visit, sources_of(desk, wanted)});
    while (jobs.empty() && !failed && !visit.over() && std::chrono::steady_clock::now() < end)
      co_await visit.sleep(
          std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()));
    shift.leave_line(place);
    if (failed) throw fetch_fault(*failed, wanted);
  }
  co_return hand_out(desk, wanted.worker, std::move(jobs));
}

/// The attempt that a worker speaks of: the present one, unless it names another holder than that
/// that has the job.
JobInfo held_job(Desk& desk, const Request& request, const Body& body, const std::string& id) {
  JobInfo job = job_of(desk, request, id);
  if (job.state != State::kActive) {
    Fault fault{.status = 409, .code = "conflict"};
    fault.message = fmt::format("job {} is {}, not active", id, state_name(job.state));
    fault.details = {{"job_id", quoted(id)},
                     {"current_state", quoted(state_name(job.state))},
                     {"expected_state", "\"active\""}};
    throw fault;
  }
  const auto worker = worker_in(body);
  const std::string holder = holder_of(desk, job);
  if (worker && !holder.empty() && holder != *worker) {
    Fault fault{.status = 409, .code = "conflict"};
    fault.message = fmt::format("job {} is held by worker {}, not by {}", id, holder, *worker);
    fault.details = {{"job_id", quoted(id)}, {"current_state", "\"active\""}};
    throw fault;
  }
  return job;
}

/// The job stays with its worker. Source: ojs-results 7.2.
Fault result_too_large(const Error& error) {
  Fault fault = fault_of(error);
  fault.code = "RESULT_TOO_LARGE";
  fault.hint = "Keep the data elsewhere and acknowledge with a reference; the job is still held.";
  return fault;
}

/// As it was sent: a null is a result, too (ojs-results 5.2).
std::string result_of(const Body& body) {
  for (const json::Member& member : body.members())
    if (member.name == "result") return json::compact(member.value);
  return {};
}

/// Acks the present attempt. The job is looked at before only for a worker that names itself, or a
/// tenant; and after an ack in vain, to say why.
Status ack_held(Desk& desk, const Request& request, const Body& body, const std::string& id) {
  const std::string result = result_of(body);
  const bool anyone = !body.raw("worker_id") && request.header("x-ojs-tenant").empty();
  if (anyone) {
    const Status acked = desk.proxy.ack(id, 0, result);
    if (acked || acked.code() == Code::kTooLarge) return acked;
  }
  return desk.proxy.ack(id, held_job(desk, request, body, id).fence, result);
}

/// In the path (ojs-results 10.1), or in the body.
std::string job_acked(const Request& request, const Body& body) {
  return request.names.empty() ? body.required_id("job_id") : request.names[0];
}

Reply ack(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string id = job_acked(request, body);
  const Status acked = ack_held(desk, request, body, id);
  if (acked.code() == Code::kTooLarge) throw result_too_large(acked.error());
  must(acked, id);
  const std::uint64_t now = desk.now_ms();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("acknowledged", true);
    writer.text("id", id);
    writer.text("job_id", id);
    writer.text("state", "completed");
    writer.text("completed_at", print_timestamp(now));
  }));
}

std::string nack_text(const JobInfo& job, const NackOutcome& outcome, std::uint64_t now) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("id", job.id);
    writer.text("job_id", job.id);
    writer.text("state", state_name(outcome.state));
    const bool uncounted = outcome.state == State::kAvailable;
    writer.number("attempt", std::int64_t{job.attempt} - (uncounted && job.attempt > 0 ? 1 : 0));
    writer.number("max_attempts", std::int64_t{job.retry.max_attempts});
    for (const std::string_view name : {"next_attempt_at", "next_retry_at"})
      if (outcome.next_attempt_at_ms != 0)
        writer.text(name, print_timestamp(outcome.next_attempt_at_ms));
    if (outcome.state == State::kRetryable)
      writer.number("retry_delay_ms", std::int64_t{outcome.retry_delay_ms});
    if (outcome.state == State::kDiscarded) {
      writer.text("discarded_at", print_timestamp(now));
      writer.text("completed_at", print_timestamp(now));
    }
  });
}

/// As many frames as are kept, in so many characters. Source: ojs-core 8.1.
constexpr std::size_t kMostFrames = 50, kMostOfFrames = 10'000;

/// The error's details as they are kept. A backtrace is a member of them. Source: ojs-core 8.1.
std::string details_of(const Body& error) {
  const auto given = error.raw("details");
  const auto backtrace = error.texts("backtrace");
  if (!backtrace) return json::compact(given.value_or(""));
  std::vector<std::string> frames;
  std::size_t length = 0;
  for (const std::string& frame : *backtrace) {
    length += frame.size();
    if (frames.size() == kMostFrames || length > kMostOfFrames) break;
    frames.push_back(frame);
  }
  std::string details = object([&](json::ObjectWriter& writer) {
    writer.value("backtrace", array_of(frames, quoted));
    if (given && json::kind_of(*given) != json::Kind::kObject) writer.value("details", *given);
  });
  if (given && json::kind_of(*given) == json::Kind::kObject)
    details = joined(json::compact(*given), details);
  return details;
}

Reply nack(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string id = job_acked(request, body);
  const JobInfo job = held_job(desk, request, body, id);
  if (body.flag("requeue").value_or(false)) {
    must(desk.proxy.requeue(id, job.fence), id);
    desk.hall.jobs_came();
    return ok(nack_text(job, {.state = State::kAvailable}, desk.now_ms()));
  }
  const auto error = body.object("error");
  if (!error) throw invalid_request("error is missing", "error");
  const auto message = error->text("message");  // may be empty: some exceptions say nothing
  if (!message) throw invalid_request("error.message is missing", "error.message");
  const auto details = error->raw("details");
  std::string type = error->text("type").value_or("");
  if (type.empty() && details && json::kind_of(*details) == json::Kind::kObject)
    type = Body(*details, "error.details.").text("error_class").value_or("");
  const std::string code =
      type.empty() ? error->required_text("code") : error->text("code").value_or("handler_error");
  const std::string kept = details_of(*error);
  const std::uint64_t closed_until =
      std::min(error->moment("rate_limit_until").value_or(0), desk.now_ms() + kLongestClosedMs);
  const NackOutcome outcome =
      must(desk.proxy.nack(id, job.fence,
                           {.code = code,
                            .message = *message,
                            .type = type,
                            .details = kept,
                            .retryable = error->flag("retryable").value_or(true),
                            .rate_limit_until_ms = closed_until}),
           id);
  return ok(nack_text(job, outcome, desk.now_ms()));
}

std::vector<std::string> jobs_of_heartbeat(const Body& body) {
  std::vector<std::string> ids;
  const auto add = [&](std::string_view name) {
    if (const auto more = body.ids(name)) ids.insert(ids.end(), more->begin(), more->end());
  };
  if (const auto active = body.raw("active_jobs");
      active && json::kind_of(*active) == json::Kind::kArray)
    add("active_jobs");
  add("active_job_ids");
  add("job_ids");
  if (const auto one = body.text("job_id")) ids.push_back(shell::known_id(*one));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

/// What a test's job asks the server to tell its worker.
std::string test_directive(const JobInfo& job) {
  if (job.extra.find("test_directive") == std::string::npos || !json::check(job.extra)) return {};
  const auto meta = Body(json::trim(job.extra), "").object("meta");
  return meta ? meta->text("test_directive").value_or("") : "";
}

/// What a worker says of itself: the states of ojs-worker-protocol 2.1, and those of a worker that
/// drains its jobs before it ends.
constexpr std::string_view kWorkerStates[] = {"running", "quiet",    "terminate",
                                              "drain",   "draining", "shutting_down"};

std::optional<std::string> state_of(const Body& body) {
  auto state = body.text("state");
  if (state && std::ranges::find(kWorkerStates, *state) == std::end(kWorkerStates))
    throw invalid_request(
        "state must be running, quiet, terminate, drain, draining or shutting_down", "state");
  return body.flag("shutdown").value_or(false) ? "shutting_down" : std::move(state);
}

WorkerReport report_of(Desk& desk, const Body& body, const std::string& worker) {
  WorkerReport report{.id = worker};
  report.state = state_of(body);
  report.pool = body.text("pool");
  if (report.pool && !report.pool->empty() && !desk.observer.pool(*report.pool))
    throw not_found("pool", *report.pool);
  report.hostname = body.text("hostname");
  report.version = body.text("version");
  report.queues = body.texts("queues");
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  report.pid = body.whole("pid", 0, kMost);
  report.concurrency = body.whole("concurrency", 0, kMost);
  if (body.raw("labels")) {
    const auto known = desk.observer.registered_worker(worker);
    report.labels = labels_with_turns(body, known ? known->labels : "");
  }
  if (const auto active = body.raw("active_jobs"))
    report.active_jobs = json::kind_of(*active) == json::Kind::kArray
                             ? static_cast<std::uint32_t>(json::elements_of(*active).size())
                             : body.whole("active_jobs", 0, kMost).value_or(0);
  return report;
}

/// What the worker is told. One for whom the segment has no place goes on without.
std::string_view directive_for(Desk& desk, const WorkerReport& report) {
  const auto known = desk.proxy.report(report);
  if (known) return directive_name(known->directive);
  if (known.code() == Code::kSegmentFull || known.code() == Code::kTimeout) return "running";
  throw worker_fault(known.error());
}

/// The state that a worker is to be in: at least as far on its way out as it says of itself. One
/// that drains its jobs takes no more. Source: ojs-worker-protocol 2.1.
std::string_view state_for(std::string_view told, const WorkerReport& report) {
  if (report.state == "terminate") return "terminate";
  const bool goes = report.state && *report.state != "running";
  return told == "running" && goes ? "quiet" : told;
}

Reply heartbeat(Desk& desk, const Request& request) {
  const Body body(request);
  // Some workers name their jobs and not themselves: they renew the leases, and no more.
  const bool names_jobs = body.raw("job_id") || body.raw("job_ids");
  const std::string worker = worker_in(body).value_or("");
  if (!names_jobs || body.raw("worker_id")) (void)body.required_text("worker_id");
  const std::uint32_t lease = body.milliseconds("visibility_timeout_ms").value_or(0);
  if (lease > kLongestLeaseMs)
    throw invalid_request("visibility_timeout_ms must be from 1 to 604800000",
                          "visibility_timeout_ms");
  // All of the report is read before a lease is renewed: what is refused changes nothing.
  WorkerReport report = report_of(desk, body, worker);
  // A worker that asks for a longer lease means to be silent for as long.
  report.silence_ms = lease;
  std::string directive;
  std::vector<std::string> extended, cancelled;
  const std::string_view tenant = request.header("x-ojs-tenant");
  for (const std::string& id : jobs_of_heartbeat(body)) {
    const auto job = desk.observer.get(id);
    if (!job || (!tenant.empty() && tenant_of(job->extra) != tenant)) continue;
    if (job->state == State::kCancelled) cancelled.push_back(id);
    if (job->state != State::kActive) continue;
    if (const std::string holder = holder_of(desk, *job);
        !worker.empty() && !holder.empty() && holder != worker)
      continue;
    if (desk.proxy.heartbeat(id, job->fence, lease)) extended.push_back(id);
    if (desk.hall.options().test_hooks && directive.empty()) directive = test_directive(*job);
  }
  const std::string_view told = worker.empty() ? "running" : directive_for(desk, report);
  if (directive.empty()) directive = state_for(told, report);
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("state", directive);
    writer.boolean("acknowledged", true);
    writer.value("jobs_extended", array_of(extended, quoted));
    writer.value("jobs_cancelled", array_of(cancelled, quoted));
    writer.text("server_time", print_timestamp(desk.now_ms()));
  }));
}

}  // namespace

std::span<const Route> worker_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/workers/fetch", Scope::kWrite, &fetch, {"Fetch", "FetchedJobs"}},
      {"POST", "/ojs/v1/workers/ack", Scope::kWrite, &ack, {"Ack", "Acked"}},
      {"POST", "/ojs/v1/workers/nack", Scope::kWrite, &nack, {"Nack", "Nacked"}},
      {"POST", "/ojs/v1/jobs/{id}/ack", Scope::kWrite, &ack, {"JobAck", "Acked"}},
      {"POST", "/ojs/v1/jobs/{id}/nack", Scope::kWrite, &nack, {"JobNack", "Nacked"}},
      {"POST", "/ojs/v1/workers/heartbeat", Scope::kWrite, &heartbeat, {"Heartbeat", "HeartbeatReply"}},
      {"POST", "/ojs/v1/workers/beat", Scope::kWrite, &heartbeat, {"Heartbeat", "HeartbeatReply"}},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
