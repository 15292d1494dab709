// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/job.hpp>
#include <ojs_shm/unique.hpp>

#include "worker_api/json/envelope_fields.hpp"

namespace ojs_shm {

namespace json {

/// A policy as an envelope has it, in all its spellings. Members that mean nothing are ignored.
UniquePolicy read_unique(std::string_view object, Complaint& complaint);

/// The same object with `on_conflict` as ojs-unique-jobs spells it, for clients that read no other.
std::string usual_unique(std::string_view object);

}  // namespace json

/// As JobUnique::of() with the text of a policy, but members that mean nothing are ignored.
std::optional<JobUnique> unique_of(const JobSpec& job, std::string_view policy,
                                   json::Complaint& complaint);

/// "reject", "ignore", "replace", "replace_except_schedule".
std::string_view name_of(OnConflict conflict) noexcept;

/// What an annex says, but for what it counts.
UniquePolicy policy_of(std::uint64_t uniqueness);

/// What the member `unique` of a job's `extra` asks for; nothing when there is none, or none that
/// can be granted.
std::optional<JobUnique> unique_in(const JobSpec& job);

/// The same, counted among the jobs of its tenant alone, as if `meta_keys` named `tenant_id` too.
/// Errors: kInvalid (a fingerprint, which would count for all tenants), and those of
/// JobUnique::of().
Result<JobUnique> unique_in_tenant(const JobSpec& job);

/// Whether the job's member `unique` gives the key that the job has; true where there is none. A
/// tenant's client over HTTP has another one, for unique_in_tenant() made it.
bool says_its_key(const JobInfo& job);

/// The policy of a job whose key is known, as unique_of_key() reads it.
std::string print_unique(std::string_view key, const UniquePolicy& policy);

/// Of a job whose key is known, as an export has it: 32 or 64 digits. Errors: kInvalid.
Result<JobUnique> unique_of_key(std::string_view key, const UniquePolicy& policy);

}  // namespace ojs_shm
