// SPDX-License-Identifier: Apache-2.0
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "tools/metrics/table.hpp"

namespace ojs_shm::metrics {

std::array<CLI::Option*, 2> add_bounds(CLI::App& command, Options& options) {
  const auto add = [&command](const char* name, std::size_t& bound, const char* help) {
    return command.add_option(name, bound, help)->type_name("N")->check(CLI::Range(0, 100'000));
  };
  return {add("--max-tenants", options.max_tenants,
              "Of each queue show the tenants with the most jobs, so many of them [100]"),
          add("--max-limits", options.max_limits,
              "Of the keys of limits show those that an operator set, then those that hold the "
              "most jobs back, so many of them [100]")};
}

}  // namespace ojs_shm::metrics
