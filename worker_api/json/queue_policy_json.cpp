// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/queue_policy.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm {
namespace {

using json::Complaint;
using json::Member;

/// More than may be set, and no overflow as ms.
constexpr std::int64_t kManySeconds = 1'000'000'000'000;

class SettingsReader {
 public:
  Result<QueueSettings> read(std::string_view object) {
    for (const Member& member : json::members_of(object)) {
      if (member.name == "paused")
        settings_.paused = json::boolean("paused", member.value, complaint_);
      else if (member.name == "backpressure")
        each_of("backpressure", member.value, &SettingsReader::read_bound);
      else if (member.name == "aging")
        read_aging_or_default(member);
      else if (member.name == "level_weights")
        settings_.level_weights.emplace(),
            each_of("level_weights", member.value, &SettingsReader::read_weight);
      else if (member.name == "shards")
        read_shards(member);
      else if (member.name == "tenant_fairness")
        settings_.tenant_fairness.emplace(),
            each_of("tenant_fairness", member.value, &SettingsReader::read_fairness);
      else if (member.name == "retention")
        each_of("retention", member.value, &SettingsReader::read_retention);
      else
        complaint_.about(
            member.name,
            "is not a setting of a queue; there are paused, backpressure, aging, level_weights, "
            "shards, tenant_fairness, retention");
      if (complaint_.raised()) return complaint_.error();
    }
    return settings_;
  }

 private:
  void each_of(std::string_view name, std::string_view value,
               void (SettingsReader::*read_one)(const Member&)) {
    if (json::kind_of(value) != json::Kind::kObject)
      return complaint_.wrong_kind(name, "an object", value);
    for (const Member& member : json::members_of(value))
      if (!complaint_.raised()) (this->*read_one)(member);
  }
  std::optional<std::int64_t> integer(std::string_view name, std::string_view value) {
    const auto number = json::integer_of(value);
    if (!number) complaint_.wrong_kind(name, "an integer", value);
    return number;
  }
  std::optional<std::uint64_t> amount(std::string_view name, std::string_view value) {
    const auto number = integer(name, value);
    if (number && *number < 0) complaint_.about(name, "must not be negative");
    return number ? std::optional(static_cast<std::uint64_t>(std::max<std::int64_t>(*number, 0)))
                  : std::nullopt;
  }
  void read_bound(const Member& member) {
    if (member.name == "max_depth")
      settings_.max_depth = amount("backpressure.max_depth", member.value);
    else if (member.name == "max_size_bytes")
      settings_.max_size_bytes = amount("backpressure.max_size_bytes", member.value);
    else if (member.name == "strategy")
      settings_.strategy =
          named(member, &strategy_by_name, "must be \"reject\", \"block\" or \"drop_oldest\"");
    else if (member.name == "drop")
      settings_.drop =
          named(member, &drop_order_by_name, "must be \"oldest\" or \"lowest_priority\"");
    else if (member.name == "warning_threshold")
      settings_.warning_threshold = share(member);
    else if (member.name == "clear_threshold")
      settings_.clear_threshold = share(member);
    else if (member.name == "tenant_max_depth")
      settings_.tenant_max_depth = amount("backpressure.tenant_max_depth", member.value);
    else if (member.name == "tenant_max_size_bytes")
      settings_.tenant_max_size_bytes = amount("backpressure.tenant_max_size_bytes", member.value);
    else if (member.name == "tenant_bounds")
      settings_.tenant_bounds.emplace(), read_tenant_bounds(member);
    else
      complaint_.about(
          "backpressure." + member.name,
          "is unknown; there are max_depth, max_size_bytes, strategy, warning_threshold, "
          "clear_threshold, drop, tenant_max_depth, tenant_max_size_bytes, tenant_bounds");
  }
  void read_tenant_bounds(const Member& tenants) {
    const std::string path = "backpressure.tenant_bounds";
    if (json::kind_of(tenants.value) != json::Kind::kObject)
      return complaint_.wrong_kind(path, "an object", tenants.value);
    for (const Member& tenant : json::members_of(tenants.value)) {
      TenantBound& bound = settings_.tenant_bounds->emplace_back();
      bound.tenant = tenant.name;
      const std::string its = path + "." + tenant.name;
      if (json::kind_of(tenant.value) != json::Kind::kObject)
        return complaint_.wrong_kind(its, "an object", tenant.value);
      for (const Member& member : json::members_of(tenant.value))
        if (member.name == "max_depth")
          bound.max_depth = amount(its + ".max_depth", member.value);
        else if (member.name == "max_size_bytes")
          bound.max_size_bytes = amount(its + ".max_size_bytes", member.value);
        else
          return complaint_.about(its + "." + member.name,
                                  "is unknown; there are max_depth, max_size_bytes");
    }
  }
  template <class Value>
  std::optional<Value> named(const Member& member,
                             std::optional<Value> (*by_name)(std::string_view) noexcept,
                             const char* names) {
    const auto value = by_name(json::string_of(member.value).value_or(""));
    if (!value) complaint_.about("backpressure." + member.name, names);
    return value;
  }
  std::optional<double> share(const Member& member) {
    const auto number = json::number_of(member.value);
    if (!number || !(*number >= 0 && *number <= 1))
      complaint_.about("backpressure." + member.name, "must be a number from 0 to 1");
    return number;
  }
  void read_shards(const Member& member) {
    const auto shards = json::integer_of(member.value);
    if (!shards || *shards < 1 || *shards > engine::kParts)
      return complaint_.wrong_kind(
          "shards", "an integer from 1 to " + std::to_string(engine::kParts), member.value);
    settings_.shards = static_cast<std::uint32_t>(*shards);
  }
  void read_aging_or_default(const Member& member) {
    settings_.aging.emplace();
    if (json::kind_of(member.value) != json::Kind::kString)
      return each_of("aging", member.value, &SettingsReader::read_aging);
    if (json::string_of(member.value) != "default")
      return complaint_.wrong_kind("aging", "an object or \"default\"", member.value);
    settings_.aging->inherit = true;
  }
  void read_aging(const Member& member) {
    AgingSettings& aging = *settings_.aging;
    if (member.name == "enabled") {
      aging.enabled = json::boolean("aging.enabled", member.value, complaint_).value_or(true);
    } else if (member.name == "preset") {
      aging.preset = json::text("aging.preset", member.value, complaint_).value_or("");
    } else if (member.name == "interval") {
      aging.interval_ms = json::seconds_or_duration("aging.interval", member.value, complaint_);
    } else if (member.name == "rate") {
      aging.rate =
          json::whole_number("aging.rate", member.value, engine::Aging::Rate::kMax, complaint_);
    } else if (member.name == "cap" || member.name == "floor") {
      if (aging.limit)
        return complaint_.about("aging.cap", "and aging.floor are one limit: give one of them");
      aging.limit = integer("aging." + member.name, member.value);
    } else {
      complaint_.about("aging." + member.name,
                       "is unknown; there are enabled, preset, interval, rate, cap, floor");
    }
  }
  void read_fairness(const Member& member) {
    TenantFairness& fairness = *settings_.tenant_fairness;
    const std::string path = "tenant_fairness." + member.name;
    if (member.name == "enabled") {
      fairness.enabled = json::boolean(path, member.value, complaint_).value_or(true);
    } else if (member.name == "strategy") {
      if (json::string_of(member.value).value_or("") != "fair-share")
        complaint_.about(path, "must be \"fair-share\", the only one there is");
    } else if (member.name == "scope") {
      const std::string scope = json::string_of(member.value).value_or("");
      fairness.across = scope == "across";
      if (scope != "across" && scope != "within")
        complaint_.about(path, "must be \"within\" (a level) or \"across\" (all levels)");
    } else if (member.name == "default_weight") {
      fairness.default_weight =
          json::whole_number(path, member.value, 1'000'000, complaint_).value_or(1);
    } else if (member.name == "weights") {
      if (json::kind_of(member.value) != json::Kind::kObject)
        return complaint_.wrong_kind(path, "an object", member.value);
      for (const Member& weight : json::members_of(member.value))
        fairness.weights.emplace_back(
            weight.name,
            json::whole_number(path + "." + weight.name, weight.value, 1'000'000, complaint_)
                .value_or(1));
    } else {
      complaint_.about(path,
                       "is unknown; there are enabled, strategy, scope, default_weight, weights");
    }
  }
  void read_retention(const Member& member) {
    const std::string path = "retention." + member.name;
    std::optional<std::uint64_t>* kept =
        member.name == "completed"   ? &settings_.retention.completed_ms
        : member.name == "discarded" ? &settings_.retention.discarded_ms
        : member.name == "cancelled" ? &settings_.retention.cancelled_ms
                                     : nullptr;
    if (kept == nullptr)
      return complaint_.about(path, "is unknown; there are completed, discarded, cancelled");
    const bool none = json::kind_of(member.value) == json::Kind::kNull;
    const auto seconds = json::integer_of(none ? "0" : member.value);
    const ParsedMs written = parse_duration(json::string_of(member.value).value_or(""));
    const bool known = seconds ? *seconds >= 0 && *seconds < kManySeconds : bool(written);
    if (!known)
      return complaint_.wrong_kind(path, "a duration such as \"P7D\", seconds, or null",
                                   member.value);
    *kept = static_cast<std::uint64_t>(seconds ? *seconds * 1000 : written.ms);
  }
  void read_weight(const Member& member) {
    const auto weight = json::integer_of(member.value);
    if (!weight || *weight < (member.name == "*" ? 0 : 1) ||
        *weight > std::numeric_limits<std::uint32_t>::max())
      return complaint_.about(
          "level_weights." + member.name,
          fmt::format("must be an integer of at least 1 (of '*', the levels that are not listed, "
                      "at least 0); a cycle has at most {} turns",
                      engine::Turn::kMostTurns));
    settings_.level_weights->push_back({member.name, static_cast<std::uint32_t>(*weight)});
  }

  QueueSettings settings_;
  Complaint complaint_;
};

}  // namespace

Result<QueueSettings> parse_queue_settings(std::string_view text) {
  if (Status checked = json::check(text); !checked) return checked.error();
  if (json::kind_of(json::trim(text)) != json::Kind::kObject)
    return Error{Code::kInvalid, "the settings of a queue must be a JSON object"}.about("settings");
  return SettingsReader().read(json::trim(text));
}

namespace internal {

void print_tenant_bounds(json::ObjectWriter& writer, const QueueInfo& queue) {
  writer.number("tenant_max_depth", static_cast<std::int64_t>(queue.tenant_max_depth));
  writer.number("tenant_max_size_bytes", static_cast<std::int64_t>(queue.tenant_max_size_bytes));
  json::ObjectWriter tenants(writer.open("tenant_bounds"));
  for (const TenantBound& each : queue.tenant_bounds) {
    json::ObjectWriter bound(tenants.open(each.tenant));
    if (each.max_depth) bound.number("max_depth", static_cast<std::int64_t>(*each.max_depth));
    if (each.max_size_bytes)
      bound.number("max_size_bytes", static_cast<std::int64_t>(*each.max_size_bytes));
    bound.close();
  }
  tenants.close();
}

std::string print_aging(const AgingSettings& settings, bool lower_first) {
  std::string out;
  json::ObjectWriter aging(out);
  aging.boolean("enabled", settings.enabled);
  if (!settings.preset.empty()) aging.text("preset", settings.preset);
  if (settings.interval_ms) aging.text("interval", print_duration(*settings.interval_ms));
  if (settings.rate) aging.number("rate", std::int64_t{*settings.rate});
  if (settings.limit) aging.number(lower_first ? "floor" : "cap", *settings.limit);
  aging.close();
  return out;
}

}  // namespace internal

std::string print_queue_policy(const QueueInfo& queue) {
  std::string out;
  json::ObjectWriter writer(out);
  writer.value("aging", internal::print_aging(queue.aging, queue.lower_first));
  json::ObjectWriter weights(writer.open("level_weights"));
  for (const LevelWeight& each : queue.level_weights)
    weights.number(each.level, std::int64_t{each.weight});
  weights.close();
  writer.number("shards", std::int64_t{queue.shards});
  json::ObjectWriter fairness(writer.open("tenant_fairness"));
  fairness.boolean("enabled", queue.tenant_fairness.enabled);
  fairness.text("strategy", "fair-share");
  fairness.text("scope", queue.tenant_fairness.across ? "across" : "within");
  fairness.number("default_weight", std::int64_t{queue.tenant_fairness.default_weight});
  json::ObjectWriter shares(fairness.open("weights"));
  for (const auto& [tenant, weight] : queue.tenant_fairness.weights)
    shares.number(tenant, std::int64_t{weight});
  shares.close();
  fairness.close();
  json::ObjectWriter backpressure(writer.open("backpressure"));
  backpressure.number("max_depth", static_cast<std::int64_t>(queue.max_depth));
  backpressure.number("max_size_bytes", static_cast<std::int64_t>(queue.max_size_bytes));
  backpressure.text("strategy", strategy_name(queue.strategy));
  backpressure.number("warning_threshold", queue.warning_threshold);
  backpressure.number("clear_threshold", queue.clear_threshold);
  backpressure.text("drop", drop_order_name(queue.drop));
  internal::print_tenant_bounds(backpressure, queue);
  backpressure.close();
  json::ObjectWriter retention(writer.open("retention"));
  for (const auto& [state, kept] : {std::pair("completed", queue.retention.completed_ms),
                                    std::pair("discarded", queue.retention.discarded_ms),
                                    std::pair("cancelled", queue.retention.cancelled_ms)})
    if (kept) retention.text(state, print_duration(*kept));
  retention.close();
  writer.close();
  return out;
}

}  // namespace ojs_shm
