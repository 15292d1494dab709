// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/replies/workflow_reply.hpp"

#include <set>

#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/serving/hall.hpp"

namespace ojs_shm::gateway {

Fault invalid_workflow(const Error& error) {
  Fault fault = fault_of(error);
  if (error.code != Code::kInvalid || error.subject == "json") return fault;
  fault.code = "invalid_workflow";
  fault.message = "Workflow validation failed: " + error.message;
  fault.details.emplace_back("validation_errors", "[" + object([&](json::ObjectWriter& writer) {
                                                    writer.text("path", error.subject);
                                                    writer.text("message", error.message);
                                                  }) + "]");
  return fault;
}

namespace {

void collect_tenants(const WorkflowSpec& part, std::set<std::string_view>& tenants) {
  if (!part.tenant.empty()) tenants.insert(part.tenant);
  for (const WorkflowSpec& step : part.steps) collect_tenants(step, tenants);
}

}  // namespace

void settle_tenant(std::string_view asking, WorkflowText& workflow) {
  std::set<std::string_view> tenants;
  if (!asking.empty()) tenants.insert(asking);
  collect_tenants(workflow.spec, tenants);
  for (const Envelope& job : workflow.jobs)
    if (!job.tenant.empty()) tenants.insert(job.tenant);
  if (tenants.size() > 1 && !asking.empty())
    throw invalid_request("X-OJS-Tenant and meta.tenant_id name different tenants",
                          "meta.tenant_id");
  if (tenants.size() > 1)
    throw invalid_request(
        "the jobs of a workflow are one tenant's, and meta.tenant_id names several",
        "meta.tenant_id");
  for (const std::string_view tenant : tenants)
    check_tenant(tenant, asking.empty() ? "meta.tenant_id" : "X-OJS-Tenant");
  for (const Envelope& job : workflow.jobs) check_limit_key(asking, job);
  if (!asking.empty()) workflow.spec.tenant = asking;
}

namespace {

/// Of a job that brought what comes after it: with the places as they are in its envelope.
Error as_sent(Error error, const WorkflowSpec& spec) {
  const std::string rest = "$.workflow." + std::string(workflow_kind_name(spec.steps[1].kind));
  for (const auto& [place, sent] : {std::pair(std::string("$.steps[0]"), std::string("$")),
                                    {"$.steps[1].steps", rest},
                                    {"$.steps[1].jobs", rest},
                                    {"$.steps[1]", rest}})
    for (std::string* text : {&error.subject, &error.message})
      if (text->starts_with(place)) text->replace(0, place.size(), sent);
  return error;
}

const WorkflowStep* first_job_of(const WorkflowStep& step) {
  if (step.kind == WorkflowKind::kJob) return &step;
  return step.steps.empty() ? nullptr : first_job_of(step.steps.front());
}

}  // namespace

Reply create_workflow(Desk& desk, const WorkflowSpec& spec, bool first_job) {
  auto created = desk.producer().create_workflow(spec);
  if (!created && first_job) throw invalid_workflow(as_sent(created.error(), spec));
  if (!created) throw invalid_workflow(created.error());
  desk.hall.jobs_came();
  const WorkflowInfo workflow = must(desk.observer.workflow(*created));
  Reply reply{.status = 201};
  reply.headers.emplace_back("Location", "/ojs/v1/workflows/" + *created);
  const std::string text = print_workflow(workflow);
  if (!first_job) {
    reply.body = wrapped_and_flat("workflow", text);
    return reply;
  }
  const WorkflowStep* first = first_job_of(workflow.root);
  const auto job = desk.observer.get(first == nullptr ? "" : first->job_id);
  if (job) reply.headers.back().second = "/ojs/v1/jobs/" + job->id;
  reply.body = "{\"workflow\":" + text + "}";
  if (job) reply.body = joined("{\"job\":" + job_text(desk, *job) + "}", reply.body);
  return reply;
}

}  // namespace ojs_shm::gateway
