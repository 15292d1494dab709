// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <ojs_shm/result.hpp>

namespace ojs_shm::shell {

/// All of a file. Errors: kInvalid, kPermission.
Result<std::string> read_text_file(const std::string& path);

/// The same; "-" is stdin.
Result<std::string> read_text_input(const std::string& path);

/// Makes a file, or replaces it, whole or not at all: a reader meanwhile sees the old text or
/// the new one. Errors: kPermission, kNoSpace, kInvalid.
Status replace_text_file(const std::string& path, std::string_view text);

}  // namespace ojs_shm::shell
