// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <ojs_shm/job.hpp>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/desk.hpp"

namespace ojs_shm::gateway {

/// The job as clients receive it, with what this gateway knows beside the segment.
std::string job_text(Desk& desk, const JobInfo& job);
void append_job_text(std::string& out, Desk& desk, const JobInfo& job);
/// The job of an id. With the header X-OJS-Tenant another tenant's job is not there. Throws a
/// Fault.
JobInfo job_of(Desk& desk, const Request& request, const std::string& id);
/// The tenant in the path. Of others a tenant sees and changes nothing. Throws a Fault.
const std::string& named_tenant(const Request& request);
/// The worker that has the job, if it is named; else empty.
std::string holder_of(Desk& desk, const JobInfo& job);
/// 409 for a worker that names a second pool.
Fault worker_fault(const Error& error);
/// 200 and {"job":{...}}.
Reply job_reply(Desk& desk, const JobInfo& job);
/// 200 with a body.
Reply ok(std::string body);

}  // namespace ojs_shm::gateway
