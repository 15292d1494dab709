// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ojs_shm::gateway {

/// A request, understood as far as every handler needs it.
struct Request {
  std::string method, path;
  std::vector<std::string> names = {};            ///< of the path: what stands for {id}, in order
  std::map<std::string, std::string> query = {};  ///< the first of each name
  std::vector<std::pair<std::string_view, std::string>> headers = {};  ///< names in lower case
  std::string body = {};
  std::string id = {};  ///< X-Request-ID, the client's or ours

  std::string_view header(std::string_view name) const {
    for (const auto& [known, value] : headers)
      if (known == name) return value;
    return {};
  }
  const std::string* asked(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? nullptr : &found->second;
  }
};

struct Reply {
  unsigned status = 200;
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string content_type = {};  ///< empty: what was negotiated
  /// Called once: whether the kernel has the whole reply. Else its client is gone.
  std::function<void(bool delivered)> sent = {};
};

}  // namespace ojs_shm::gateway
