// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <array>
#include <cstddef>

#include <ojs_shm/census.hpp>
#include <ojs_shm/observer.hpp>

#include "tools/metrics/page.hpp"

namespace ojs_shm::metrics {

struct Options {
  /// of each queue that is fair or bounds its tenants: those with the most jobs waiting
  std::size_t max_tenants = 100;
  /// of the keys of limits: those that an operator set, then those that hold the most jobs back
  std::size_t max_limits = 100;
};
/// Adds --max-tenants and --max-limits, which the returned options are.
std::array<CLI::Option*, 2> add_bounds(CLI::App& command, Options& options);

/// Adds the series of what an observer sees. Names are those of the specifications with _ for the
/// dots, times are seconds.
void add_segment(Page& page, const Observer& observer, const Options& options);
/// The same with a census that was taken before.
void add_segment(Page& page, const Observer& observer, const Census& census,
                 const Options& options);

}  // namespace ojs_shm::metrics
