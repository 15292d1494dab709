// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"

namespace ojs_shm::cli {

/// How a command speaks of what it does to many jobs: "cancel 3 jobs?", "3 jobs cancelled".
struct BulkWords {
  std::string_view verb, participle, noun = "job";
};

/// Asks. True without a question where there is no terminal to answer at.
bool confirmed(std::uint64_t jobs, const BulkWords& words);

/// Asks on a terminal, unless `yes`; acts on every job of the filter; prints how many. Elsewhere it
/// does not ask. Returns an exit code: 0, also when there was none; 1 when the question was
/// answered with no.
int run_bulk(const Request& request, Admin& admin, BulkAction action, const JobFilter& filter,
             const BulkWords& words, bool yes);

}  // namespace ojs_shm::cli
