// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/replies/job_reply.hpp"

#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {

void append_job_text(std::string& out, Desk& desk, const JobInfo& job) {
  append_job(out, job);
  if (job.state != State::kActive) return;
  const std::string holder = holder_of(desk, job);
  if (holder.empty()) return;
  out.back() = ',';  // one more member
  out += "\"worker_id\":";
  json::append_quoted(out, holder);
  out += '}';
}

std::string job_text(Desk& desk, const JobInfo& job) {
  std::string text;
  append_job_text(text, desk, job);
  return text;
}

std::string holder_of(Desk& desk, const JobInfo& job) {
  if (!job.worker_id.empty()) return job.worker_id;
  const auto note = desk.hall.notes().note_of(job.id, job.fence);
  return note ? note->worker : std::string();
}

Fault worker_fault(const Error& error) {
  if (error.code != Code::kInUse) return fault_of(error);
  Fault fault{.status = 409, .code = "conflict"};
  fault.message = error.message;
  return fault;
}

JobInfo job_of(Desk& desk, const Request& request, const std::string& id) {
  JobInfo job = must(desk.observer.get(id), id);
  const std::string_view tenant = request.header("x-ojs-tenant");
  if (!tenant.empty() && tenant_of(job.extra) != tenant) throw not_found("job", id);
  return job;
}

const std::string& named_tenant(const Request& request) {
  if (!is_tenant(request.names[0]))
    throw invalid_request(
        "a tenant is letters, digits and . _ : -, with a letter or a digit in front", "tenant_id");
  if (const std::string_view own = request.header("x-ojs-tenant");
      !own.empty() && own != request.names[0])
    throw not_found("tenant", request.names[0]);
  return request.names[0];
}

Reply job_reply(Desk& desk, const JobInfo& job) {
  return ok(wrapped_and_flat("job", job_text(desk, job)));
}

Reply ok(std::string body) { return {.status = 200, .body = std::move(body)}; }

}  // namespace ojs_shm::gateway
