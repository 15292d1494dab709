// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <string_view>

#include <ojs_shm/job.hpp>

#include "engine/rules/uuid.hpp"

namespace ojs_shm::gateway {

/// A UUIDv7 of this moment, whose other bits are random. Thread-safe.
inline JobIdText fresh_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
  JobIdText id;
  id.assign(ms << 16 | 0x7000 | (random() & 0xFFF), 1ULL << 63 | random() >> 2);
  return id;
}

/// Nothing: the text is no UUIDv7 in lower case.
inline std::optional<JobIdText> read_id(std::string_view text) {
  const auto parsed = engine::parse_id(text);
  if (!parsed) return std::nullopt;
  JobIdText id;
  id.assign(parsed->hi, parsed->lo);
  return id;
}

}  // namespace ojs_shm::gateway
