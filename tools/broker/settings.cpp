// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/settings.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "engine/tables/make.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::broker {
namespace {

using shell::invalid;

/// Puts a parsed value where it belongs.
template <class Value, class Target>
Status put(Result<Value> parsed, Target& target) {
  if (!parsed) return parsed.error();
  if (parsed.value() > std::numeric_limits<Target>::max())
    return invalid(fmt::format("{} is too large: the maximum is {}", parsed.value(),
                               std::numeric_limits<Target>::max()));
  target = static_cast<Target>(parsed.value());
  return {};
}

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t count = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem == std::errc{} && rest == text.data() + text.size()) return count;
  return invalid(fmt::format("\"{}\" is not a count", text));
}

/// What a setting of the segment is when it is given; 0 would mean that it is not.
Result<std::uint64_t> positive(Result<std::uint64_t> parsed, std::uint64_t most) {
  if (parsed && parsed.value() == 0) return invalid("0 is too small: the minimum is 1");
  if (parsed && parsed.value() > most)
    return invalid(fmt::format("{} is too large: the maximum is {}", parsed.value(), most));
  return parsed;
}

Status one_of(std::string_view text, std::initializer_list<std::string_view> allowed,
              std::string& target) {
  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
    return invalid(fmt::format("\"{}\" is none of {}", text, fmt::join(allowed, ", ")));
  }
  target = text;
  return {};
}

Status yes_or_no(std::string_view text, bool& target) {
  std::string chosen;
  const Status known = one_of(text, {"true", "false"}, chosen);
  if (known) target = chosen == "true";
  return known;
}

Status keep_or_remove() { return invalid("keep and remove contradict each other; choose one"); }

constexpr Setting kSettings[] = {
    {"size", "BYTES",
     "Size of the segment, such as 64M; unset: what the rest needs, 60 MiB with all defaults",
     [](Settings& s, std::string_view text) {
       return put(positive(shell::parse_bytes(text), engine::kMostBytes), s.options.size_bytes);
     }},
    {"slots", "N", "Jobs it can hold, finished ones included (102400)",
     [](Settings& s, std::string_view text) {
       return put(positive(parse_count(text), engine::kMostSlots), s.options.slots);
     }},
    {"max_tenants", "N", "Tenants with jobs waiting, each level and queue for itself (1024)",
     [](Settings& s, std::string_view text) {
       return put(positive(parse_count(text), engine::kMostTenants), s.options.max_tenants);
     }},
    {"max_queues", "N", "Queues it can hold (64)",
     [](Settings& s, std::string_view text) {
       return put(positive(parse_count(text), engine::kMostQueues), s.options.max_queues);
     }},
    {"max_body", "BYTES", "Largest args, result or error of a job (1M)",
     [](Settings& s, std::string_view text) {
       return put(positive(shell::parse_bytes(text), engine::kMostBody), s.options.max_body_bytes);
     }},
    {"handles", "N", "Producers, workers and admins at once (120)",
     [](Settings& s, std::string_view text) {
       return put(positive(parse_count(text), engine::kMostHandles), s.options.max_handles);
     }},
    {"max_waiting", "N", "Enqueues that wait for room at once (eight for each handle)",
     [](Settings& s, std::string_view text) {
       return put(positive(parse_count(text), engine::kMostWaiting), s.options.max_waiting);
     }},
    {"convention", "NAME",
     "What a priority number means: ojs, ojs-core or qo (ojs); an existing segment's must match",
     [](Settings& s, std::string_view text) {
       s.convention_given = true;
       return one_of(text, {"ojs", "ojs-core", "qo"}, s.options.convention);
     }},
    {"mode", "OCTAL", "Permission bits of its files, whatever the umask is (0660)",
     [](Settings& s, std::string_view text) {
       s.mode_given = true;
       return put(shell::parse_mode(text), s.options.mode);
     }},
    {"group", "GROUP", "Group of its files (the creator's)",
     [](Settings& s, std::string_view text) {
       s.options.group = text;
       return Status();
     }},
    {"retention", "TIME",
     "Drop finished jobs after this time, such as 1h or PT1H; 0: when their room is needed (0)",
     [](Settings& s, std::string_view text) {
       return put(shell::parse_duration_ms(text), s.options.retention_ms);
     }},
    {"dead_max_age", "TIME",
     "Drop dead letters after this time, such as 180d; 0: at no age (as the segment has it; at "
     "first 180d)",
     [](Settings& s, std::string_view text) {
       return put(shell::parse_duration_ms(text), s.dead.max_age_ms.emplace());
     }},
    {"dead_max_count", "N",
     "Keep so many dead letters, the youngest; 0: all (as the segment has it; at first 10000)",
     [](Settings& s, std::string_view text) {
       return put(parse_count(text), s.dead.max_count.emplace());
     }},
    {"keep", "",
     "Keep the segment when the broker stops, also when no unfinished job, dead letter or cron is "
     "in it",
     [](Settings& s, std::string_view text) {
       const Status known = yes_or_no(text, s.keep);
       return known && s.keep && s.remove ? keep_or_remove() : known;
     }},
    {"remove", "", "Remove the segment when the broker stops, with the jobs that are still in it",
     [](Settings& s, std::string_view text) {
       const Status known = yes_or_no(text, s.remove);
       return known && s.keep && s.remove ? keep_or_remove() : known;
     }},
    {"events", "",
     "Let every handle tell what it does, for `ojs-shm events` (as the segment has it; at first "
     "not)",
     [](Settings& s, std::string_view text) { return yes_or_no(text, s.events.emplace()); }},
    {"strict_envelopes", "",
     "Refuse envelopes with members that mean nothing (as the segment has it; at first not)",
     [](Settings& s, std::string_view text) {
       return yes_or_no(text, s.strict_envelopes.emplace());
     }},
    {"immutable_priorities", "true|false",
     "Jobs keep the priority they were enqueued with (as the segment has it; at first as its "
     "convention has it: true in qo)",
     [](Settings& s, std::string_view text) {
       return yes_or_no(text, s.immutable_priorities.emplace());
     }},
    {"log_level", "LEVEL", "debug, info, warn or error (info)",
     [](Settings& s, std::string_view text) {
       return one_of(text, {"debug", "info", "warn", "error"}, s.log_level);
     }},
};

}  // namespace

std::string Places::of(std::string_view name) const {
  if (const auto found = by_name.find(name); found != by_name.end()) return found->second;
  if (name.ends_with(".limit"))  // the file has other words for it
    for (const char* word : {"cap", "floor"})
      if (const auto found = by_name.find(std::string(name.substr(0, name.size() - 5)) + word);
          found != by_name.end())
        return found->second;
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string() : of(name.substr(0, dot));
}

std::span<const Setting> all_settings() { return kSettings; }

std::string flag_of(const Setting& setting) {
  std::string flag = "--" + std::string(setting.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace ojs_shm::broker
