// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::cli {

/// What an observer sees, as a page for Prometheus. Names of ojs-priority 11.2 with _ for the dots,
/// and seconds.
std::string metrics_page(const Observer& observer);

}  // namespace ojs_shm::cli
