// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/worker.hpp>

#include "engine/rules/convention.hpp"

namespace ojs_shm::internal {

// What Admin and Worker refuse whatever the segment holds; for callers that read settings before
// there is a segment.

/// The largest bounds.
constexpr std::uint64_t kMostBoundJobs = (1ULL << 24) - 1, kMostBoundBytes = (1ULL << 40) - 1;
constexpr std::uint64_t kMostTenantJobs = kMostBoundJobs / 2;  // an account has a bit less
constexpr std::uint64_t kLongestRetentionMs = 3'153'600'000'000;

/// About a member of some settings.
Error invalid_setting(std::string_view member, std::string message, std::uint64_t bound = 0);
/// JSON, whatever it says.
Status check_checkpoint(std::string_view text);
Status check_queue(std::string_view name, const QueueSettings& settings);
/// What only a convention decides: the ageing, the weights of levels, and that a queue does not
/// have both. `others` is the ageing of queues that have none of their own.
Status check_queue_order(engine::Convention convention, std::string_view name,
                         const QueueSettings& settings, const std::optional<AgingSettings>& others);
Status check_default_aging(engine::Convention convention, const AgingSettings& settings);
/// A cap in the words of qo, as the limit of the same rank. One that no priority reaches is the
/// worst there is.
std::int64_t limit_of_qo_cap(engine::Convention convention, std::int64_t cap);
/// Whether the weights fit the strategy and the queues.
Status check_strategy(const WorkerOptions& options);
Status check_type(std::string_view type);
Result<std::uint8_t> check_priority(engine::Convention convention, std::int64_t priority);
Result<std::int64_t> named_priority(engine::Convention convention, std::string_view name);
/// A priority as people write it, a number or a name, by the rules of a convention.
Result<std::int64_t> priority_of_text(engine::Convention convention, std::string_view text);

}  // namespace ojs_shm::internal
