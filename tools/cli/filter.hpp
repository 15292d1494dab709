// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <string>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::cli {

/// The flags by which commands choose jobs; empty where nothing was given.
struct FilterFlags {
  std::string queue, type, state, tenant, priority, older_than, ended_ago, error_type;
  std::size_t limit = 0;

  /// Whether any of them says which jobs are meant.
  bool chosen() const;
};

/// --queue, --type, --tenant, --priority, --older-than, --ended-ago, --error-type, --limit.
void add_filter(CLI::App& command, FilterFlags& flags);
/// Throws shell::Refusal: there is no such queue (4), state or priority (2).
JobFilter filter_of(const FilterFlags& flags, const Observer& observer);

}  // namespace ojs_shm::cli
