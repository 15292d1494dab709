// SPDX-License-Identifier: Apache-2.0
//
// Workflows: create, look, list, cancel.
#include <algorithm>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/replies/progress_reply.hpp"
#include "tools/gateway/replies/workflow_reply.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::string text_of(const WorkflowInfo& workflow) {
  return wrapped_and_flat("workflow", print_workflow(workflow));
}

/// Whether the client may see it: with the header X-OJS-Tenant only its own.
WorkflowInfo workflow_of(Desk& desk, const Request& request) {
  const std::string& id = request.names[0];
  const std::string_view tenant = request.header("x-ojs-tenant");
  auto found = desk.observer.workflow(id);
  if (!found) throw not_found("workflow", id, found.error());
  if (!tenant.empty() && found->tenant != tenant) throw not_found("workflow", id);
  return std::move(*found);
}

Reply create(Desk& desk, const Request& request) {
  auto read = parse_workflow(request.body, desk.now_ms());
  if (!read) throw invalid_workflow(read.error());
  check_members(desk, shell::Document::kWorkflow, read->unknown);
  settle_tenant(request.header("x-ojs-tenant"), *read);
  return create_workflow(desk, read->spec);
}

Reply get(Desk& desk, const Request& request) { return ok(text_of(workflow_of(desk, request))); }

Reply progress(Desk& desk, const Request& request) {
  return workflow_progress_reply(desk, workflow_of(desk, request));
}

/// How many jobs of the part stand so.
std::int64_t jobs_in(const WorkflowStep& part, StepState state) {
  if (part.kind == WorkflowKind::kJob) return part.state == state ? 1 : 0;
  std::int64_t count = 0;
  for (const WorkflowStep& step : part.steps) count += jobs_in(step, state);
  return count;
}

/// Source: ojs-http-binding 14.3.
std::string cancelled_text(const WorkflowInfo& workflow) {
  const std::string counts = object([&](json::ObjectWriter& writer) {
    writer.number("steps_cancelled", jobs_in(workflow.root, StepState::kCancelled));
    writer.number("steps_already_completed", jobs_in(workflow.root, StepState::kCompleted));
  });
  return wrapped_and_flat("workflow", joined(print_workflow(workflow), counts));
}

Reply cancel(Desk& desk, const Request& request) {
  const std::string id = workflow_of(desk, request).id;
  auto cancelled = desk.producer().cancel_workflow(id);
  if (cancelled) return ok(cancelled_text(*cancelled));
  if (cancelled.error().code == Code::kNotFound) throw not_found("workflow", id);
  Fault fault = fault_of(cancelled.error());
  if (cancelled.error().code == Code::kWrongState)
    fault.details = {{"workflow_id", quoted(id)},
                     {"current_state", quoted(cancelled.error().subject)},
                     {"expected_state", "\"running\""}};
  throw fault;
}

Reply list(Desk& desk, const Request& request) {
  WorkflowFilter filter;
  if (const std::string* name = request.asked("name")) filter.name = *name;
  if (const std::string* state = request.asked("state")) {
    for (const WorkflowState each : {WorkflowState::kRunning, WorkflowState::kCompleted,
                                     WorkflowState::kFailed, WorkflowState::kCancelled})
      if (workflow_state_name(each) == *state) filter.state = each;
    if (*state == "pending")  // ojs-workflows 8.1; here each runs from its creation on
      return ok(Slice::of(request).list({"workflows", "items"}, std::vector<WorkflowInfo>(),
                                        print_workflow));
    if (!filter.state)
      throw invalid_request("state must be pending, running, completed, failed or cancelled",
                            "state");
  }
  if (const std::string_view tenant = request.header("x-ojs-tenant"); !tenant.empty())
    filter.tenant = std::string(tenant);
  return ok(Slice::of(request).list({"workflows", "items"}, desk.observer.workflows(filter),
                                    print_workflow));
}

}  // namespace

std::span<const Route> workflow_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/workflows", Scope::kRead, &list, {"", "WorkflowList"}},
      {"POST", "/ojs/v1/workflows", Scope::kWrite, &create, {"NewWorkflow", "ShownWorkflow"}},
      {"GET", "/ojs/v1/workflows/{id}", Scope::kRead, &get, {"", "ShownWorkflow"}},
      {"GET", "/ojs/v1/workflows/{id}/progress", Scope::kRead, &progress, {"", "WorkflowProgress"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/workflows/{id}", Scope::kWrite, &cancel, {"", "ShownWorkflow"}},
      {"POST", "/ojs/v1/workflows/{id}/cancel", Scope::kWrite, &cancel, {"", "ShownWorkflow"}},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
