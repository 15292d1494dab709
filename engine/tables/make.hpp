// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/rules/convention.hpp"
#include "engine/tables/layout.hpp"
#include "shm/segment.hpp"

namespace ojs_shm::engine {

constexpr std::uint32_t kMostHandles = shm::kMaxLanes - kServiceLanes, kMostQueues = 4095,
                        kMostTenants = 1U << 22, kMostWaiting = 1U << 20;
constexpr std::uint32_t kMostSlots = (1U << 24) - 1, kMostBody = 0xFF'FFFF;
/// so that the number of blocks stays within bounds
constexpr std::uint64_t kMostBytes = 256ULL << 30;

constexpr std::uint32_t kDefaultSlots = 102'400, kDefaultQueues = 64, kDefaultTenants = 1024,
                        kDefaultHandles = 120;
constexpr std::uint32_t kDefaultBody = 1U << 20;
/// Of dead letters in a new segment. Source: ojs-dead-letter 5.2.
constexpr std::uint64_t kDefaultDeadAgeMs = 180ULL * 24 * 3'600'000, kDefaultDeadCount = 10'000;

/// What a new segment shall hold. 0: the default.
struct Plan {
  std::uint64_t size_bytes = 0;
  std::uint32_t slots = 0, max_queues = 0, max_body_bytes = 0, max_handles = 0,
                default_lease_ms = 0, max_tenants = 0, max_waiting = 0;
  std::uint64_t retention_ms = 0;
  Convention convention = Convention::kOjs;
  unsigned mode = 0660;
  std::string group, version;
};

/// The sizes of all tables; empty `problem` when they are possible.
struct Measured {
  shm::Geometry geometry;
  std::string problem;
};
Measured measure(const Plan& plan);

/// Makes the segment whole or not at all.
shm::Opened make(const std::string& path, const Plan& plan);

/// Climbs the attach ladder; its last rung is an area that has room for the queues it names.
shm::Opened open(const std::string& path, shm::Mapping mapping);

}  // namespace ojs_shm::engine
