// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ojs_shm::internal {

/// What every interface says of a text that should be the id of a "job" or a "workflow" and is not
/// one.
inline std::string not_an_id_text(std::string_view text, std::string_view whose = "job") {
  return "'" + std::string(text.substr(0, 64)) + "' is not a " + std::string(whose) +
         " id: one is a UUIDv7 in lower case, such as "
         "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d";
}

}  // namespace ojs_shm::internal
