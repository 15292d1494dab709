// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/routes/paging.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {

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

Page Page::of(const Request& request) {
  return {number_asked(request, "page", 1, 1, 1'000'000),
          number_asked(request, "per_page", 20, 1, 100)};
}

std::string Page::text(std::size_t total) const {
  return object([&](json::ObjectWriter& writer) {
    writer.number("total", static_cast<std::int64_t>(total));
    writer.number("page", static_cast<std::int64_t>(page));
    writer.number("per_page", static_cast<std::int64_t>(per_page));
  });
}

Slice Slice::of(const Request& request, std::size_t limit, std::size_t most) {
  Slice slice{number_asked(request, "limit", limit, 1, most),
              number_asked(request, "offset", 0, 0, 100'000'000)};
  if (request.asked("cursor") != nullptr)
    slice.offset = number_asked(request, "cursor", 0, 0, 100'000'000);
  return slice;
}

std::string Slice::text(std::size_t total) const {
  const bool more = offset + limit < total;
  return object([&](json::ObjectWriter& writer) {
    writer.number("total", static_cast<std::int64_t>(total));
    writer.number("limit", static_cast<std::int64_t>(limit));
    writer.number("offset", static_cast<std::int64_t>(offset));
    writer.boolean("has_more", more);
    if (more) writer.text("next_cursor", std::to_string(offset + limit));
  });
}

}  // namespace ojs_shm::gateway
