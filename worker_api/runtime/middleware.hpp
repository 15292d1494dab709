// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/middleware.hpp>
#include <ojs_shm/runtime.hpp>

namespace ojs_shm::internal {

/// Runs the handler inside its middlewares. `handled` becomes false where an exception comes from a
/// middleware although the handler threw none.
std::string call_through(const HandlerChain& chain, const Handler& handler, JobContext& context,
                         bool& handled);

}  // namespace ojs_shm::internal
