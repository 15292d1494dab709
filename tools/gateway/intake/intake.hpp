// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "tools/shell/unknown_members.hpp"
#include "worker_api/json/envelope.hpp"

/// What a job's envelope, a cron or a workflow must fulfil here beyond its text. All throw a Fault.
namespace ojs_shm::gateway {

/// A letter or a digit, then also . _ : and -, of at most 128 bytes. Source: ojs-multi-tenancy 5.2.
bool is_tenant(std::string_view name);
/// Throws a Fault that names `where` the tenant was named, if it is none.
void check_tenant(std::string_view name, std::string_view where);
/// Whether a limit's key is another tenant's than `asking`, which is empty when no tenant asks.
bool is_anothers_key(std::string_view asking, std::string_view key);
/// A job of a tenant shares no limit of another one. Throws a Fault.
void check_limit_key(std::string_view asking, const Envelope& envelope);

/// The header X-OJS-Tenant may say whose job it is, beside the envelope. A unique job is then one
/// among the jobs of its tenant.
void give_tenant(const Request& request, Envelope& envelope);
/// A priority that 64 bits do not hold is out of range as well.
void check_priority(Desk& desk, const Envelope& envelope);

/// In a segment that refuses unknown members 400 names the first; in any other they stay with the
/// jobs.
void check_members(Desk& desk, shell::Document kind, std::span<const std::string> unknown);

}  // namespace ojs_shm::gateway
