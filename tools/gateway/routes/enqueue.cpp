// SPDX-License-Identifier: Apache-2.0
//
// POST /jobs and /jobs/batch: envelopes go into the segment.
#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <chrono>
#include <span>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/intake/placement.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/workflow_reply.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMostInBatch = 10'000;
/// About what a reply adds to what was sent of a job.
constexpr std::size_t kAddedByReply = 512;

/// X-RateLimit-*, on replies about jobs that have a limit. Source: ojs-rate-limiting 8.
void tell_limit(Desk& desk, const Envelope& envelope, Reply& reply) {
  if (!envelope.limit) return;
  const auto known = desk.observer.limit(envelope.limit->key);
  const RateLimit& limit = known ? known->limit : envelope.limit->limit;
  const std::uint64_t most = limit.rate != 0       ? limit.rate
                             : limit.throttle != 0 ? limit.throttle
                                                   : limit.concurrency.value_or(0);
  const std::uint64_t used = !known ? 0 : limit.rate != 0 ? known->begun : known->active;
  const std::uint64_t now = desk.now_ms();
  const std::uint64_t reset = known && known->next_at_ms > now ? known->next_at_ms : now;
  reply.headers.emplace_back("X-RateLimit-Limit", std::to_string(most));
  reply.headers.emplace_back("X-RateLimit-Remaining",
                             std::to_string(most > used ? most - used : 0));
  reply.headers.emplace_back("X-RateLimit-Reset", std::to_string((reset + 999) / 1000));
}

/// A queue above its threshold says so while it still takes jobs. Source: ojs-backpressure 7.3.
void tell_pressure(const std::optional<QueuePressure>& pressure, Reply& reply) {
  if (!pressure) return;
  reply.headers.emplace_back("X-OJS-Queue-Depth", std::to_string(pressure->depth));
  reply.headers.emplace_back("X-OJS-Queue-Bound", std::to_string(pressure->bound));
  reply.headers.emplace_back("X-OJS-Queue-Pressure", fmt::format("{:.4g}", pressure->pressure));
}

/// OJS-Block-Timeout: seconds for which the request may wait for room; 0 without it.
std::chrono::milliseconds block_timeout(const Request& request) {
  const std::string_view text = request.header("ojs-block-timeout");
  if (text.empty()) return {};
  double seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !(seconds >= 0) ||
      seconds > 3600)
    throw invalid_request("OJS-Block-Timeout must be a number of seconds from 0 to 3600",
                          "OJS-Block-Timeout");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

/// A job with a member `workflow`: it and what comes after it.
Reply enqueue_workflow(Desk& desk, const Request& request) {
  auto workflow = workflow_of_job(request.body, desk.now_ms());
  if (!workflow) throw invalid_workflow(workflow.error());
  check_members(desk, shell::Document::kWorkflow, workflow->unknown);
  settle_tenant(request.header("x-ojs-tenant"), *workflow);
  return create_workflow(desk, workflow->spec, true);
}

/// What clients that read the job without its wrapper look for.
void append_names(std::string& out, const Envelope& envelope, const Placed& one,
                  std::string_view state) {
  out += ",\"id\":";
  json::append_quoted(out, one.id.view());
  out += ",\"type\":";
  json::append_quoted(out, envelope.type);
  if (state.empty()) return;
  out += ",\"state\":";
  json::append_quoted(out, state);
}

[[gnu::noinline]] Reply enqueued(Desk& desk, const Envelope& envelope, const Accepted& accepted) {
  const Placed& one = accepted.jobs.front();
  Reply reply{.status = one.there ? 200U : 201U};
  reply.body.reserve(envelope.args.size() + envelope.extra.size() + kAddedByReply);
  reply.body = "{\"job\":";
  append_names(reply.body, envelope, one, append_placed(reply.body, desk, envelope, one));
  reply.body += one.there ? ",\"deduplicated\":true}" : "}";
  reply.headers.emplace_back("Location", "/ojs/v1/jobs/" + one.id.str());
  tell_pressure(accepted.pressure, reply);
  tell_limit(desk, envelope, reply);
  return reply;
}

asio::awaitable<Reply> enqueue(Desk& desk, const Request& request, Visit& visit) {
  Envelope envelope = must(parse_envelope(request.body, desk.now_ms()));
  const auto patience = block_timeout(request);
  if (envelope.wants_workflow) co_return enqueue_workflow(desk, request);
  admit(desk, request, envelope);
  const std::vector<JobSpec> specs = {envelope.spec()};
  const std::span envelopes(&envelope, 1);
  Accepted accepted;
  if (patience.count() == 0)
    accepted = put_at_once(desk, specs, envelopes), desk.hall.jobs_came();
  else
    accepted = co_await put(desk, specs, envelopes, patience, visit);
  co_return enqueued(desk, envelope, accepted);
}

asio::awaitable<Reply> enqueue_batch(Desk& desk, const Request& request, Visit& visit) {
  const Body body(request);
  const auto jobs = body.elements("jobs");
  if (!jobs || jobs->empty())
    throw invalid_request("jobs must be an array of at least one job", "jobs");
  if (jobs->size() > kMostInBatch)
    throw invalid_request(
        fmt::format("jobs has {} jobs; a batch takes at most {}", jobs->size(), kMostInBatch),
        "jobs");
  std::vector<Envelope> envelopes;
  envelopes.reserve(jobs->size());
  for (const std::string_view job : *jobs) {
    try {
      envelopes.push_back(read_one_of_many(desk, request, job));
    } catch (Fault& fault) {
      fault.message = fmt::format("job at index {}: {}", envelopes.size(), fault.message);
      fault.details.emplace_back("index", std::to_string(envelopes.size()));
      throw;
    }
  }
  std::vector<JobSpec> specs;
  specs.reserve(envelopes.size());
  for (const Envelope& envelope : envelopes) specs.push_back(envelope.spec());
  static constexpr std::size_t kFirst[] = {0};  // a batch of one job is one still
  const std::span<const std::size_t> places =
      specs.size() == 1 ? std::span(kFirst) : std::span<const std::size_t>();
  const auto accepted = co_await put(desk, specs, envelopes, block_timeout(request), visit, places);
  const std::vector<Placed>& placed = accepted.jobs;
  Reply reply{.status = 201};
  reply.body.reserve(request.body.size() + placed.size() * kAddedByReply);
  reply.body = "{\"jobs\":[";
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (i != 0) reply.body += ',';
    append_placed(reply.body, desk, envelopes[i], placed[i]);
  }
  reply.body += fmt::format("],\"count\":{}}}", placed.size());
  tell_pressure(accepted.pressure, reply);
  co_return reply;
}

}  // namespace

std::span<const Route> enqueue_routes() {
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/jobs", Scope::kWrite, &enqueue, {"NewJob", "Enqueued"}},
      {"POST", "/ojs/v1/jobs/batch", Scope::kWrite, &enqueue_batch, {"NewJobs", "EnqueuedJobs"}},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
