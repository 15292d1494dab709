// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "tools/gateway/routes/router.hpp"

namespace ojs_shm::gateway {

/// An OpenAPI 3.1 description of these routes, made from the table that serves them.
std::string openapi_text(std::span<const Route> routes);

}  // namespace ojs_shm::gateway
