// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/limit.hpp>

#include "engine/limits/limits.hpp"
#include "worker_api/json/envelope_fields.hpp"

/// Limits between the callers' words and the engine's.
namespace ojs_shm::internal {

/// What is wrong with a limit; success when nothing is. An operator's key may name any tenant.
Status check_limit(std::string_view key, const RateLimit& limit, bool by_operator);
engine::LimitSettings settings_of(const RateLimit& limit);
RateLimit limit_of(const engine::LimitSettings& settings);

/// Reads `rate_limit` of an envelope; what is wrong goes to the complaint. `queue`: where a limit
/// without a key stands.
JobLimit read_limit(std::string_view object, std::string_view queue, json::Complaint& complaint);
/// That of an envelope's other members, if there is one and it is right.
std::optional<JobLimit> limit_in(std::string_view extra, std::string_view queue);

}  // namespace ojs_shm::internal

namespace ojs_shm {

/// What parse_limit() reads, without a key and without what is at its default.
std::string print_limit_settings(const RateLimit& limit);

}  // namespace ojs_shm
