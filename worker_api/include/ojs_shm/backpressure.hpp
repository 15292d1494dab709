// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <ojs_shm/export.hpp>

namespace ojs_shm {

/// What happens to a job for which a bounded queue has no room.
enum class BackpressureStrategy : std::uint8_t {
  kReject = 0,  ///< it is refused
  /// its producer may wait, EnqueueOptions::block_timeout; the first to wait is let in first
  kBlock = 1,
  /// it goes in, and the job that has been available for the longest time is discarded
  kDropOldest = 2,
};
/// Which available job is dropped.
enum class DropOrder : std::uint8_t {
  kOldest = 0,
  kLowestPriority = 1,  ///< the oldest of the lowest priority that there is
};

/// "reject", "block", "drop_oldest"; "oldest", "lowest_priority".
OJS_SHM_API std::string_view strategy_name(BackpressureStrategy strategy) noexcept;
OJS_SHM_API std::optional<BackpressureStrategy> strategy_by_name(std::string_view name) noexcept;
OJS_SHM_API std::string_view drop_order_name(DropOrder order) noexcept;
OJS_SHM_API std::optional<DropOrder> drop_order_by_name(std::string_view name) noexcept;

/// How far a queue fills that of its bounds which it fills more.
struct QueuePressure {
  std::uint64_t depth = 0, bound = 0;  ///< in `unit`
  std::string_view unit = "jobs";      ///< "jobs" or "bytes"
  double pressure = 0;                 ///< depth / bound, at most 1
};

struct EnqueueOptions {
  /// How long to wait for room in a full queue whose strategy is block; a queue with another
  /// strategy is not waited for. 0 to an hour.
  std::chrono::milliseconds block_timeout{0};
};

}  // namespace ojs_shm
