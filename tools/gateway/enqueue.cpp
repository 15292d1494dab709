// SPDX-License-Identifier: Apache-2.0
//
// POST /jobs and /jobs/batch: envelopes go into the segment.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <map>
#include <span>

#include "tools/gateway/args_check.hpp"
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
/// About what a reply adds to what was sent of a job.
constexpr std::size_t kAddedByReply = 512;

/// What the envelope must fulfil here, and its tenant.
void admit(Desk& desk, const Request& request, Envelope& envelope) {
  check_members(desk, shell::Document::kJob, envelope.unknown);
  check_priority(desk, envelope);
  give_tenant(request, envelope);
  check_args(desk.hall.schemas(), envelope);
}

/// Of a body that was checked.
Envelope read_one_of_many(Desk& desk, const Request& request, std::string_view text) {
  Envelope envelope = must(parse_checked_envelope(text, desk.now_ms()));
  if (envelope.wants_workflow)
    throw invalid_request("a job with a workflow is enqueued by itself, not in a batch",
                          "workflow");
  admit(desk, request, envelope);
  return envelope;
}

/// A duplicate by a unique key has the key beside what the error says of the other job.
template <class T>
T must_of(Result<T> result, std::span<const Envelope> envelopes) {
  if (result) return std::move(result).value();
  Fault fault = fault_of(result.error());
  if (fault.code != "duplicate") throw fault;
  for (const Envelope& envelope : envelopes) {
    if (!envelope.unique) continue;
    const std::string key = envelope.unique->key();
    if (result.error().message.find(key) == std::string::npos) continue;
    fault.details.emplace_back("uniqueness_key", quoted(key));
    fault.details.emplace_back("unique_key", quoted(key));
    break;
  }
  throw fault;
}

bool waits_for_its_first_run(const JobInfo& job) {
  return job.attempt == 0 && (job.state == State::kAvailable || job.state == State::kScheduled ||
                              job.state == State::kPending);
}

/// The job as it was accepted, when a worker was faster than this reply, which tells of the enqueue.
JobInfo accepted(Desk& desk, const Envelope& envelope, std::string_view id, Result<JobInfo> found) {
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
  if (waits_for_its_first_run(job)) return job;
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

/// Until when a request may wait.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds patience)
      : at_(std::chrono::steady_clock::now() + patience) {}
  std::chrono::milliseconds left() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        at_ - std::chrono::steady_clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }

 private:
  std::chrono::steady_clock::time_point at_;
};

/// A visit that waits for room, and gives its place up at the end.
class RoomSeeker {
 public:
  RoomSeeker(const std::vector<JobSpec>& specs, std::chrono::milliseconds patience, Visit& visit)
      : shift_(visit.shift()), waiting(shift_.begin_enqueue(specs, patience, visit)) {}
  ~RoomSeeker() { shift_.leave_room(); }
  RoomSeeker(const RoomSeeker&) = delete;

 private:
  Shift& shift_;

 public:
  WaitingEnqueue waiting;
};

/// What became of a job: it is stored, or one of its unique key was there already.
struct Placed {
  JobIdText id;
  bool there = false;
};

void append_text(std::string& out, Desk& desk, const Envelope& envelope, const Placed& placed) {
  const std::string_view id = placed.id.view();
  auto job = desk.observer.get(id);
  if (!placed.there) desk.hall.tape().jobs().note(id, envelope.type, envelope.extra);
  if (job && (placed.there || waits_for_its_first_run(*job))) {
    append_job_text(out, desk, *job);
  } else if (!placed.there) {
    append_job_text(out, desk, accepted(desk, envelope, id, std::move(job)));
  } else {
    json::ObjectWriter writer(out);
    writer.text("id", id);
    writer.text("type", envelope.type);
    writer.close();
  }
}

/// `from` enqueued them.
template <class Enqueuer>
std::vector<Placed> placed_of(const Enqueuer& from, const std::vector<JobSpec>& specs,
                              const std::vector<JobIdText>& ids) {
  std::vector<Placed> placed;
  placed.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    placed.push_back({ids[i], specs[i].unique != nullptr && from.deduplicated(i)});
  return placed;
}

/// Jobs of one queue, all or none, for which there is room now.
[[gnu::noinline]] std::vector<Placed> put_at_once(Desk& desk, const std::vector<JobSpec>& specs,
                                                  std::span<const Envelope> envelopes) {
  std::vector<JobIdText> ids;
  if (specs.size() == 1)
    ids.push_back(must_of(desk.producer().enqueue(specs.front()), envelopes));
  else
    ids = must_of(desk.producer().enqueue_batch(specs), envelopes);
  return placed_of(desk.producer(), specs, ids);
}

/// Jobs of one queue, all or none. Waits for room until the deadline; a client that goes gives its
/// place up.
asio::awaitable<std::vector<Placed>> put_in_one(Desk& desk, const std::vector<JobSpec>& specs,
                                                std::span<const Envelope> envelopes,
                                                Deadline deadline, Visit& visit) {
  const auto patience = deadline.left();
  if (patience.count() == 0) co_return put_at_once(desk, specs, envelopes);
  RoomSeeker seeker(specs, patience, visit);
  WaitingEnqueue& waiting = seeker.waiting;
  auto decided = waiting.poll();
  while (!decided && !visit.over()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        waiting.deadline() - std::chrono::steady_clock::now());
    const std::chrono::milliseconds longest(visit.shift().has_ring() ? 1000 : 50);
    co_await visit.sleep(std::clamp(left, std::chrono::milliseconds(1), longest));
    if (!visit.over()) decided = waiting.poll();
  }
  if (!decided)
    throw Fault{.status = 503,
                .code = "backend_error",
                .message = "the gateway is closing; nothing was stored",
                .retryable = true};
  co_return placed_of(waiting, specs, must_of(std::move(*decided), envelopes));
}

/// A job that is stored in several queues' batch as pending, which no worker sees.
struct Staged {
  JobIdText id;
  bool runs = false;  ///< it is to be made available
};

/// What was staged becomes available. One that another client has cancelled meanwhile stays so.
void release(Desk& desk, const std::vector<Staged>& staged) {
  std::optional<Error> failed;
  for (const Staged& job : staged) {
    if (!job.runs) continue;
    const Status done = desk.producer().activate(job.id.view());
    if (!done && done.code() != Code::kWrongState && done.code() != Code::kNotFound)
      failed = done.error();
  }
  if (failed) throw fault_of(*failed);
}

/// Jobs of several queues: each queue takes all of its jobs or none, as pending ones that no worker
/// sees. When all are in they are made available; when a queue refuses, the others' are cancelled.
/// A job that was there already is neither. A replaced job could not be brought back, so that is
/// refused.
asio::awaitable<std::vector<Placed>> put_across(Desk& desk, const std::vector<JobSpec>& specs,
                                                std::span<const Envelope> envelopes,
                                                Deadline deadline, Visit& visit) {
  std::map<std::string_view, std::vector<std::size_t>> queues;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].unique != nullptr && specs[i].unique->on_conflict() >= OnConflict::kReplace)
      throw unsupported(
          "a batch over several queues cannot replace unique jobs; send a batch for each queue");
    queues[specs[i].queue].push_back(i);
  }
  std::vector<Placed> placed(specs.size());
  std::vector<Staged> staged;
  std::exception_ptr refused;
  try {
    for (const auto& [queue, places] : queues) {
      std::vector<JobSpec> group;
      for (const std::size_t i : places) {
        group.push_back(specs[i]);
        group.back().pending |= specs[i].scheduled_at_ms <= desk.now_ms();
      }
      const auto got = co_await put_in_one(desk, group, envelopes, deadline, visit);
      for (std::size_t n = 0; n < places.size(); ++n) {
        placed[places[n]] = got[n];
        if (!got[n].there)
          staged.push_back({got[n].id, group[n].pending && !specs[places[n]].pending});
      }
    }
  } catch (...) {
    refused = std::current_exception();
  }
  if (refused) {
    for (const Staged& job : staged) (void)desk.producer().cancel(job.id.view());
    std::rethrow_exception(refused);
  }
  release(desk, staged);
  co_return placed;
}

asio::awaitable<std::vector<Placed>> put(Desk& desk, const std::vector<JobSpec>& specs,
                                         std::span<const Envelope> envelopes,
                                         std::chrono::milliseconds patience, Visit& visit) {
  const bool one_queue = std::ranges::all_of(
      specs, [&](const JobSpec& spec) { return spec.queue == specs.front().queue; });
  const Deadline deadline(patience);
  std::vector<Placed> placed;
  if (one_queue)
    placed = co_await put_in_one(desk, specs, envelopes, deadline, visit);
  else
    placed = co_await put_across(desk, specs, envelopes, deadline, visit);
  desk.hall.jobs_came();
  co_return placed;
}

/// A job with a member `workflow`: it and what comes after it.
Reply enqueue_workflow(Desk& desk, const Request& request) {
  auto workflow = workflow_of_job(request.body, desk.now_ms());
  if (!workflow) throw invalid_workflow(workflow.error());
  check_members(desk, shell::Document::kWorkflow, workflow->unknown);
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    give_tenant_to_all(tenant, *workflow);
  return create_workflow(desk, workflow->spec, true);
}

[[gnu::noinline]] Reply enqueued(Desk& desk, const Envelope& envelope, const Placed& one) {
  Reply reply{.status = one.there ? 200U : 201U};
  reply.body.reserve(envelope.args.size() + envelope.extra.size() + kAddedByReply);
  reply.body = "{\"job\":";
  append_text(reply.body, desk, envelope, one);
  reply.body += one.there ? ",\"deduplicated\":true}" : "}";
  reply.headers.emplace_back("Location", "/ojs/v1/jobs/" + one.id.str());
  tell_pressure(desk.producer(), reply);
  tell_limit(desk, envelope, reply);
  return reply;
}

asio::awaitable<Reply> enqueue(Desk& desk, const Request& request, Visit& visit) {
  Envelope envelope = must(parse_envelope(request.body, desk.now_ms()));
  if (envelope.wants_workflow) co_return enqueue_workflow(desk, request);
  admit(desk, request, envelope);
  const std::vector<JobSpec> specs = {envelope.spec()};
  const std::span envelopes(&envelope, 1);
  const auto patience = block_timeout(request);
  std::vector<Placed> placed;
  if (patience.count() == 0)
    placed = put_at_once(desk, specs, envelopes), desk.hall.jobs_came();
  else
    placed = co_await put(desk, specs, envelopes, patience, visit);
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
      envelopes.push_back(read_one_of_many(desk, request, job));
    } catch (Fault& fault) {
      fault.message = fmt::format("job {} of the batch: {}", envelopes.size(), fault.message);
      fault.details.emplace_back("index", std::to_string(envelopes.size()));
      throw;
    }
  }
  std::vector<JobSpec> specs;
  specs.reserve(envelopes.size());
  for (const Envelope& envelope : envelopes) specs.push_back(envelope.spec());
  const auto placed = co_await put(desk, specs, envelopes, block_timeout(request), visit);
  Reply reply{.status = 201};
  reply.body.reserve(request.body.size() + placed.size() * kAddedByReply);
  reply.body = "{\"jobs\":[";
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (i != 0) reply.body += ',';
    append_text(reply.body, desk, envelopes[i], placed[i]);
  }
  reply.body += fmt::format("],\"count\":{}}}", placed.size());
  tell_pressure(desk.producer(), reply);
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
