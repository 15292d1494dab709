// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_result.hpp"

#include "worker_api/envelope_json.hpp"

namespace ojs_shm::cli {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string as_json(std::string_view written) {
  const std::string_view text = trimmed(written);
  if (text.empty() || json::check(text)) return std::string(text);
  std::string quoted;
  json::append_quoted(quoted, text);
  return quoted;
}

}  // namespace ojs_shm::cli
