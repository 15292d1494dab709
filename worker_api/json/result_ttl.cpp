// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/result_ttl.hpp"

#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm {
namespace {

constexpr std::string_view kName = "result_ttl";

/// The member's value; nothing without one.
std::optional<std::string_view> value_in(std::string_view extra) {
  if (extra.find(kName) == std::string_view::npos || !json::check(extra)) return std::nullopt;
  extra = json::trim(extra);
  if (json::kind_of(extra) != json::Kind::kObject) return std::nullopt;
  for (const json::Member& member : json::members_of(extra))
    if (member.name == kName) return member.value;
  return std::nullopt;
}

std::optional<std::int64_t> ttl_of(std::string_view value) {
  const auto seconds = json::integer_of(value);
  return seconds && is_result_ttl(*seconds) ? seconds : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> result_ttl_in(std::string_view extra) {
  const auto value = value_in(extra);
  return value ? ttl_of(*value) : std::nullopt;
}

bool result_ttl_fits(std::string_view extra) {
  const auto value = value_in(extra);
  return !value || ttl_of(*value);
}

std::string with_result_ttl(std::string_view extra, std::int64_t seconds) {
  extra = json::trim(extra);
  if (!extra.empty() && (!json::check(extra) || json::kind_of(extra) != json::Kind::kObject))
    return std::string(extra);
  std::string out;
  json::ObjectWriter writer(out);
  if (!extra.empty())
    for (const json::Member& member : json::members_of(extra))
      if (member.name != kName) writer.value(member.name, member.value);
  writer.number(kName, seconds);
  writer.close();
  return out;
}

}  // namespace ojs_shm
