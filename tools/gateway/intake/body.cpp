// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/body.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "tools/gateway/routes/fault.hpp"
#include "tools/shell/known_id.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {

Body::Body(const Request& request) {
  const std::string_view text = json::trim(request.body);
  if (text.empty() || text == "[]") return;  // PHP's object without members
  object_ = text;
  if (Status checked = json::check(text); !checked) throw fault_of(checked.error());
  if (json::kind_of(text) != json::Kind::kObject)
    throw invalid_request("the body must be a JSON object");
  members_ = json::members_of(text);
  std::vector<const json::Member*> by_name;
  for (const json::Member& member : members_) by_name.push_back(&member);
  std::ranges::stable_sort(by_name, {}, &json::Member::name);
  for (std::size_t i = 1; i < by_name.size(); ++i)
    if (by_name[i]->name == by_name[i - 1]->name && by_name[i]->value != by_name[i - 1]->value)
      throw invalid_request(
          fmt::format("{} is given twice, with different values", by_name[i]->name.substr(0, 64)),
          by_name[i]->name.substr(0, 64));
}

Body::Body(std::string_view object, std::string where)
    : where_(std::move(where)), members_(json::members_of(object)) {}

void Body::wrong_kind(std::string_view name, std::string_view expected) const {
  throw invalid_request(fmt::format("{}{} must be {}", where_, name, expected),
                        fmt::format("{}{}", where_, name));
}

std::optional<std::string_view> Body::raw(std::string_view name) const {
  for (const json::Member& member : members_)
    if (member.name == name)
      return json::kind_of(member.value) == json::Kind::kNull ? std::nullopt
                                                              : std::optional(member.value);
  return std::nullopt;
}

std::optional<std::string> Body::text(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  auto text = json::string_of(*value);
  if (!text) wrong_kind(name, "a text");
  return text;
}

std::string Body::required_text(std::string_view name) const {
  auto value = text(name);
  if (!value || value->empty())
    throw invalid_request(fmt::format("{}{} is missing", where_, name),
                          fmt::format("{}{}", where_, name));
  return std::move(*value);
}

std::optional<bool> Body::flag(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  const auto flag = json::bool_of(*value);
  if (!flag) wrong_kind(name, "true or false");
  return flag;
}

std::optional<double> Body::number(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  const auto number = json::number_of(*value);
  if (!number) wrong_kind(name, "a number");
  return number;
}

std::optional<std::int64_t> Body::integer(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  const auto number = json::integer_of(*value);
  if (!number) wrong_kind(name, "an integer");
  if (*number == std::numeric_limits<std::int64_t>::max() ||
      *number == std::numeric_limits<std::int64_t>::min())
    throw invalid_request(
        fmt::format("{}{}: {} is out of range", where_, name, value->substr(0, 64)),
        fmt::format("{}{}", where_, name));
  return number;
}

std::optional<std::uint32_t> Body::whole(std::string_view name, std::uint32_t least,
                                         std::uint32_t most) const {
  const auto value = integer(name);
  if (!value) return std::nullopt;
  if (*value < least || *value > most)
    wrong_kind(name, fmt::format("a number from {} to {}", least, most));
  return static_cast<std::uint32_t>(*value);
}

std::optional<std::uint32_t> Body::milliseconds(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  if (const auto text = json::string_of(*value)) {
    const ParsedMs parsed = parse_duration(*text);
    if (!parsed || parsed.ms > std::numeric_limits<std::uint32_t>::max())
      throw no_duration(fmt::format("{}{}", where_, name),
                        parsed ? TimeFault::kTooLong : parsed.fault, "a duration such as PT30S");
    return static_cast<std::uint32_t>(parsed.ms);
  }
  return whole(name, 0, std::numeric_limits<std::uint32_t>::max());
}

std::optional<std::uint64_t> Body::moment(std::string_view name) const {
  const auto given = text(name);
  if (!given) return std::nullopt;
  const ParsedMs parsed = parse_time(*given, 0);
  // A sign would be a time from now on.
  if (!parsed || parsed.ms < 0 || given->starts_with('+'))
    wrong_kind(name, "a time such as 2026-01-27T12:00:00Z");
  return static_cast<std::uint64_t>(parsed.ms);
}

std::optional<std::vector<std::string_view>> Body::elements(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  if (json::kind_of(*value) != json::Kind::kArray) wrong_kind(name, "an array");
  return json::elements_of(*value);
}

std::optional<std::vector<std::string>> Body::texts(std::string_view name) const {
  const auto values = elements(name);
  if (!values) return std::nullopt;
  std::vector<std::string> texts;
  for (const std::string_view value : *values) {
    auto text = json::string_of(value);
    if (!text) wrong_kind(name, "an array of texts");
    texts.push_back(std::move(*text));
  }
  return texts;
}

std::string Body::required_id(std::string_view name) const {
  return shell::known_id(required_text(name));
}

std::optional<std::vector<std::string>> Body::ids(std::string_view name) const {
  auto ids = texts(name);
  if (ids)
    for (std::string& id : *ids) id = shell::known_id(std::move(id));
  return ids;
}

std::optional<Body> Body::object(std::string_view name) const {
  const auto value = raw(name);
  if (!value) return std::nullopt;
  if (json::kind_of(*value) != json::Kind::kObject) wrong_kind(name, "an object");
  return Body(*value, fmt::format("{}{}.", where_, name));
}

void Body::choose_by(std::initializer_list<std::string_view> known) const {
  constexpr std::string_view kNothing[] = {"null", "\"\"", "{}", "[]"};
  for (const json::Member& member : members_)
    if (std::ranges::find(known, member.name) == known.end() ||
        std::ranges::find(kNothing, json::compact(member.value)) != std::end(kNothing))
      throw invalid_request(where_ + member.name.substr(0, 64) + " chooses no jobs",
                            where_ + member.name);
}

}  // namespace ojs_shm::gateway
