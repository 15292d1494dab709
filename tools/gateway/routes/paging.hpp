// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ojs_shm/observer.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/exchange.hpp"

namespace ojs_shm::gateway {

/// A number of the query within its bounds; throws a Fault when it is none.
std::size_t number_asked(const Request& request, const std::string& name, std::size_t otherwise,
                         std::size_t least, std::size_t most);
/// The values of a query's member, separated by commas.
std::vector<std::string> texts_asked(const Request& request, const std::string& name);

/// A time of a query or a body, or one that counts from now, in Unix ms and never 0; throws a Fault
/// that names the field when it is none.
std::uint64_t time_of(std::uint64_t now_ms, const std::string& text, std::string_view field);

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

/// The same of some of them alone.
template <class Items, class Print>
std::string some_texts(const Items& items, std::size_t begin, std::size_t most, Print print) {
  const std::size_t from = std::min(begin, items.size());
  return joined_texts(std::span(items).subspan(from, std::min(most, items.size() - from)), print);
}

/// A list goes by several names where clients know it by different ones.
using Names = std::initializer_list<std::string_view>;
/// "NAME":[texts] under each name.
std::string named(const Names& names, std::string_view texts);

/// Of a list of jobs by creation, a cursor is where a page ended, "MS.ID" of its last job: what
/// comes or goes meanwhile moves nothing.
std::string cursor_of(const JobInfo& job);
std::pair<std::uint64_t, std::string> place_of(const std::string& cursor);

/// The state of that name; throws a Fault when there is none.
State state_named(const std::string& name);
/// ?sort of a list of jobs, and whether ?order has the newest, latest or highest first.
JobOrder order_asked(const Request& request);
bool falls_asked(const Request& request);

/// ?page and ?per_page of the admin endpoints; ?limit says what ?per_page does not. Source:
/// ojs-http-binding 17.1.
struct Page {
  std::size_t page = 1, per_page = 20;
  /// `otherwise`: as long is a page when neither says it; `most`: that ?limit may say.
  static Page of(const Request& request, std::size_t otherwise = 20, std::size_t most = 100);
  static bool is_asked(const Request& request);
  std::size_t begin() const { return (page - 1) * per_page; }

  /// {"items":[...],"pagination":{...}} of what `print` makes of the page's items.
  template <class Items, class Print>
  std::string list(const Items& items, Print print, const Names& names = {"items"}) const {
    return "{" + named(names, some_texts(items, begin(), per_page, print)) +
           ",\"pagination\":" + text(items.size(), begin() + per_page < items.size()) + "}";
  }
  /// The same of a page of jobs that the segment has picked.
  template <class Print>
  std::string list(const JobPage& jobs, Print print) const {
    return "{\"items\":[" + joined_texts(jobs.jobs, print) +
           "],\"pagination\":" + text(jobs.total, jobs.more) + "}";
  }
  std::string text(std::size_t total, bool has_more) const;
};

/// ?limit, ?offset and ?cursor of the other endpoints, or ?page and ?per_page; a cursor is the
/// offset where it goes on, and in of_jobs() the place of a job.
struct Slice {
  std::size_t limit = 50, offset = 0;
  bool by_page = false;
  std::optional<std::pair<std::uint64_t, std::string>> behind = {};
  static Slice of(const Request& request, std::size_t limit = 50, std::size_t most = 1000);
  static Slice of_jobs(const Request& request);

  /// `more` is an object that the pagination has beside its own.
  template <class Items, class Print>
  std::string list(const Names& names, const Items& items, Print print,
                   std::string_view more = "{}") const {
    return "{" + named(names, some_texts(items, offset, limit, print)) +
           ",\"total\":" + std::to_string(items.size()) +
           ",\"pagination\":" + joined(text(items.size()), more) + "}";
  }
  /// The same of a page of jobs that the segment has picked.
  template <class Print>
  std::string list(const Names& names, const JobPage& jobs, Print print) const {
    return "{" + named(names, joined_texts(jobs.jobs, print)) +
           ",\"total\":" + std::to_string(jobs.total) + ",\"pagination\":" + text_of(jobs) + "}";
  }
  std::string text(std::size_t total) const;

 private:
  static Slice without_cursor(const Request& request, std::size_t limit, std::size_t most);
  std::string text_of(const JobPage& jobs) const;
  std::string text(std::size_t total, const std::string& next_cursor) const;
};

}  // namespace ojs_shm::gateway
