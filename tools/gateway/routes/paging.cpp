// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/routes/paging.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "tools/gateway/routes/fault.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::size_t kLastOffset = 100'000'000;

}  // namespace

std::size_t number_asked(const Request& request, const std::string& name, std::size_t otherwise,
                         std::size_t least, std::size_t most) {
  const std::string* text = request.asked(name);
  if (text == nullptr || text->empty()) return otherwise;
  std::size_t number = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), number);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size() || number < least ||
      number > most)
    throw invalid_request(fmt::format("{} must be a number from {} to {}", name, least, most),
                          name);
  return number;
}

std::vector<std::string> texts_asked(const Request& request, const std::string& name) {
  std::vector<std::string> texts;
  const std::string* given = request.asked(name);
  std::string_view rest = given == nullptr ? std::string_view() : std::string_view(*given);
  while (!rest.empty()) {
    const std::string_view text = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (!text.empty()) texts.emplace_back(text);
  }
  return texts;
}

std::uint64_t time_of(std::uint64_t now_ms, const std::string& text, std::string_view field) {
  const ParsedMs parsed = parse_time(text, static_cast<std::int64_t>(now_ms));
  if (!parsed || parsed.ms < 0)
    throw invalid_request(std::string(field) + " must be a time such as 2026-01-27T12:00:00Z",
                          field);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(parsed.ms));
}

std::string named(const Names& names, std::string_view texts) {
  return joined_texts(
      names, [&](std::string_view name) { return quoted(name) + ":[" + std::string(texts) + "]"; });
}

bool Page::is_asked(const Request& request) {
  return request.asked("page") != nullptr || request.asked("per_page") != nullptr;
}

Page Page::of(const Request& request, std::size_t otherwise, std::size_t most) {
  const std::size_t limit = number_asked(request, "limit", otherwise, 1, most);
  return {number_asked(request, "page", 1, 1, 1'000'000),
          number_asked(request, "per_page", limit, 1, 100)};
}

std::string Page::text(std::size_t total, bool has_more) const {
  return object([&](json::ObjectWriter& writer) {
    writer.number("total", static_cast<std::int64_t>(total));
    writer.number("page", static_cast<std::int64_t>(page));
    writer.number("per_page", static_cast<std::int64_t>(per_page));
    writer.boolean("has_more", has_more);
  });
}

std::string cursor_of(const JobInfo& job) {
  return std::to_string(job.created_at_ms) + "." + job.id;
}

std::pair<std::uint64_t, std::string> place_of(const std::string& cursor) {
  const std::size_t dot = cursor.find('.');
  std::uint64_t ms = 0;
  const auto read =
      std::from_chars(cursor.data(), cursor.data() + std::min(dot, cursor.size()), ms);
  if (dot == std::string::npos || read.ec != std::errc())
    throw invalid_request("cursor must be a next_cursor that a list has given", "cursor");
  return {ms, cursor.substr(dot + 1)};
}

State state_named(const std::string& name) {
  for (unsigned state = 0; state < 8; ++state)
    if (state_name(static_cast<State>(state)) == name) return static_cast<State>(state);
  throw invalid_request("'" + name.substr(0, 64) + "' is not a state of a job", "state");
}

JobOrder order_asked(const Request& request) {
  const std::string* sort = request.asked("sort");
  if (sort == nullptr || *sort == "created_at") return JobOrder::kCreated;
  if (*sort == "scheduled_at") return JobOrder::kScheduled;
  if (*sort == "priority") return JobOrder::kPriority;
  throw invalid_request("sort must be created_at, scheduled_at or priority", "sort");
}

bool falls_asked(const Request& request) {
  const std::string* order = request.asked("order");
  if (order != nullptr && *order != "asc" && *order != "desc")
    throw invalid_request("order must be asc or desc", "order");
  return order == nullptr || *order == "desc";
}

Slice Slice::without_cursor(const Request& request, std::size_t limit, std::size_t most) {
  const bool has_place = request.asked("cursor") != nullptr || request.asked("offset") != nullptr;
  if (has_place && request.asked("page") != nullptr)
    throw invalid_request("a list has either a page, or a cursor or an offset", "page");
  if (has_place) limit = number_asked(request, "per_page", limit, 1, most);
  if (!has_place && Page::is_asked(request)) {
    const Page page = Page::of(request, Page().per_page, most);
    return {.limit = page.per_page, .offset = page.begin(), .by_page = true};
  }
  return {number_asked(request, "limit", limit, 1, most),
          number_asked(request, "offset", 0, 0, kLastOffset)};
}

Slice Slice::of(const Request& request, std::size_t limit, std::size_t most) {
  Slice slice = without_cursor(request, limit, most);
  if (request.asked("cursor") != nullptr)
    slice.offset = number_asked(request, "cursor", 0, 0, kLastOffset);
  return slice;
}

Slice Slice::of_jobs(const Request& request) {
  Slice slice = without_cursor(request, 50, 1000);
  const std::string* cursor = request.asked("cursor");
  if (cursor != nullptr && !cursor->empty()) slice.behind = place_of(*cursor);
  return slice;
}

std::string Slice::text(std::size_t total, const std::string& next_cursor) const {
  return object([&](json::ObjectWriter& writer) {
    writer.number("total", static_cast<std::int64_t>(total));
    writer.number("limit", static_cast<std::int64_t>(limit));
    writer.number("offset", static_cast<std::int64_t>(offset));
    if (by_page) writer.number("page", static_cast<std::int64_t>(offset / limit + 1));
    if (by_page) writer.number("per_page", static_cast<std::int64_t>(limit));
    writer.boolean("has_more", !next_cursor.empty());
    if (!next_cursor.empty()) writer.text("next_cursor", next_cursor);
  });
}

std::string Slice::text(std::size_t total) const {
  return text(total, offset + limit < total ? std::to_string(offset + limit) : "");
}

std::string Slice::text_of(const JobPage& jobs) const {
  return text(jobs.total, jobs.more && !jobs.jobs.empty() ? cursor_of(jobs.jobs.back()) : "");
}

}  // namespace ojs_shm::gateway
