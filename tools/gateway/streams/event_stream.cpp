// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events: what happens, as it happens.
#include "tools/gateway/streams/event_stream.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/streams/listener.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHeartbeat{15};
/// Beyond this age an event is on the tape of every reader that joins.
constexpr std::chrono::milliseconds kSettled{100};
/// No event is further ahead of this clock.
constexpr std::chrono::milliseconds kAhead{1000};

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

/// Whether an event is so young that the tape may not have it yet. Its id begins with its
/// milliseconds, by the clock of the process that wrote it.
bool is_young(std::string_view id, std::uint64_t now_ms) {
  constexpr std::size_t kPrefix = 4, kDigits = 13;  // "evt_", and 12 digits around a hyphen
  if (!id.starts_with("evt_") || id.size() < kPrefix + kDigits) return false;
  std::string digits(id.substr(kPrefix, kDigits));
  std::erase(digits, '-');
  std::uint64_t ms = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ms, 16);
  const auto within = [](std::chrono::milliseconds time) {
    return static_cast<std::uint64_t>(time.count());
  };
  return now_ms < ms + within(kSettled) && ms <= now_ms + within(kAhead);
}

constexpr std::string_view kRetry = "retry: 3000\n\n";

/// The job of a stream, if it has ended. Throws a Fault when there is none.
std::optional<JobInfo> ended_job(Desk& desk, const Request& request, const std::string& id) {
  JobInfo job = job_of(desk, request, id);
  return is_terminal(job.state) ? std::optional(std::move(job)) : std::nullopt;
}

/// What is to be said of a job whose end the tape may have lost; nothing: it goes on.
std::optional<std::string> lost_end(Desk& desk, const JobStream& of) {
  const auto job = desk.observer.get(of.job);
  if (!job) return "";
  if (!is_terminal(job->state)) return std::nullopt;
  return of.tell_end(desk, *job);
}

std::chrono::milliseconds until(Clock::time_point end) {
  return std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
}

}  // namespace

std::string id_of_end(const std::string& job) { return "evt_" + job + "-state"; }

std::string piece_of(std::string_view id, std::string_view type, std::string_view data) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", id, type, data);
}

std::string piece_of(const Told& told) { return piece_of(told.id, told.type, told.json); }

asio::awaitable<void> follow(Desk& desk, const Request& request, Visit& visit, EventFilter filter,
                             std::optional<JobStream> of) {
  const std::string after = last_event_id(request);
  Listener listener(desk.hall, visit, after);
  // An end that comes after this look is on the tape, behind the listener's place.
  const auto ended = of ? ended_job(desk, request, of->job) : std::nullopt;
  co_await visit.begin_stream();
  co_await visit.send(kRetry);
  if (ended && (after.empty() || after == id_of_end(of->job))) {
    co_await visit.send(of->tell_end(desk, *ended));
    co_return;
  }
  // The list of events has it, and the tape gets it in a moment; other events may come before.
  while (listener.first_gap().there && is_young(after, desk.now_ms()) && !visit.over()) {
    co_await visit.sleep(kSettled);
    listener.begin_again(after);
  }
  if (listener.first_gap().there)
    co_await visit.send(gap_piece(desk, listener.first_gap().lost, after));
  auto said = Clock::now();
  // The end of a job that has ended comes by then, or is behind the client.
  auto end_by = ended ? said + kSettled : Clock::time_point::max();
  bool over = false;
  while (!visit.over()) {
    Tape::Gap gap;
    const auto events = listener.read(gap);
    bool lost = gap.there;
    std::string pieces;
    if (gap.there) pieces += gap_piece(desk, gap.lost);
    for (const auto& told : events) {
      if (told->lost != 0) {
        pieces += gap_piece(desk, told->lost);
        lost = true;
        continue;
      }
      if (filter.lets_pass(*told)) pieces += of ? of->tell(desk, *told) : piece_of(*told);
      // The job of a cron's event is the job that was in its way.
      if (of && told->job_id == of->job && !told->type.starts_with("cron.")) over = told->ends_job;
    }
    const auto now = Clock::now();
    // At a heartbeat as well, for events may have been switched off.
    if (of && !over && (lost || (events.empty() && (now >= end_by || now - said >= kHeartbeat)))) {
      end_by = Clock::time_point::max();
      if (const auto end = lost_end(desk, *of)) {
        pieces += *end;
        over = true;
      }
    }
    if (pieces.empty() && now - said >= kHeartbeat) pieces = ":heartbeat\n\n";
    if (!pieces.empty()) {
      co_await visit.send(pieces);
      said = now;
    }
    if (over && events.size() < Listener::kPiece)
      co_return;  // else the job may have been retried since
    // An event that came during a send woke no sleep: it is read first.
    if (events.empty() && pieces.empty())
      co_await visit.sleep(until(std::min(said + kHeartbeat, end_by)));
  }
  if (visit.closing()) co_await visit.send(system_piece(desk, "server.shutdown", "{}"));
}

}  // namespace ojs_shm::gateway
