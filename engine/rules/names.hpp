// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ojs_shm::engine {

inline constexpr std::size_t kMaxTypeLength = 255;
inline constexpr std::size_t kMaxQueueNameLength = 128;

/// `[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*`, at most kMaxTypeLength bytes. Source: ojs-core 5.1,
/// with the hyphen of the OpenAPI document.
bool valid_type(std::string_view type) noexcept;

/// `[a-z0-9][a-z0-9.-]*`, at most kMaxQueueNameLength bytes. Source: ojs-core 5.2.
bool valid_queue_name(std::string_view name) noexcept;

/// Equality, for names: short ones need no call.
inline bool same_name(std::string_view a, std::string_view b) noexcept {
  const std::size_t size = a.size();
  if (size != b.size()) [[unlikely]]
    return false;
  const auto same = [&]<class Part>(Part x, std::size_t at) {
    Part y = 0;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    return x == y;
  };
  if (size >= 4 && size <= 8) return same(std::uint32_t{}, 0) && same(std::uint32_t{}, size - 4);
  if (size > 8 && size <= 16) return same(std::uint64_t{}, 0) && same(std::uint64_t{}, size - 8);
  return a == b;
}

}  // namespace ojs_shm::engine
