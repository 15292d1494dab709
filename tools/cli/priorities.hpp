// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::cli {

/// How many jobs of each priority are available in a queue, or in each of them. Returns an exit
/// code.
int print_priorities(const Observer& observer, const std::string& queue, bool as_json);

/// The same JSON, of a job, workflow or cron, with a number where a `priority` is a name; what is
/// no JSON stays as it is. Throws shell::Refusal when the convention has no such name.
std::string number_priorities(const Observer& observer, const std::string& json);

}  // namespace ojs_shm::cli
