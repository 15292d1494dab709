// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ojs_shm/observer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/exchange.hpp"

namespace ojs_shm::gateway {

/// A number of the query within its bounds; throws a Fault when it is none.
std::size_t number_asked(const Request& request, const std::string& name, std::size_t otherwise,
                         std::size_t least, std::size_t most);
/// The values of a query's member, separated by commas.
std::vector<std::string> texts_asked(const Request& request, const std::string& name);

/// What `print` makes of each, separated by commas.
template <class Items, class Print>
std::string joined_texts(const Items& items, Print print) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ',';
    out += print(item);
  }
  return out;
}

/// ?page and ?per_page of the admin endpoints.
struct Page {
  std::size_t page = 1, per_page = 20;
  static Page of(const Request& request);
  std::size_t begin() const { return (page - 1) * per_page; }

  /// {"items":[...],"pagination":{...}} of what `print` makes of the page's items.
  template <class Items, class Print>
  std::string list(const Items& items, Print print) const {
    std::string out = "[";
    for (std::size_t i = begin(); i < items.size() && i < begin() + per_page; ++i) {
      if (out.size() > 1) out += ',';
      out += print(items[i]);
    }
    return "{\"items\":" + out + "],\"pagination\":" + text(items.size()) + "}";
  }
  /// The same of a page of jobs that the segment has picked.
  template <class Print>
  std::string list(const JobPage& jobs, Print print) const {
    return "{\"items\":[" + joined_texts(jobs.jobs, print) +
           "],\"pagination\":" + text(jobs.total) + "}";
  }
  std::string text(std::size_t total) const;
};

/// ?limit, ?offset and ?cursor of the other endpoints; a cursor is the offset where it goes on.
struct Slice {
  std::size_t limit = 50, offset = 0;
  static Slice of(const Request& request, std::size_t limit = 50, std::size_t most = 1000);

  template <class Items, class Print>
  std::string list(std::string_view name, const Items& items, Print print) const {
    std::string out = "{\"" + std::string(name) + "\":[";
    const std::size_t begin = out.size();
    for (std::size_t i = offset; i < items.size() && i < offset + limit; ++i) {
      if (out.size() > begin) out += ',';
      out += print(items[i]);
    }
    return out + "],\"total\":" + std::to_string(items.size()) +
           ",\"pagination\":" + text(items.size()) + "}";
  }
  /// The same of a page of jobs that the segment has picked.
  template <class Print>
  std::string list(std::string_view name, const JobPage& jobs, Print print) const {
    return "{\"" + std::string(name) + "\":[" + joined_texts(jobs.jobs, print) +
           "],\"total\":" + std::to_string(jobs.total) + ",\"pagination\":" + text(jobs.total) +
           "}";
  }
  std::string text(std::size_t total) const;
};

}  // namespace ojs_shm::gateway
