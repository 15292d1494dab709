// SPDX-License-Identifier: Apache-2.0
//
// The segment's numbers over time, for the dashboard and its like, and what a token may do.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/shift.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kHeartbeat{15};
constexpr std::uint64_t kHourMs = 3'600'000;

Reply history(Desk& desk, const Request& request) {
  StatsLog::Span span;
  if (const std::string* asked = request.asked("period")) {
    const ParsedMs parsed = parse_duration(*asked);
    if (!parsed || parsed.ms < static_cast<std::int64_t>(StatsLog::kStepMs))
      throw no_duration("period", parsed.fault,
                        "a duration of at least 5s, such as 1m, 5m, 1h or 1d");
    span.period = *asked;
    span.period_ms = static_cast<std::uint64_t>(parsed.ms);
  }
  if (const std::string* queue = request.asked("queue")) span.queue = *queue;
  const std::uint64_t now = desk.now_ms();
  span.since_ms = now - std::min(now, kHourMs);
  span.until_ms = now;
  if (const std::string* since = request.asked("since"))
    span.since_ms = time_of(now, *since, "since");
  if (const std::string* until = request.asked("until"))
    span.until_ms = time_of(now, *until, "until");
  if (span.since_ms > span.until_ms) throw invalid_request("since is after until", "since");
  if (!span.queue.empty() && !desk.observer.queue(span.queue)) throw not_found("queue", span.queue);
  if (!span.queue.empty()) refuse_tenant(request, "the past of a queue is that");
  const std::optional<std::string> told = desk.hall.stats().history(span);
  if (!told)
    throw unsupported("the past of " + std::to_string(StatsLog::kMostQueues) +
                      " queues is kept, and of " + span.queue + " it is not");
  return ok(*told);
}

/// Its place among those that are woken, and the word to the log that it is there.
class Watcher {
 public:
  Watcher(Hall& hall, Visit& visit) : stats_(hall.stats()), list_(visit.shift().listeners()) {
    stats_.join();
    place_ = list_.insert(list_.end(), &visit);
    hall.watchers_came();
  }
  ~Watcher() {
    list_.erase(place_);
    stats_.leave();
  }
  Watcher(const Watcher&) = delete;

 private:
  StatsLog& stats_;
  std::list<Visit*>& list_;
  std::list<Visit*>::iterator place_;
};

asio::awaitable<void> stream(Desk& desk, const Request& request, Visit& visit) {
  refuse_tenant(request, "these numbers are those");
  std::uint64_t seen = desk.hall.stats().latest().number;
  const Watcher watcher(desk.hall, visit);
  co_await visit.begin_stream();
  auto said = std::chrono::steady_clock::now();
  while (!visit.over()) {
    const StatsLog::Look look = desk.hall.stats().latest();
    const auto now = std::chrono::steady_clock::now();
    if (look.number != seen) {
      co_await visit.send(
          fmt::format("id: {}\nevent: metrics\ndata: {}\n\n", look.number, *look.text));
      said = now;
      seen = look.number;
    } else if (now - said >= kHeartbeat) {
      co_await visit.send(":heartbeat\n\n");
      said = now;
    }
    if (desk.hall.stats().latest().number == seen)
      co_await visit.sleep(std::chrono::duration_cast<std::chrono::milliseconds>(
          kHeartbeat - (std::chrono::steady_clock::now() - said)));
  }
  if (visit.closing()) co_await visit.send("event: server.shutdown\ndata: {}\n\n");
}

Reply waits(Desk& desk, const Request& request) {
  refuse_tenant(request, "these waits are those");
  return ok("{\"items\":" + print_waits(desk.observer.waits()) + "}");
}

/// What the request's token grants, so that a page shows no button that is refused.
Reply access(Desk& desk, const Request& request) {
  const Tokens& tokens = desk.hall.tokens();
  const auto scopes = tokens.scopes_for(request.header("authorization"));
  if (scopes.empty()) {
    Fault fault{.status = 401, .code = "unauthorized"};
    fault.message = "this gateway asks for a bearer token that it knows";
    fault.headers.emplace_back("WWW-Authenticate", "Bearer");
    throw fault;
  }
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("tokens", !tokens.empty());
    writer.value("scopes", array_of(scopes, quoted));
    writer.text("segment", desk.hall.options().where.name);
    writer.text("version", library_version());
  }));
}

}  // namespace

std::span<const Route> stats_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/stats/history", Scope::kRead, &history, {"", "StatsHistory"}},
      {"GET", "/ojs/v1/admin/stats/stream", Scope::kRead, &stream},
      {"GET", "/ojs/v1/admin/waits", Scope::kRead, &waits, {"", "WaitList"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/access", Scope::kNone, &access, {"", "Access"}},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
