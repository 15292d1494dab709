// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gateway/intake/body.hpp"

namespace ojs_shm::gateway {

/// The turns of the queues as `strategy` and `weights` of a worker say; empty: from left to right.
/// Throws a Fault. Source: ojs-fair-scheduling 5.2.
std::vector<std::uint32_t> read_weights(const Body& body, const std::vector<std::string>& queues);

}  // namespace ojs_shm::gateway
