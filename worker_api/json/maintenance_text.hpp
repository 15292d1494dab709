// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>

namespace ojs_shm {

/// {"enabled", "reason", "since"}; without the last when it never was on.
std::string print_maintenance(const Maintenance& maintenance);

}  // namespace ojs_shm
