// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/pairs.hpp"

namespace ojs_shm::shell {

Pairs pairs_of(std::string_view text, char mark) {
  Pairs pairs;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t at = part.find(mark);
    pairs.emplace_back(part.substr(0, at),
                       at == part.npos ? std::string_view() : part.substr(at + 1));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
  }
  return pairs;
}

}  // namespace ojs_shm::shell
