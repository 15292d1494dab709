// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/known_id.hpp"

#include <algorithm>

namespace ojs_shm::shell {

std::string known_id(std::string text) {
  constexpr std::size_t kLength = 36;
  if (text.size() != kLength) return text;
  if (text.find_first_not_of("0123456789abcdefABCDEF-") != std::string::npos) return text;
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' ? static_cast<char>(c | 0x20) : c; });
  return text;
}

}  // namespace ojs_shm::shell
