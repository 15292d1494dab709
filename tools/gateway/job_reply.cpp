// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/job_reply.hpp"

#include "tools/gateway/fault.hpp"
#include "tools/gateway/hall.hpp"
#include "tools/gateway/json_text.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {

std::string job_text(Desk& desk, const JobInfo& job) {
  std::string text = print_job(job);
  if (job.state != State::kActive) return text;
  const auto note = desk.hall.roster().note_of(job.id, job.fence);
  if (!note || note->worker.empty()) return text;
  return joined(std::move(text), "{\"worker_id\":" + quoted(note->worker) + "}");
}

JobInfo job_of(Desk& desk, const Request& request, const std::string& id) {
  JobInfo job = must(desk.observer.get(id), id);
  const std::string_view tenant = request.header("x-ojs-tenant");
  if (!tenant.empty() && tenant_of(job.extra) != tenant) throw not_found("job", id);
  return job;
}

Reply job_reply(Desk& desk, const JobInfo& job) {
  return ok("{\"job\":" + job_text(desk, job) + "}");
}

Reply ok(std::string body) { return {.status = 200, .body = std::move(body)}; }

}  // namespace ojs_shm::gateway
