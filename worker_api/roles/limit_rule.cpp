// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/limit_rule.hpp"

#include <algorithm>

#include "engine/rules/names.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {

namespace internal {
namespace {

using json::Complaint;
using json::Member;

Error refused(std::string_view member, std::string message, std::uint64_t bound = 0) {
  return Error{Code::kInvalid, std::move(message)}.about(std::string(member)).at_most(bound);
}

constexpr bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool well_formed(std::string_view key) {
  return !key.empty() && letter_or_digit(key.front()) && std::ranges::all_of(key, [](char c) {
    return letter_or_digit(c) || c == '.' || c == '_' || c == ':' || c == '-';
  });
}

/// "second", "minute", "hour" and "day" beside ISO durations.
std::optional<std::uint32_t> period(std::string_view member, std::string_view value,
                                    Complaint& complaint) {
  const auto word = json::string_of(value).value_or("");
  if (word == "second") return 1000;
  if (word == "minute") return 60'000;
  if (word == "hour") return 3'600'000;
  if (word == "day") return 86'400'000;
  return json::duration(member, value, complaint);
}

/// `{"limit", "period"}` and one member more.
void read_pace(std::string_view name, std::string_view value, std::string_view more,
               std::uint32_t& most, std::uint32_t& period_ms, std::string& extra,
               Complaint& complaint) {
  if (json::kind_of(value) == json::Kind::kNull) return;
  if (json::kind_of(value) != json::Kind::kObject)
    return complaint.wrong_kind(name, "an object", value);
  std::optional<std::uint32_t> limit, length;
  for (const Member& member : json::members_of(value)) {
    const std::string path = std::string(name) + "." + member.name;
    if (member.name == "limit")
      limit = json::whole_number(path, member.value, engine::kMostInFixedWindow, complaint);
    else if (member.name == "period")
      length = period(path, member.value, complaint);
    else if (member.name == more)
      extra = member.value;
    else
      complaint.ignore(path);
    if (complaint.raised()) return;
  }
  if (!limit || *limit == 0)
    return complaint.about(std::string(name) + ".limit", "must be at least 1");
  if (!length || *length == 0)
    return complaint.about(std::string(name) + ".period", "must be longer than nothing");
  most = *limit;
  period_ms = *length;
}

void read_member(JobLimit& read, const Member& member, std::optional<std::uint32_t>& rate_period,
                 Complaint& complaint) {
  RateLimit& limit = read.limit;
  const bool null = json::kind_of(member.value) == json::Kind::kNull;
  std::string extra;
  if (member.name == "key") {
    read.key = json::text("rate_limit.key", member.value, complaint).value_or("");
  } else if (member.name == "concurrency") {
    if (!null)
      limit.concurrency = json::whole_number("rate_limit.concurrency", member.value,
                                             engine::kMostPermits, complaint);
  } else if (member.name == "rate" && json::kind_of(member.value) == json::Kind::kNumber) {
    limit.rate =
        json::whole_number("rate_limit.rate", member.value, engine::kMostInFixedWindow, complaint)
            .value_or(0);
  } else if (member.name == "period") {
    rate_period = period("rate_limit.period", member.value, complaint);
  } else if (member.name == "max_per_second") {
    limit.rate = json::whole_number("rate_limit.max_per_second", member.value,
                                    engine::kMostInFixedWindow, complaint)
                     .value_or(0);
    limit.rate_period_ms = 1000;
  } else if (member.name == "rate") {
    read_pace("rate_limit.rate", member.value, "window", limit.rate, limit.rate_period_ms, extra,
              complaint);
    const auto window =
        extra.empty() ? std::optional<std::string>("fixed") : json::string_of(extra);
    if (!complaint.raised() && window != "fixed" && window != "sliding")
      complaint.wrong_kind("rate_limit.rate.window", R"("fixed" or "sliding")", extra);
    limit.sliding = window == "sliding";
  } else if (member.name == "throttle") {
    read_pace("rate_limit.throttle", member.value, "burst", limit.throttle,
              limit.throttle_period_ms, extra, complaint);
    if (!complaint.raised() && !extra.empty())
      limit.burst =
          json::whole_number("rate_limit.throttle.burst", extra, engine::kMostThrottle, complaint)
              .value_or(1);
  } else if (member.name == "on_limit") {
    if (null) return;
    const auto choice = json::string_of(member.value);
    if (choice == "wait")
      limit.on_limit = OnLimit::kWait;
    else if (choice == "reschedule")
      limit.on_limit = OnLimit::kReschedule;
    else if (choice == "drop")
      limit.on_limit = OnLimit::kDrop;
    else
      complaint.wrong_kind("rate_limit.on_limit", R"("wait", "reschedule" or "drop")",
                           member.value);
  } else {
    complaint.ignore("rate_limit." + member.name);
  }
}

}  // namespace

Status check_limit(std::string_view key, const RateLimit& limit, bool by_operator) {
  if (key.size() > engine::kMaxLimitName)
    return refused("rate_limit.key", "rate_limit.key is longer than the 256 bytes it may be",
                   engine::kMaxLimitName);
  const bool tenant = by_operator && key.starts_with(engine::kTenantLimit) &&
                      key.size() > engine::kTenantLimit.size();
  if (!well_formed(key) && !tenant)
    return refused("rate_limit.key",
                   "rate_limit.key '" + std::string(key.substr(0, 40)) +
                       "' must be letters, digits and . _ : -, with a letter or a digit in front");
  if (by_operator && key.starts_with(engine::kQueueLimit) &&
      !engine::valid_queue_name(key.substr(engine::kQueueLimit.size())))
    return refused("rate_limit.key", "'" + std::string(key) + "' names no possible queue");
  if (limit.concurrency.value_or(0) > engine::kMostPermits)
    return refused("rate_limit.concurrency", "rate_limit.concurrency is at most 8192",
                   engine::kMostPermits);
  if (limit.rate != 0 && limit.rate_period_ms == 0)
    return refused("rate_limit.rate.period", "rate_limit.rate.period is missing");
  if (limit.rate > (limit.sliding ? engine::kMostInSlidingWindow : engine::kMostInFixedWindow))
    return refused(
        "rate_limit.rate.limit",
        limit.sliding
            ? "rate_limit.rate.limit of a sliding window is at most 8192; a fixed one may have more"
            : "rate_limit.rate.limit is at most 268435455",
        limit.sliding ? engine::kMostInSlidingWindow : engine::kMostInFixedWindow);
  if (limit.throttle > engine::kMostThrottle || limit.burst > engine::kMostThrottle)
    return refused("rate_limit.throttle.limit",
                   "rate_limit.throttle is at most 65535 in a period; take a shorter period",
                   engine::kMostThrottle);
  if (limit.throttle != 0 && limit.throttle_period_ms == 0)
    return refused("rate_limit.throttle.period", "rate_limit.throttle.period is missing");
  return {};
}

engine::LimitSettings settings_of(const RateLimit& limit) {
  engine::LimitSettings settings;
  settings.concurrency = limit.concurrency.value_or(engine::PermitSet::kNone);
  settings.rate = limit.rate;
  settings.rate_period_ms = limit.rate == 0 ? 0 : limit.rate_period_ms;
  settings.sliding = limit.rate != 0 && limit.sliding;
  settings.throttle = limit.throttle;
  settings.throttle_period_ms = limit.throttle == 0 ? 0 : limit.throttle_period_ms;
  settings.burst = limit.throttle == 0 ? 1 : std::max(limit.burst, 1U);
  settings.on_limit = static_cast<engine::OnLimit>(limit.on_limit);
  return settings;
}

RateLimit limit_of(const engine::LimitSettings& settings) {
  RateLimit limit;
  if (settings.concurrency != engine::PermitSet::kNone) limit.concurrency = settings.concurrency;
  limit.rate = settings.rate;
  limit.rate_period_ms = settings.rate_period_ms;
  limit.sliding = settings.sliding;
  limit.throttle = settings.throttle;
  limit.throttle_period_ms = settings.throttle_period_ms;
  limit.burst = settings.burst;
  limit.on_limit = static_cast<OnLimit>(settings.on_limit);
  return limit;
}

JobLimit read_limit(std::string_view object, std::string_view queue, Complaint& complaint) {
  JobLimit read;
  std::optional<std::uint32_t> rate_period;
  bool per_queue = false;
  for (const Member& member : json::members_of(object)) {
    read_member(read, member, rate_period, complaint);
    per_queue = per_queue || member.name == "max_per_second";
    if (complaint.raised()) return read;
  }
  if (rate_period) read.limit.rate_period_ms = *rate_period;
  if (read.key.empty() && per_queue && !queue.empty())
    read.key = std::string(engine::kQueueLimit) + std::string(queue);
  return read;
}

namespace {

std::string_view member_of(std::string_view object, std::string_view name) {
  if (!json::check(object) || json::kind_of(object) != json::Kind::kObject) return {};
  for (const Member& member : json::members_of(object))
    if (member.name == name) return member.value;
  return {};
}

}  // namespace

std::optional<JobLimit> limit_in(std::string_view extra, std::string_view queue) {
  const std::string_view rule = member_of(extra, "rate_limit");
  if (rule.empty() || json::kind_of(rule) != json::Kind::kObject) return std::nullopt;
  Complaint complaint;
  JobLimit limit = read_limit(rule, queue, complaint);
  if (complaint.raised() || !check_limit(limit.key, limit.limit, false)) return std::nullopt;
  return limit;
}

}  // namespace internal

namespace {

/// The other members of an operator's limit.
std::string without_expiry(std::string_view object, std::uint64_t& expires_at_ms,
                           json::Complaint& complaint) {
  std::string rest;
  json::ObjectWriter writer(rest);
  for (const json::Member& member : json::members_of(object)) {
    if (member.name != "expires_at") {
      writer.value(member.name, member.value);
    } else if (json::kind_of(member.value) != json::Kind::kNull) {
      const ParsedMs parsed =
          parse_timestamp(json::text("expires_at", member.value, complaint).value_or(""));
      if (!parsed) complaint.about("expires_at", text_of(parsed.fault));
      expires_at_ms = parsed.ms < 1 ? 1 : static_cast<std::uint64_t>(parsed.ms);
    }
  }
  writer.close();
  return rest;
}

}  // namespace

Result<JobLimit> parse_limit(std::string_view text, bool key_given) {
  if (Status status = json::check(text); !status) return status.error();
  if (json::kind_of(text) != json::Kind::kObject)
    return Error{Code::kInvalid, "a limit must be a JSON object"}.about("rate_limit");
  json::Complaint complaint;
  std::string limit(text);
  std::uint64_t expires_at_ms = 0;
  if (key_given) limit = without_expiry(text, expires_at_ms, complaint);
  JobLimit read = internal::read_limit(limit, "", complaint);
  read.expires_at_ms = expires_at_ms;
  // Nothing keeps it, so that a slip of the pen would go unseen.
  if (!complaint.ignored().empty())
    complaint.about(complaint.ignored().front(),
                    "is not a setting of a limit; there are key, concurrency, rate (limit, period, "
                    "window), throttle (limit, period, burst), on_limit");
  if (complaint.raised()) return complaint.error();
  if (Status checked = internal::check_limit(key_given ? "any" : read.key, read.limit, false);
      !checked)
    return checked.error();
  return read;
}

namespace {

constexpr std::string_view kOnLimitNames[] = {"wait", "reschedule", "drop"};

}  // namespace

std::string print_limit_settings(const RateLimit& limit) {
  std::string out;
  json::ObjectWriter writer(out);
  if (limit.concurrency) writer.number("concurrency", std::int64_t{*limit.concurrency});
  if (limit.rate != 0) {
    json::ObjectWriter rate(writer.open("rate"));
    rate.number("limit", std::int64_t{limit.rate});
    rate.text("period", print_duration(limit.rate_period_ms));
    if (limit.sliding) rate.text("window", "sliding");
    rate.close();
  }
  if (limit.throttle != 0) {
    json::ObjectWriter throttle(writer.open("throttle"));
    throttle.number("limit", std::int64_t{limit.throttle});
    throttle.text("period", print_duration(limit.throttle_period_ms));
    if (limit.burst != 1) throttle.number("burst", std::int64_t{limit.burst});
    throttle.close();
  }
  if (limit.on_limit != OnLimit::kWait)
    writer.text("on_limit", kOnLimitNames[static_cast<std::size_t>(limit.on_limit)]);
  writer.close();
  return out;
}

std::string print_limit(const LimitInfo& info) {
  std::string out;
  json::ObjectWriter writer(out);
  writer.text("key", info.key);
  const auto inner = [&](std::string_view name, const auto& fill) {
    json::ObjectWriter members(writer.open(name));
    fill(members);
    members.close();
  };
  const RateLimit& limit = info.limit;
  if (limit.concurrency)
    inner("concurrency", [&](json::ObjectWriter& w) {
      w.number("limit", std::int64_t{*limit.concurrency});
      w.number("active", std::int64_t{info.active});
      w.number("available",
               std::int64_t{*limit.concurrency - std::min(*limit.concurrency, info.active)});
    });
  if (limit.rate != 0)
    inner("rate", [&](json::ObjectWriter& w) {
      w.number("limit", std::int64_t{limit.rate});
      w.text("period", print_duration(limit.rate_period_ms));
      w.text("window", limit.sliding ? "sliding" : "fixed");
      w.number("current_count", std::int64_t{info.begun});
    });
  if (limit.throttle != 0)
    inner("throttle", [&](json::ObjectWriter& w) {
      w.number("limit", std::int64_t{limit.throttle});
      w.text("period", print_duration(limit.throttle_period_ms));
      w.number("burst", std::int64_t{limit.burst});
    });
  if (info.next_at_ms != 0) writer.text("next_allowed_at", print_timestamp(info.next_at_ms));
  if (info.closed_until_ms != 0) writer.text("closed_until", print_timestamp(info.closed_until_ms));
  writer.text("on_limit", kOnLimitNames[static_cast<std::size_t>(limit.on_limit)]);
  writer.boolean("override", info.by_operator);
  if (info.expires_at_ms != 0) writer.text("expires_at", print_timestamp(info.expires_at_ms));
  writer.number("active_count", std::int64_t{info.active});
  writer.number("waiting_count", std::int64_t{info.waiting});
  writer.number("exceeded_total", static_cast<std::int64_t>(info.exceeded_total));
  writer.number("released_total", static_cast<std::int64_t>(info.released_total));
  writer.number("dropped_total", static_cast<std::int64_t>(info.dropped_total));
  writer.close();
  return out;
}

}  // namespace ojs_shm
