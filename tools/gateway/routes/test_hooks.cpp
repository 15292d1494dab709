// SPDX-License-Identifier: Apache-2.0
//
// For tests of clients, with --test-hooks alone: an empty segment and a clock that is moved on.
#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/test_clock.hpp"

namespace ojs_shm::gateway {
namespace {

/// Removes crons, ends every job, drops dead letters, resumes queues, forgets workers. Ended jobs
/// stay readable, and counters go on.
Reply reset(Desk& desk, const Request&) {
  for (const CronInfo& cron : desk.observer.crons()) (void)desk.admin.remove_cron(cron.name);
  std::int64_t cancelled = 0;
  for (const BriefJob& job : desk.observer.brief_list({}))
    if (!is_terminal(job.state) && desk.producer().cancel(job.id)) ++cancelled;
  const BulkReport dropped = must(desk.admin.bulk(BulkAction::kDropDead, {.dead_letter = true}));
  for (const QueueInfo& queue : desk.observer.queues())
    if (queue.paused) must(desk.admin.set_queue(queue.name, {.paused = false}));
  for (const RegisteredWorker& worker : desk.observer.registered_workers())
    (void)desk.admin.remove_worker(worker.id);
  desk.hall.notes().clear();
  must(desk.admin.set_maintenance(false));
  return ok(object([&](json::ObjectWriter& writer) {
    writer.boolean("reset", true);
    writer.number("cancelled", cancelled);
    writer.number("dropped", static_cast<std::int64_t>(dropped.done));
  }));
}

Reply advance(Desk& desk, const Request& request) {
  const Body body(request);
  const auto ms = body.whole("advance_ms", 0, 4'000'000'000);
  if (!ms) throw invalid_request("advance_ms is missing", "advance_ms");
  internal::advance_clock(desk.hall.segment(), *ms);
  return ok("{\"now\":" + quoted(print_timestamp(desk.now_ms())) + "}");
}

}  // namespace

std::span<const Route> test_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"POST", "/ojs/v1/test/reset", Scope::kAdmin, &reset, {"", "Reset"}, Pace::kSlow, true},
      {"POST", "/ojs/v1/test/clock", Scope::kAdmin, &advance, {"ClockStep", "Clock"}, Pace::kQuick, true},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
