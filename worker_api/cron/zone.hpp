// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ojs_shm/result.hpp>

namespace ojs_shm {

/// A zone of the IANA database, as the machine's tzdata has it. Its values are seconds since 1970:
/// those of the world, or those that a clock on the wall shows.
class Zone {
 public:
  /// "UTC" (or empty), which needs no database, or such as "Europe/Berlin". Errors: kInvalid for
  /// an offset, an abbreviation ("EST"), a name that is not in the database, or no database.
  static Result<Zone> find(std::string_view name);

  /// What the wall shows at that time.
  std::int64_t wall_at(std::int64_t time) const;
  /// When the wall shows it for the first time; nothing when clocks jump over it.
  std::optional<std::int64_t> first_time_of(std::int64_t wall) const;

 private:
  const void* zone_ = nullptr;  // null: UTC
};

}  // namespace ojs_shm
