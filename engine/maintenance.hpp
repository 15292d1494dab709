// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/maintenance_record.hpp"
#include "engine/store.hpp"

namespace ojs_shm::engine {

struct MaintenanceView {
  bool on = false;
  std::string reason;
  std::uint64_t since_ms = 0;  ///< when that was said
};
MaintenanceView look_at_maintenance(const Store& store);

}  // namespace ojs_shm::engine
