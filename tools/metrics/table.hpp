// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <ojs_shm/observer.hpp>

#include "tools/metrics/page.hpp"

namespace ojs_shm::metrics {

struct Options {
  /// of each queue that is fair or bounds its tenants: those with the most jobs waiting
  std::size_t max_tenants = 100;
};

/// Adds the series of what an observer sees. Names are those of the specifications with _ for the
/// dots, times are seconds.
void add_segment(Page& page, const Observer& observer, const Options& options);

}  // namespace ojs_shm::metrics
