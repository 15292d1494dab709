// SPDX-License-Identifier: Apache-2.0
//
// Events: what the segment still keeps as a list, and what happens as a stream.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "tools/gateway/fault.hpp"
#include "tools/gateway/hall.hpp"
#include "tools/gateway/handlers.hpp"
#include "tools/gateway/job_reply.hpp"
#include "tools/gateway/json_text.hpp"
#include "tools/gateway/paging.hpp"
#include "tools/gateway/shift.hpp"
#include "tools/gateway/state_changes.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kHeartbeat{15};
constexpr std::size_t kPiece = 256;
/// Beyond this age an event is on the tape of anyone who joins.
constexpr std::chrono::milliseconds kSettled{100};

EventFilter wanted(const Request& request) {
  EventFilter filter;
  for (const char* name : {"types", "type"})
    if (filter.types.empty()) filter.types = texts_asked(request, name);
  for (const char* name : {"queues", "queue"})
    if (filter.queues.empty()) filter.queues = texts_asked(request, name);
  for (const char* name : {"jobs", "job_id"})
    if (filter.jobs.empty()) filter.jobs = texts_asked(request, name);
  filter.job_types = texts_asked(request, "job_types");
  filter.tenant = request.header("x-ojs-tenant");
  if (const std::string* tenant = request.asked("tenant"); tenant != nullptr && !tenant->empty()) {
    if (!filter.tenant.empty() && filter.tenant != *tenant)
      throw invalid_request("X-OJS-Tenant and tenant name different tenants", "tenant");
    filter.tenant = *tenant;
  }
  for (const std::string& channel : texts_asked(request, "channel")) {
    filter.state_changes = true;
    if (channel.starts_with("job:"))
      filter.jobs.push_back(channel.substr(4));
    else if (channel.starts_with("queue:"))
      filter.queues.push_back(channel.substr(6));
    else if (channel != "all")
      throw invalid_request("channel must be job:ID, queue:NAME or all", "channel");
  }
  return filter;
}

Reply list(Desk& desk, const Request& request) {
  const std::size_t limit = number_asked(request, "limit", 100, 1, 1000);
  std::string after;
  for (const char* name : {"after", "cursor"})
    if (const std::string* given = request.asked(name)) after = *given;
  const Tape::History history =
      desk.hall.tape().history(desk.observer, wanted(request), after, limit);
  if (history.gone) {
    Fault fault{.status = 410, .code = "gone"};
    fault.message = fmt::format("event '{}' is not kept any more", after.substr(0, 64));
    fault.hint = "Begin without a cursor; events that were overwritten are lost.";
    throw fault;
  }
  const std::string events = array_of(history.events, [](const Told& told) { return told.json; });
  const std::string last = history.events.empty() ? after : history.events.back().id;
  return ok(object([&](json::ObjectWriter& writer) {
    writer.value("events", events);
    writer.text("cursor", last);
    writer.boolean("has_more", history.more);
    writer.value("items", events);
    json::ObjectWriter pagination(writer.open("pagination"));
    pagination.number("total", static_cast<std::int64_t>(history.events.size()));
    pagination.number("limit", static_cast<std::int64_t>(limit));
    pagination.boolean("has_more", history.more);
    pagination.text("next_cursor", last);
    pagination.close();
  }));
}

/// A listener of the tape; gives its place up at the end.
class Listener {
 public:
  Listener(Hall& hall, Visit& visit, std::string_view after)
      : tape_(hall.tape()), list_(visit.shift().listeners()) {
    at_ = tape_.join(after, gap_);
    place_ = list_.insert(list_.end(), &visit);
    hall.listeners_came();
  }
  ~Listener() {
    list_.erase(place_);
    tape_.leave();
  }
  Listener(const Listener&) = delete;
  const Tape::Gap& first_gap() const { return gap_; }
  void begin_again(std::string_view after) {
    at_ = tape_.join(after, gap_);
    tape_.leave();
  }
  auto read(Tape::Gap& gap) { return tape_.read(at_, kPiece, gap); }

 private:
  Tape& tape_;
  Tape::Place at_;
  std::list<Visit*>& list_;
  std::list<Visit*>::iterator place_;
  Tape::Gap gap_;
};

std::string piece_of(const Told& told) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", told.id, told.type, told.json);
}

std::string system_piece(Desk& desk, std::string_view type, const std::string& data) {
  const std::string json = object([&](json::ObjectWriter& writer) {
    writer.text("specversion", "1.0");
    writer.text("type", type);
    writer.text("source", "ojs://" + desk.hall.options().where.name);
    writer.text("time", print_timestamp(desk.now_ms()));
    writer.value("data", data);
  });
  return fmt::format("event: {}\ndata: {}\n\n", type, json);
}

std::string gap_piece(Desk& desk, std::optional<std::uint64_t> lost,
                      const std::string& after = {}) {
  return system_piece(desk, "system.gap", object([&](json::ObjectWriter& data) {
                        if (!after.empty()) data.text("after", after);
                        data.value("lost", lost ? std::to_string(*lost) : "null");
                      }));
}

/// Behind which event the client wants to go on; empty: it wants what happens from now on.
std::string last_event_id(const Request& request) {
  const std::string_view id = request.header("last-event-id");
  const std::string* after = request.asked("after");
  return std::string(id.empty() && after != nullptr ? std::string_view(*after) : id);
}

/// Whether an event is so young that the tape may not have it yet. Its id begins with its milliseconds.
bool is_young(std::string_view id, std::uint64_t now_ms) {
  constexpr std::size_t kPrefix = 4, kDigits = 13;  // "evt_", and 12 digits around a hyphen
  if (!id.starts_with("evt_") || id.size() < kPrefix + kDigits) return false;
  std::string digits(id.substr(kPrefix, kDigits));
  std::erase(digits, '-');
  std::uint64_t ms = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ms, 16);
  return now_ms < ms + static_cast<std::uint64_t>(kSettled.count());
}

constexpr std::string_view kRetry = "retry: 3000\n\n";

asio::awaitable<void> follow(Desk& desk, const Request& request, Visit& visit, EventFilter filter) {
  const std::string after = last_event_id(request);
  Listener listener(desk.hall, visit, after);
  co_await visit.begin_stream();
  co_await visit.send(kRetry);
  // The list of events has it, and the tape gets it in a moment; other events may come before.
  while (listener.first_gap().there && is_young(after, desk.now_ms()) && !visit.over()) {
    co_await visit.sleep(kSettled);
    listener.begin_again(after);
  }
  if (listener.first_gap().there)
    co_await visit.send(gap_piece(desk, listener.first_gap().lost, after));
  auto said = std::chrono::steady_clock::now();
  while (!visit.over()) {
    Tape::Gap gap;
    const auto events = listener.read(gap);
    std::string pieces;
    if (gap.there) pieces += gap_piece(desk, gap.lost);
    for (const auto& told : events) {
      if (told->lost != 0)
        pieces += gap_piece(desk, told->lost);
      else if (filter.lets_pass(*told))
        pieces += piece_of(*told);
    }
    const auto now = std::chrono::steady_clock::now();
    if (pieces.empty() && now - said >= kHeartbeat) pieces = ":heartbeat\n\n";
    if (!pieces.empty()) {
      co_await visit.send(pieces);
      said = now;
    }
    if (events.empty())
      co_await visit.sleep(std::chrono::duration_cast<std::chrono::milliseconds>(
          kHeartbeat - (std::chrono::steady_clock::now() - said)));
  }
  if (visit.closing()) co_await visit.send(system_piece(desk, "server.shutdown", "{}"));
}

asio::awaitable<void> stream(Desk& desk, const Request& request, Visit& visit) {
  return follow(desk, request, visit, wanted(request));
}

/// One event that says how the job ended. Source: ojs-realtime 2.1.
asio::awaitable<void> tell_end(Visit& visit, JobInfo job) {
  co_await visit.begin_stream();
  const std::uint64_t at =
      std::max({job.completed_at_ms, job.discarded_at_ms, job.cancelled_at_ms});
  const KnownJob known{.type = job.type, .tenant = {}};
  co_await visit.send(
      fmt::format("{}id: evt_{}-state\nevent: job.state_changed\ndata: {}\n\n", kRetry, job.id,
                  print_state_change(last_change(job), job.id, job.queue, known, at)));
}

asio::awaitable<void> stream_of_job(Desk& desk, const Request& request, Visit& visit) {
  JobInfo job = job_of(desk, request, request.names[0]);
  EventFilter filter = wanted(request);
  filter.jobs = {request.names[0]};
  filter.state_changes = true;
  if (is_terminal(job.state) && filter.types.empty() && last_event_id(request).empty())
    return tell_end(visit, std::move(job));
  return follow(desk, request, visit, std::move(filter));
}

asio::awaitable<void> stream_of_progress(Desk& desk, const Request& request, Visit& visit) {
  job_of(desk, request, request.names[0]);
  EventFilter filter{.types = {"job.progress", "job.completed", "job.discarded", "job.cancelled"},
                     .jobs = {request.names[0]},
                     .tenant = std::string(request.header("x-ojs-tenant"))};
  return follow(desk, request, visit, std::move(filter));
}

asio::awaitable<void> stream_of_queue(Desk& desk, const Request& request, Visit& visit) {
  if (!desk.observer.queue(request.names[0])) throw not_found("queue", request.names[0]);
  EventFilter filter = wanted(request);
  filter.queues = {request.names[0]};
  filter.state_changes = true;
  return follow(desk, request, visit, std::move(filter));
}

}  // namespace

std::span<const Route> event_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/events", Scope::kRead, &list, {"", "EventList"}, Pace::kSlow},
      {"GET", "/ojs/v1/events/stream", Scope::kRead, &stream},
      {"GET", "/ojs/v1/jobs/{id}/events", Scope::kRead, &stream_of_job},
      {"GET", "/ojs/v1/jobs/{id}/progress/stream", Scope::kRead, &stream_of_progress},
      {"GET", "/ojs/v1/queues/{name}/events", Scope::kRead, &stream_of_queue},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
