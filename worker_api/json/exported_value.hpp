// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <spdlog/fmt/fmt.h>

#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

// Values of members of an export's lines.

namespace ojs_shm::internal {

inline void take_text(std::string& to, const json::Member& member, json::Complaint& complaint) {
  to = json::text(member.name, member.value, complaint).value_or("");
}

inline void take_priority(std::string& to, const json::Member& member, json::Complaint& complaint) {
  if (json::integer_of(member.value))
    to = json::compact(member.value);
  else if (const auto name = json::string_of(member.value))
    to = *name;
  else
    complaint.wrong_kind(member.name, "a number or a name", member.value);
}

template <class Number>
void take_count(Number& to, const json::Member& member, json::Complaint& complaint) {
  const auto number = json::integer_of(member.value);
  constexpr auto kMost = static_cast<std::int64_t>(std::min<std::uint64_t>(
      std::numeric_limits<Number>::max(), std::numeric_limits<std::int64_t>::max() - 1));
  if (!number || *number < 0 || *number > kMost)
    return complaint.wrong_kind(member.name, fmt::format("an integer from 0 to {}", kMost),
                                member.value);
  to = static_cast<Number>(*number);
}

inline void take_flag(bool& to, const json::Member& member, json::Complaint& complaint) {
  to = json::boolean(member.name, member.value, complaint).value_or(false);
}

inline void take_time(std::uint64_t& to, const json::Member& member, json::Complaint& complaint) {
  const ParsedMs parsed =
      parse_timestamp(json::text(member.name, member.value, complaint).value_or(""));
  if (!parsed) return complaint.about(member.name, text_of(parsed.fault));
  to = parsed.ms < 1 ? 1 : static_cast<std::uint64_t>(parsed.ms);
}

}  // namespace ojs_shm::internal
