// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/result.hpp>

namespace ojs_shm::shell {

/// All of a file. Errors: kInvalid, kPermission.
Result<std::string> read_text_file(const std::string& path);

}  // namespace ojs_shm::shell
