// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/placement.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <optional>

#include "tools/gateway/intake/args_check.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/shift.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

/// How the library begins what it says of one of several jobs: "job 2 of the batch: ".
constexpr std::string_view kOfBatch = " of the batch: ";

/// The places in the request of the jobs of one queue; empty: they are all its jobs, in order.
using Places = std::span<const std::size_t>;

/// The job whose id another job has, if that is the error.
const Envelope* taken_id(const Error& error, std::span<const Envelope> envelopes) {
  if (error.code != Code::kDuplicate || error.subject != "id") return nullptr;
  for (const Envelope& envelope : envelopes)
    if (!envelope.id.empty() && error.message.find(envelope.id) != std::string::npos)
      return &envelope;
  return nullptr;
}

/// Which job of a batch the error speaks of, where that is known. The library counts the jobs that
/// it was given from 1, a request's array from 0.
std::optional<std::size_t> place_of(const Error& error, std::span<const Envelope> envelopes,
                                    Places places) {
  if (places.size() == 1) return places.front();
  std::size_t number = 0;
  const std::string_view text = error.message;
  constexpr std::string_view kJob = "job ";
  if (text.starts_with(kJob) && text.find(kOfBatch) != std::string::npos &&
      std::from_chars(text.data() + kJob.size(), text.data() + text.size(), number).ec ==
          std::errc() &&
      number > 0 && number <= envelopes.size())
    return number <= places.size() ? places[number - 1] : number - 1;
  if (const Envelope* taken = taken_id(error, envelopes))
    return static_cast<std::size_t>(taken - envelopes.data());
  return std::nullopt;
}

/// Says which job of a batch was refused. Source: ojs-http-binding 9.2.
void name_place(Fault& fault, std::size_t at) {
  if (const std::size_t end = fault.message.find(kOfBatch); end != std::string::npos)
    fault.message.erase(0, end + kOfBatch.size());
  fault.message = fmt::format("job at index {}: {}", at, fault.message);
  fault.details.emplace_back("index", std::to_string(at));
}

/// A duplicate by a unique key has the key beside what the error says of the other job.
template <class T>
T must_of(Result<T> result, std::span<const Envelope> envelopes, Places places = {}) {
  if (result) return std::move(result).value();
  const Error& error = result.error();
  Fault fault = fault_of(error);
  const bool of_a_job = error.code == Code::kInvalid || error.code == Code::kTooLarge ||
                        error.code == Code::kDuplicate;
  const auto place = place_of(error, envelopes, places);
  const bool in_batch = envelopes.size() > 1 || !places.empty();
  if (of_a_job && in_batch && place) name_place(fault, *place);
  if (fault.code != "duplicate") throw fault;
  if (const Envelope* taken = taken_id(error, envelopes))
    fault.details.emplace_back("existing_job_id", quoted(taken->id));
  for (const Envelope& envelope : envelopes) {
    if (!envelope.unique) continue;
    const std::string key = envelope.unique->key();
    if (error.message.find(key) == std::string::npos) continue;
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

/// The job as it was accepted, when a worker was faster than this reply, which tells of the
/// enqueue.
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

/// A visit that waits for room, and gives its place up at the end.
class RoomSeeker {
 public:
  RoomSeeker(const std::vector<JobSpec>& specs, std::span<const Envelope> envelopes,
             std::chrono::milliseconds patience, Visit& visit, Places places)
      : shift_(visit.shift()),
        waiting(must_of(shift_.begin_enqueue(specs, patience, visit), envelopes, places)) {}
  ~RoomSeeker() { shift_.leave_room(); }
  RoomSeeker(const RoomSeeker&) = delete;

 private:
  Shift& shift_;

 public:
  WaitingEnqueue waiting;
};

/// `from` enqueued them.
template <class Enqueuer>
Accepted accepted_by(const Enqueuer& from, const std::vector<JobSpec>& specs,
                     const std::vector<JobIdText>& ids) {
  Accepted all{.jobs = {}, .pressure = from.pressure()};
  all.jobs.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    all.jobs.push_back({ids[i], specs[i].unique != nullptr && from.deduplicated(i)});
  return all;
}

}  // namespace

void admit(Desk& desk, const Request& request, Envelope& envelope) {
  check_members(desk, shell::Document::kJob, envelope.unknown);
  check_priority(desk, envelope);
  give_tenant(request, envelope);
  check_args(desk.hall.schemas(), envelope);
}

Envelope read_one_of_many(Desk& desk, const Request& request, std::string_view text) {
  Envelope envelope = must(parse_checked_envelope(text, desk.now_ms()));
  if (envelope.wants_workflow)
    throw invalid_request("a job with a workflow is enqueued by itself, not in a batch",
                          "workflow");
  admit(desk, request, envelope);
  return envelope;
}

std::string_view append_placed(std::string& out, Desk& desk, const Envelope& envelope,
                               const Placed& placed) {
  const std::string_view id = placed.id.view();
  auto job = desk.observer.get(id);
  if (!placed.there) desk.hall.tape().jobs().note(id, envelope.type, envelope.extra);
  if (!placed.there && !(job && waits_for_its_first_run(*job)))
    job = accepted(desk, envelope, id, std::move(job));
  if (job) {
    append_job_text(out, desk, *job);
    return state_name(job->state);
  }
  json::ObjectWriter writer(out);
  writer.text("id", id);
  writer.text("type", envelope.type);
  writer.close();
  return {};
}

[[gnu::noinline]] Accepted put_at_once(Desk& desk, const std::vector<JobSpec>& specs,
                                       std::span<const Envelope> envelopes,
                                       std::span<const std::size_t> places) {
  std::vector<JobIdText> ids;
  if (specs.size() == 1)
    ids.push_back(must_of(desk.producer().enqueue(specs.front()), envelopes, places));
  else
    ids = must_of(desk.producer().enqueue_batch(specs), envelopes, places);
  return accepted_by(desk.producer(), specs, ids);
}

/// Waits for room until then; a client that goes gives its place up.
asio::awaitable<Accepted> put(Desk& desk, const std::vector<JobSpec>& specs,
                              std::span<const Envelope> envelopes,
                              std::chrono::milliseconds patience, Visit& visit,
                              std::span<const std::size_t> places) {
  if (patience.count() == 0) {
    auto placed = put_at_once(desk, specs, envelopes, places);
    desk.hall.jobs_came();
    co_return placed;
  }
  RoomSeeker seeker(specs, envelopes, patience, visit, places);
  WaitingEnqueue& waiting = seeker.waiting;
  auto decided = waiting.poll();
  while (!decided && !visit.over()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        waiting.deadline() - std::chrono::steady_clock::now());
    const std::chrono::milliseconds longest(visit.shift().has_ring() ? 1000 : 50);
    co_await visit.sleep(std::clamp(left, std::chrono::milliseconds(1), longest));
    if (!visit.over()) decided = waiting.poll();
  }
  if (!decided && visit.closing()) decided = waiting.poll();  // it may have been served just now
  if (!decided)
    throw Fault{.status = 503,
                .code = "backend_error",
                .message = "the gateway is closing; nothing was stored",
                .retryable = true};
  auto placed = accepted_by(waiting, specs, must_of(std::move(*decided), envelopes, places));
  desk.hall.jobs_came();
  co_return placed;
}

}  // namespace ojs_shm::gateway
