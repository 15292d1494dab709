// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gateway/intake/body.hpp"

namespace ojs_shm::gateway {

/// `worker_id`, if it is named. Throws a Fault beyond the bytes that a registered one may have.
std::optional<std::string> worker_in(const Body& body);

/// The turns of the queues as `strategy` and `weights` of a worker say; empty: from left to right.
/// Throws a Fault. Source: ojs-fair-scheduling 5.2.
std::vector<std::uint32_t> read_weights(const Body& body, const std::vector<std::string>& queues);

/// Labels of a worker with what `body` says of its turns in a member of their own; without a word
/// what `before`, its labels so far, says stays. Empty: none.
std::string labels_with_turns(const Body& body, std::string_view before);
/// The turns that stand in such labels; empty: from left to right.
std::vector<std::uint32_t> turns_in(std::string_view labels,
                                    const std::vector<std::string>& queues);

}  // namespace ojs_shm::gateway
