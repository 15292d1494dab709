// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <ojs_shm/workflow.hpp>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm::gateway {

/// What is wrong, and where. Source: ojs-workflows 11.1.
Fault invalid_workflow(const Error& error);
/// A workflow whose jobs name several tenants is refused, the one that asks included. Its tenant is
/// the one that asks, if any does. Source: ojs-multi-tenancy 15.2.
void settle_tenant(std::string_view asking, WorkflowText& workflow);
/// 201 with the workflow; `first_job`: with its first job too.
Reply create_workflow(Desk& desk, const WorkflowSpec& spec, bool first_job = false);

}  // namespace ojs_shm::gateway
