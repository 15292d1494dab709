// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::cli {

/// How many jobs of each priority are available in a queue, or in each of them. Returns an exit
/// code.
int print_priorities(const Observer& observer, const std::string& queue, bool as_json);

}  // namespace ojs_shm::cli
