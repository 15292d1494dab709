// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace ojs_shm::shell {

/// The main() of a service. What `run` throws becomes a line on stderr that begins with the
/// program, and the exit code that belongs to it. A service whose output got lost, its READY or its
/// help, has not succeeded: it ends as if run had thrown that.
int run_service(std::string_view program, const std::function<int()>& run);

}  // namespace ojs_shm::shell
