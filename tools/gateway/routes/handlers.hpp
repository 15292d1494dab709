// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tools/gateway/routes/router.hpp"

/// The endpoints, a file for each resource. docs/gateway.md describes them.
namespace ojs_shm::gateway {

std::span<const Route> job_routes();
std::span<const Route> enqueue_routes();
std::span<const Route> bulk_routes();
std::span<const Route> bulk_change_routes();
std::span<const Route> progress_routes();
std::span<const Route> worker_routes();
std::span<const Route> roster_routes();
std::span<const Route> queue_routes();
std::span<const Route> dead_letter_routes();
std::span<const Route> event_routes();
std::span<const Route> limit_routes();
std::span<const Route> health_routes();
/// Whether the manifest names the extension.
bool offers_extension(std::string_view uri);
std::span<const Route> schema_routes();
std::span<const Route> cron_routes();
std::span<const Route> workflow_routes();
std::span<const Route> admin_queue_routes();
std::span<const Route> admin_job_routes();
std::span<const Route> admin_pool_routes();
std::span<const Route> admin_tenant_routes();
std::span<const Route> admin_system_routes();
std::span<const Route> stats_routes();
std::span<const Route> page_routes();
std::span<const Route> test_routes();

}  // namespace ojs_shm::gateway
