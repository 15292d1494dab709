// SPDX-License-Identifier: Apache-2.0
//
// How far a running job is, as its worker tells. Source: ojs-progress.
#include <algorithm>
#include <optional>

#include "tools/gateway/body.hpp"
#include "tools/gateway/fault.hpp"
#include "tools/gateway/handlers.hpp"
#include "tools/gateway/job_reply.hpp"
#include "tools/gateway/json_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::string progress_text(const JobInfo& job) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("job_id", job.id);
    writer.text("state", state_name(job.state));
    if (job.state == State::kCompleted)
      writer.number("progress", 1.0);
    else if (job.progress >= 0)
      writer.number("progress", std::min(job.progress, 1.0));
    else
      writer.value("progress", "null");
    if (!job.progress_message.empty())
      writer.text("message", job.progress_message);
    else
      writer.value("message", "null");
    writer.value("data", json::check(job.progress_data) ? job.progress_data : "null");
    if (job.progress_at_ms != 0)
      writer.text("updated_at", print_timestamp(job.progress_at_ms));
    else
      writer.value("updated_at", "null");
  });
}

/// Only a running job moves on; a report that comes late changes nothing.
Reply take_report(Desk& desk, const Request& request, const std::string& id,
                  std::optional<double> fraction, const Body& body) {
  const JobInfo job = job_of(desk, request, id);
  if (job.state != State::kActive) return ok(progress_text(job));
  const double reported = std::clamp(fraction.value_or(job.progress), 0.0, 1.0);
  if (reported < job.progress)
    return ok(progress_text(job));  // ignored as a whole: ojs-progress 5.1
  const std::string data = json::compact(body.raw("data").value_or(""));
  const Status moved =
      desk.proxy.progress(id, job.fence, reported, body.text("message").value_or(""), data);
  if (!moved && moved.code() != Code::kWrongState && moved.code() != Code::kLost)
    throw fault_of(moved.error(), id);
  return ok(progress_text(job_of(desk, request, id)));
}

Reply put_progress(Desk& desk, const Request& request) {
  const Body body(request);
  const auto fraction = body.number("progress");
  if (!fraction && !body.raw("data")) throw invalid_request("progress is missing", "progress");
  return take_report(desk, request, request.names[0], fraction, body);
}

Reply post_progress(Desk& desk, const Request& request) {
  const Body body(request);
  const std::string id = body.required_text("job_id");
  const auto percent = body.number("percentage");
  const auto fraction = body.number("progress");
  if (!percent && !fraction) throw invalid_request("percentage is missing", "percentage");
  return take_report(desk, request, id, percent ? *percent / 100 : *fraction, body);
}

Reply get_progress(Desk& desk, const Request& request) {
  return ok(progress_text(job_of(desk, request, request.names[0])));
}

}  // namespace

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
