// SPDX-License-Identifier: Apache-2.0
//
// Events: what the segment still keeps as a list, and what happens as a stream.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/streams/channels.hpp"
#include "tools/gateway/streams/event_stream.hpp"
#include "tools/gateway/streams/job_streams.hpp"
#include "tools/shell/known_id.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

EventFilter wanted(const Request& request) {
  EventFilter filter;
  for (const char* name : {"types", "type"})
    if (filter.types.empty()) filter.types = texts_asked(request, name);
  for (const char* name : {"queues", "queue"})
    if (filter.queues.empty()) filter.queues = texts_asked(request, name);
  for (const char* name : {"jobs", "job_id"})
    if (filter.jobs.empty()) filter.jobs = texts_asked(request, name);
  std::ranges::transform(filter.jobs, filter.jobs.begin(), shell::known_id);
  filter.job_types = texts_asked(request, "job_types");
  filter.sources = texts_asked(request, "sources");
  filter.tenant = request.header("x-ojs-tenant");
  if (const std::string* tenant = request.asked("tenant"); tenant != nullptr && !tenant->empty()) {
    if (!filter.tenant.empty() && filter.tenant != *tenant)
      throw invalid_request("X-OJS-Tenant and tenant name different tenants", "tenant");
    filter.tenant = *tenant;
  }
  for (const std::string& channel : texts_asked(request, "channel")) {
    filter.state_changes = true;
    if (channel.starts_with("job:"))
      filter.jobs.push_back(shell::known_id(channel.substr(4)));
    else if (channel.starts_with("queue:"))
      filter.queues.push_back(channel.substr(6));
    else if (channel != "all")
      throw invalid_request("channel must be job:ID, queue:NAME or all", "channel");
  }
  return filter;
}

Reply list(Desk& desk, const Request& request) {
  const bool by_page = Page::is_asked(request);
  constexpr std::size_t kMost = 1000;
  const Page page = by_page ? Page::of(request, Page().per_page, kMost) : Page();
  const std::size_t limit = by_page ? page.per_page : number_asked(request, "limit", 100, 1, kMost);
  std::string after;
  for (const char* name : {"after", "cursor"})
    if (const std::string* given = request.asked(name)) after = *given;
  EventFilter filter = wanted(request);
  if (const std::string* since = request.asked("since"))
    filter.since_ms = time_of(desk.now_ms(), *since, "since");
  const Tape::History history =
      desk.hall.tape().history(desk.observer, filter, after, by_page ? page.begin() : 0, limit);
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
    pagination.number("total", static_cast<std::int64_t>(history.total));
    pagination.number("limit", static_cast<std::int64_t>(limit));
    if (by_page) pagination.number("page", static_cast<std::int64_t>(page.page));
    if (by_page) pagination.number("per_page", static_cast<std::int64_t>(page.per_page));
    pagination.boolean("has_more", history.more);
    if (history.more) pagination.text("next_cursor", last);
    pagination.close();
  }));
}

/// The job of a stream that has the channel of that job alone; empty: it is of more.
std::string job_of_channel(const Request& request) {
  const std::vector<std::string> channels = texts_asked(request, "channel");
  const bool one = channels.size() == 1 && channels.front().starts_with("job:");
  return one ? shell::known_id(channels.front().substr(4)) : std::string();
}

asio::awaitable<void> stream(Desk& desk, const Request& request, Visit& visit) {
  EventFilter filter = wanted(request);
  std::string job = job_of_channel(request);
  if (job.empty()) return follow(desk, request, visit, std::move(filter));
  JobStream of = events_of_job(std::move(job), filter);
  return follow(desk, request, visit, std::move(filter), std::move(of));
}

asio::awaitable<void> stream_of_job(Desk& desk, const Request& request, Visit& visit) {
  EventFilter filter = wanted(request);
  filter.jobs = {request.names[0]};
  filter.state_changes = true;
  JobStream of = events_of_job(request.names[0], filter);
  return follow(desk, request, visit, std::move(filter), std::move(of));
}

asio::awaitable<void> stream_of_progress(Desk& desk, const Request& request, Visit& visit) {
  EventFilter filter{
      .types = {"job.progress", "job.completed", "job.discarded", "job.expired", "job.cancelled"},
      .jobs = {request.names[0]},
      .tenant = std::string(request.header("x-ojs-tenant"))};
  return follow(desk, request, visit, std::move(filter), progress_of_job(request.names[0]));
}

asio::awaitable<void> stream_of_queue(Desk& desk, const Request& request, Visit& visit) {
  if (!desk.observer.queue(request.names[0])) throw not_found("queue", request.names[0]);
  EventFilter filter = wanted(request);
  filter.queues = {request.names[0]};
  filter.state_changes = true;
  return follow(desk, request, visit, std::move(filter));
}

/// `channel` would choose for all that the client subscribes to.
asio::awaitable<void> channels(Desk& desk, const Request& request, Visit& visit) {
  if (request.asked("channel") != nullptr)
    throw invalid_request("a WebSocket's channels are subscribed to by its messages", "channel");
  return talk_in_channels(desk, request, visit, wanted(request));
}

}  // namespace

std::span<const Route> event_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/events", Scope::kRead, &list, {"", "EventList"}, Pace::kSlow},
      {"GET", "/ojs/v1/events/stream", Scope::kRead, &stream},
      {"GET", "/ojs/v1/jobs/{id}/events", Scope::kRead, &stream_of_job},
      {"GET", "/ojs/v1/jobs/{id}/progress/stream", Scope::kRead, &stream_of_progress},
      {"GET", "/ojs/v1/queues/{name}/events", Scope::kRead, &stream_of_queue},
      {.method = "GET",
       .path = "/ojs/v1/ws",
       .scope = Scope::kRead,
       .handler = &channels,
       .upgrades = true},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
