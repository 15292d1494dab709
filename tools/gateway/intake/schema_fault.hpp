// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ojs_shm::gateway {

/// Why a schema is not kept.
struct SchemaFault {
  std::string why = {};  ///< empty: it is kept
  /// It may be a schema, and uses a keyword or a reference that schema_problem() does not check.
  bool unsupported = false;
};
/// What is wrong with a schema of draft 2020-12, or goes beyond what jobs are held against. Source:
/// ojs-http-binding 15.
SchemaFault schema_fault(std::string_view schema);

}  // namespace ojs_shm::gateway
