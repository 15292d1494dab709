// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <ojs_shm/limit.hpp>

#include "engine/observing/census.hpp"

namespace ojs_shm::internal {

/// The keys that have or had a limit, by name, as a census counted their jobs.
std::vector<LimitInfo> describe_limits(const engine::Store& store,
                                       const std::vector<engine::Census::Limit>& counted);

}  // namespace ojs_shm::internal
