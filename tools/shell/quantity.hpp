// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <ojs_shm/result.hpp>

namespace ojs_shm::shell {

/// "4096", "64K", "64KiB", "1.5G": bytes, powers of 1024.
Result<std::uint64_t> parse_bytes(std::string_view text);
/// "250ms", "30s" or "30", "5m", "1h30m", "2d", or ISO 8601 such as "PT1M30S": milliseconds.
Result<std::uint64_t> parse_duration_ms(std::string_view text);
/// The same as a wait that can be added to a clock: what is longer is a hundred years. Throws
/// shell::Refusal.
std::chrono::milliseconds wait_of(std::string_view text);
/// RFC 3339, or a duration from now: Unix time in milliseconds.
Result<std::uint64_t> parse_time_ms(std::string_view text);
std::uint64_t unix_now_ms();
/// "660" or "0660": permission bits in octal.
Result<std::uint32_t> parse_mode(std::string_view text);

/// 63963136 -> "61.0 MiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace ojs_shm::shell
