// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace ojs_shm::engine {

inline constexpr std::size_t kMaxTypeLength = 255;
inline constexpr std::size_t kMaxQueueNameLength = 128;

/// `[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*`, at most kMaxTypeLength bytes. Source: ojs-core 5.1, with the hyphen of the
/// OpenAPI document.
bool valid_type(std::string_view type) noexcept;

/// `[a-z0-9][a-z0-9.-]*`, at most kMaxQueueNameLength bytes. Source: ojs-core 5.2.
bool valid_queue_name(std::string_view name) noexcept;

}  // namespace ojs_shm::engine
