// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace ojs_shm::shell {

/// The main() of a service. What `run` throws becomes a line on stderr that begins with the
/// program, and the exit code that belongs to it.
int run_service(std::string_view program, const std::function<int()>& run);

}  // namespace ojs_shm::shell
