// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ojs_shm::cli {

/// Without the white space at both ends.
std::string_view trimmed(std::string_view text);
/// What a command wrote, as JSON: its JSON as it stands, other text as a JSON string, nothing as
/// nothing.
std::string as_json(std::string_view written);

}  // namespace ojs_shm::cli
