// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <ojs_shm/admin.hpp>

namespace ojs_shm::internal {

/// Sets a cron of an export, whose priorities `rank_of` reads.
Status import_cron(Admin& admin, std::string_view text,
                   const std::function<Result<std::uint8_t>(std::int64_t priority)>& rank_of);

}  // namespace ojs_shm::internal
