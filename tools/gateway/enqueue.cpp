// SPDX-License-Identifier: Apache-2.0
//
// POST /jobs and /jobs/batch: envelopes go into the segment.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "tools/gateway/body.hpp"
#include "tools/gateway/fault.hpp"
#include "tools/gateway/hall.hpp"
#include "tools/gateway/handlers.hpp"
#include "tools/gateway/intake.hpp"
#include "tools/gateway/job_reply.hpp"
#include "tools/gateway/json_text.hpp"
#include "tools/gateway/shift.hpp"
#include "tools/gateway/workflow_reply.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMostInBatch = 10'000;

Envelope read_envelope(Desk& desk, const Request& request, std::string_view text) {
  Envelope envelope = must(parse_envelope(text, desk.now_ms()));
  if (envelope.wants_workflow)
    throw invalid_request("a job with a workflow is enqueued by itself, not in a batch",
                          "workflow");
  check_priority(desk, envelope);
  give_tenant(request, envelope);
  return envelope;
}

/// A duplicate by a unique key has the key beside what the error says of the other job.
template <class T>
T must_of(Result<T> result, const Envelope* envelope) {
  if (result) return std::move(result).value();
  Fault fault = fault_of(result.error());
  if (fault.code == "duplicate" && envelope != nullptr && envelope->unique) {
    const std::string key = quoted(envelope->unique->key());
    fault.details.emplace_back("uniqueness_key", key);
    fault.details.emplace_back("unique_key", key);
  }
  throw fault;
}

/// The job as it was accepted, whatever has become of it since.
JobInfo accepted(Desk& desk, const Envelope& envelope, std::string_view id) {
  auto found = desk.observer.get(id);
  JobInfo job;
  if (found) {
    job = std::move(*found);
  } else {
    job.id = id;
    job.type = envelope.type;
    job.queue = envelope.queue;
    job.args = envelope.args;
    job.extra = envelope.extra;
    job.priority = envelope.priority.value_or(0);
    job.retry = envelope.retry;
    job.created_at_ms = job.enqueued_at_ms = desk.now_ms();
    job.scheduled_at_ms = envelope.scheduled_at_ms;
    job.expires_at_ms = envelope.expires_at_ms;
    job.timeout_ms = envelope.timeout_ms;
    job.lease_ms = envelope.lease_ms;
  }
  const bool waits = job.state == State::kAvailable || job.state == State::kScheduled ||
                     job.state == State::kPending;
  if (waits && job.attempt == 0) return job;
  // A worker was faster than this reply, which tells of the enqueue.
  job.state = State::kAvailable;
  job.attempt = 0;
  job.started_at_ms = job.completed_at_ms = job.cancelled_at_ms = job.discarded_at_ms = 0;
  job.next_attempt_at_ms = 0;
  job.retry_delay_ms = 0;
  job.previous_state.reset();
  job.discard_reason.clear();
  job.dead_letter = false;
  job.progress = -1;
  job.result.clear();
  job.result_expires_at_ms = 0;
  job.result_pruned = false;
  job.errors.clear();
  return job;
}

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
void tell_pressure(const Producer& producer, Reply& reply) {
  const auto pressure = producer.pressure();
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

/// Takes its place among those that wake for room, and leaves it at the end.
class RoomSeeker {
 public:
  RoomSeeker(Shift& shift, Visit& visit)
      : list_(shift.room_seekers()), place_(list_.insert(list_.end(), &visit)) {
    shift.watch_room();
  }
  ~RoomSeeker() { list_.erase(place_); }
  RoomSeeker(const RoomSeeker&) = delete;

 private:
  std::list<Visit*>& list_;
  std::list<Visit*>::iterator place_;
};

/// Jobs of several queues: each queue takes all of its jobs or none, as pending ones that no worker
/// sees. When all are in they are made available; when a queue refuses, the others' are cancelled.
std::vector<JobIdText> put_across(Desk& desk, const std::vector<JobSpec>& specs) {
  std::map<std::string_view, std::vector<std::size_t>> queues;
  for (std::size_t i = 0; i < specs.size(); ++i) queues[specs[i].queue].push_back(i);
  std::vector<JobIdText> ids(specs.size()), put;
  std::vector<std::size_t> staged;
  for (const auto& [queue, places] : queues) {
    std::vector<JobSpec> group;
    for (const std::size_t i : places) {
      group.push_back(specs[i]);
      if (specs[i].pending || specs[i].scheduled_at_ms > desk.now_ms()) continue;
      group.back().pending = true;
      staged.push_back(i);
    }
    const auto got = desk.producer().enqueue_batch(group);
    if (!got) {
      for (const JobIdText& id : put) (void)desk.producer().cancel(id.view());
      throw fault_of(got.error());
    }
    for (std::size_t n = 0; n < places.size(); ++n) ids[places[n]] = (*got)[n];
    put.insert(put.end(), got->begin(), got->end());
  }
  for (const std::size_t i : staged) must(desk.producer().activate(ids[i].view()));
  return ids;
}

bool one_queue(const std::vector<JobSpec>& specs) {
  return std::ranges::all_of(
      specs, [&](const JobSpec& spec) { return spec.queue == specs.front().queue; });
}

/// What became of a job: it is stored, or one of its unique key was there already.
struct Placed {
  std::string id;
  bool there = false;
};

std::string text_of(Desk& desk, const Envelope& envelope, const Placed& placed) {
  if (!placed.there) return job_text(desk, accepted(desk, envelope, placed.id));
  if (const auto job = desk.observer.get(placed.id)) return job_text(desk, *job);
  return "{\"id\":" + quoted(placed.id) + ",\"type\":" + quoted(envelope.type) + "}";
}

/// Enqueues all or none. Waits for room for as long as the client allows; a client that goes gives
/// its place up.
asio::awaitable<std::vector<Placed>> put(Desk& desk, const std::vector<JobSpec>& specs,
                                         std::chrono::milliseconds patience, Visit& visit,
                                         const Envelope* envelope = nullptr) {
  std::vector<JobIdText> ids;
  if (!one_queue(specs)) {
    ids = put_across(desk, specs);
  } else if (patience.count() == 0 && specs.size() == 1) {
    ids.push_back(must_of(desk.producer().enqueue(specs.front()), envelope));
  } else if (patience.count() == 0) {
    ids = must(desk.producer().enqueue_batch(specs));
  } else {
    WaitingEnqueue waiting = must(desk.producer().begin(specs, {.block_timeout = patience}));
    const RoomSeeker seeker(visit.shift(), visit);
    auto decided = waiting.poll();
    while (!decided && !visit.over()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          waiting.deadline() - std::chrono::steady_clock::now());
      co_await visit.sleep(
          std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(1000)));
      if (!visit.over()) decided = waiting.poll();
    }
    if (!decided)
      throw Fault{.status = 503,
                  .code = "backend_error",
                  .message = "the gateway is closing; nothing was stored",
                  .retryable = true};
    ids = must_of(std::move(*decided), envelope);
  }
  std::vector<Placed> placed;
  for (std::size_t i = 0; i < ids.size(); ++i)
    placed.push_back({ids[i].str(), specs[i].unique != nullptr && one_queue(specs) &&
                                        desk.producer().deduplicated(i)});
  desk.hall.jobs_came();
  co_return placed;
}

/// A job with a member `workflow`: it and what comes after it. Nothing: it has none.
std::optional<Reply> enqueue_workflow(Desk& desk, const Request& request) {
  if (request.body.find("\"workflow\"") == std::string::npos ||
      !must(parse_envelope(request.body, desk.now_ms())).wants_workflow)
    return std::nullopt;
  auto workflow = workflow_of_job(request.body, desk.now_ms());
  if (!workflow) throw invalid_workflow(workflow.error());
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    give_tenant_to_all(tenant, *workflow);
  return create_workflow(desk, workflow->spec, true);
}

[[gnu::noinline]] Reply enqueued(Desk& desk, const Envelope& envelope, const Placed& one) {
  Reply reply{.status = one.there ? 200U : 201U};
  reply.body =
      "{\"job\":" + text_of(desk, envelope, one) + (one.there ? ",\"deduplicated\":true}" : "}");
  reply.headers.emplace_back("Location", "/ojs/v1/jobs/" + one.id);
  tell_pressure(desk.producer(), reply);
  tell_limit(desk, envelope, reply);
  return reply;
}

asio::awaitable<Reply> enqueue(Desk& desk, const Request& request, Visit& visit) {
  if (auto reply = enqueue_workflow(desk, request)) co_return std::move(*reply);
  const Envelope envelope = read_envelope(desk, request, request.body);
  const std::vector<JobSpec> specs = {envelope.spec()};
  const auto placed = co_await put(desk, specs, block_timeout(request), visit, &envelope);
  co_return enqueued(desk, envelope, placed.front());
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
      envelopes.push_back(read_envelope(desk, request, job));
    } catch (Fault& fault) {
      fault.message = fmt::format("job {} of the batch: {}", envelopes.size(), fault.message);
      fault.details.emplace_back("index", std::to_string(envelopes.size()));
      throw;
    }
  }
  std::vector<JobSpec> specs;
  for (const Envelope& envelope : envelopes) specs.push_back(envelope.spec());
  const auto placed = co_await put(desk, specs, block_timeout(request), visit);
  Reply reply{.status = 201};
  reply.body = "{\"jobs\":[";
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (i != 0) reply.body += ',';
    reply.body += text_of(desk, envelopes[i], placed[i]);
  }
  reply.body += fmt::format("],\"count\":{}}}", placed.size());
  tell_pressure(desk.producer(), reply);
  co_return reply;
}

}  // namespace

std::span<const Route> enqueue_routes() {
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/jobs", Scope::kWrite, &enqueue},
      {"POST", "/ojs/v1/jobs/batch", Scope::kWrite, &enqueue_batch},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
