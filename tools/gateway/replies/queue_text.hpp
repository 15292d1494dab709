// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::gateway {

/// "active" or "paused".
std::string_view status_of(const QueueInfo& queue);
/// The jobs of each state: those in the segment, and of ended ones all there ever were.
void write_counts(json::ObjectWriter& writer, const QueueInfo& queue);
/// "created_at", where the segment knows it.
void write_created(json::ObjectWriter& writer, const QueueInfo& queue);
/// {"name","status","paused","depth",... counts}.
std::string queue_text(const QueueInfo& queue);
/// The queue of that name; throws a Fault when there is none.
QueueInfo queue_of(Desk& desk, const std::string& name);
/// The settings of a queue, and its limits named concurrency and rate_limit.
std::string settings_text(Desk& desk, const QueueInfo& queue);
/// {"config": the same with the bound by the names of ojs-queue-config}.
std::string config_text(Desk& desk, const QueueInfo& queue);
/// A request of a tenant sees its own jobs of a queue alone, and of ended ones those that are still
/// there.
void narrow_to_tenant(Desk& desk, const Request& request, QueueInfo& queue);
/// The queue that the request's path names, so narrowed. Throws a Fault when there is none.
QueueInfo queue_seen(Desk& desk, const Request& request);
void pause_queue(Desk& desk, const std::string& name, bool paused);
/// Takes settings of a queue as JSON: those of the segment, and limits named concurrency and
/// rate_limit. Throws a Fault.
void configure_queue(Desk& desk, const std::string& name, std::string_view settings);

}  // namespace ojs_shm::gateway
