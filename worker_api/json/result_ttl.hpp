// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How long a job's result is kept: `result_ttl` among the members that stay with the job. Source:
/// ojs-results 6, 7.
namespace ojs_shm {

/// A hundred years.
inline constexpr std::int64_t kLongestResultTtlS = 3'153'600'000;

/// -1 is without end, 0 not at all.
constexpr bool is_result_ttl(std::int64_t seconds) {
  return seconds >= -1 && seconds <= kLongestResultTtlS;
}
/// Nothing: the members have no result_ttl, or a value that is not one.
std::optional<std::int64_t> result_ttl_in(std::string_view extra);
/// Whether the members have no result_ttl, or a valid value.
bool result_ttl_fits(std::string_view extra);
/// The members with that one; what is no object stays as it is.
std::string with_result_ttl(std::string_view extra, std::int64_t seconds);

}  // namespace ojs_shm
