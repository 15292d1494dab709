// SPDX-License-Identifier: Apache-2.0
//
// How far a running job is, as its worker tells. Source: ojs-progress.
#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/replies/progress_reply.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::string progress_text(const JobInfo& job) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("job_id", job.id);
    writer.text("state", state_name(job.state));
    if (const double progress = progress_of(job); progress >= 0)
      writer.number("progress", progress);
    else
      writer.value("progress", "null");
    if (!job.progress_message.empty())
      writer.text("message", job.progress_message);
    else
      writer.value("message", "null");
    writer.value("data", json::check(job.progress_data) ? job.progress_data : "null");
    if (json::check(job.last_checkpoint)) writer.value("checkpoint", job.last_checkpoint);
    if (job.progress_at_ms != 0)
      writer.text("updated_at", print_timestamp(job.progress_at_ms));
    else
      writer.value("updated_at", "null");
  });
}

/// As a header has it. Source: RFC 9110, 5.6.7.
std::string print_http_date(std::uint64_t unix_ms) {
  constexpr std::uint64_t kSecond = 1000;
  const auto seconds = static_cast<std::time_t>(unix_ms / kSecond);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", parts);
}

/// Source: ojs-progress 7.1.
Reply progress_reply(const JobInfo& job) {
  return with_progress(progress_text(job), progress_of(job), job.progress_at_ms);
}

/// Only a running job moves on; a report that comes late changes nothing.
Reply take_report(Desk& desk, const Request& request, const std::string& id,
                  std::optional<double> fraction, const Body& body) {
  // A value that is not an object is refused, also for a job that takes no report.
  for (const std::string_view name : {"data", "checkpoint"}) (void)body.object(name);
  const JobInfo job = job_of(desk, request, id);
  if (job.state != State::kActive) return progress_reply(job);
  if (fraction) fraction = std::clamp(*fraction, 0.0, 1.0);
  const auto message = body.text("message");
  const std::string data = json::compact(body.raw("data").value_or(""));
  const auto checkpoint = body.raw("checkpoint");
  Status moved;
  if (checkpoint)  // first: a reader of the progress finds it
    moved = desk.proxy.checkpoint(id, job.fence, json::compact(*checkpoint));
  if (moved && (fraction || message || !data.empty()))
    moved = desk.proxy.progress(id, job.fence, fraction, message.value_or(""), data);
  if (!moved && moved.code() != Code::kWrongState && moved.code() != Code::kLost)
    throw fault_of(moved.error(), id);
  return progress_reply(job_of(desk, request, id));
}

/// A report says at least one of these. Source: ojs-progress 5.2, 6.4.
void must_say_something(const Body& body, std::string_view expected) {
  for (const std::string_view name : {"progress", "percentage", "data", "message", "checkpoint"})
    if (body.raw(name)) return;
  throw invalid_request(fmt::format("the report says nothing: {} is missing", expected), expected);
}

/// A part of one, or of a hundred.
std::optional<double> fraction_of(const Body& body) {
  if (const auto percent = body.number("percentage")) return *percent / 100;
  return body.number("progress");
}

Reply put_progress(Desk& desk, const Request& request) {
  const Body body(request);
  must_say_something(body, "progress");
  return take_report(desk, request, request.names[0], fraction_of(body), body);
}

Reply post_progress(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string id = body.required_id("job_id");
  must_say_something(body, "percentage");
  return take_report(desk, request, id, fraction_of(body), body);
}

Reply get_progress(Desk& desk, const Request& request) {
  return progress_reply(job_of(desk, request, request.names[0]));
}

}  // namespace

double progress_of(const JobInfo& job) {
  return job.state == State::kCompleted ? 1.0 : std::min(job.progress, 1.0);
}

Reply with_progress(std::string body, double progress, std::uint64_t reported_at_ms) {
  Reply reply = ok(std::move(body));
  reply.headers.emplace_back("Cache-Control", "no-cache");
  if (progress >= 0) reply.headers.emplace_back("X-OJS-Progress", fmt::format("{}", progress));
  if (reported_at_ms != 0)
    reply.headers.emplace_back("Last-Modified", print_http_date(reported_at_ms));
  return reply;
}

std::span<const Route> progress_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/workers/progress", Scope::kWrite, &post_progress, {"WorkerProgress", "Progress"}},
      {"PUT", "/ojs/v1/jobs/{id}/progress", Scope::kWrite, &put_progress, {"ProgressReport", "Progress"}},
      {"GET", "/ojs/v1/jobs/{id}/progress", Scope::kRead, &get_progress, {"", "Progress"}},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
