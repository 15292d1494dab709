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

namespace internal {
namespace {

constexpr std::uint32_t kMinute = 60'000;
constexpr std::int64_t kCapOfQo = 200;  // of its own convention
constexpr std::int64_t kFarthest = 30'000;

/// A limit may lie beyond the best priority, for ageing may reach further.
Status check_limit_of_age(engine::Convention convention, std::int64_t limit) {
  if (limit > kFarthest || limit < -kFarthest)
    return invalid_setting("aging.limit", "an ageing limit lies between -30000 and 30000",
                           kFarthest);
  const engine::ConventionInfo& known = engine::info(convention);
  if (engine::extended_rank(convention, limit) <= known.max - known.min) return {};
  return invalid_setting(
      "aging.limit",
      fmt::format("the ageing limit {} lies beyond the worst priority of '{}' ({} to {}): no job "
                  "would ever rise",
                  limit, known.name, known.min, known.max));
}

}  // namespace

Result<engine::Aging> read_aging(engine::Convention convention, const AgingSettings& settings) {
  if (settings.inherit) return engine::Aging();
  if (!settings.preset.empty() && settings.preset != "ojs" && settings.preset != "qo")
    return invalid_setting(
        "aging.preset", "there is no ageing preset '" + settings.preset + "'; there are ojs, qo");
  const bool qo =
      settings.preset.empty() ? convention == engine::Convention::kQo : settings.preset == "qo";
  if (settings.interval_ms == 0U)
    return invalid_setting("aging.interval", "the ageing interval must be above 0");
  if (settings.rate.value_or(0) > engine::Aging::Rate::kMax)
    return invalid_setting("aging.rate", "the ageing rate is at most 255 levels in each interval",
                           engine::Aging::Rate::kMax);
  std::optional<std::int64_t> limit = settings.limit;
  if (!limit && qo) limit = limit_of_qo_cap(convention, kCapOfQo);
  if (limit)
    if (Status checked = check_limit_of_age(convention, *limit); !checked) return checked.error();
  const int best =
      limit ? static_cast<int>(engine::extended_rank(convention, *limit)) : engine::Aging::kNoBest;
  return engine::Aging(settings.enabled, qo, settings.interval_ms.value_or(kMinute),
                       static_cast<std::uint8_t>(settings.rate.value_or(1)), best);
}

AgingSettings describe_aging(engine::Convention convention, engine::Aging aging) {
  AgingSettings settings;
  settings.enabled = aging.enabled();
  if (!aging.set()) return settings;
  settings.preset = aging.qo() ? "qo" : "ojs";
  settings.interval_ms = aging.interval_ms();
  settings.rate = aging.rate();
  if (aging.best() != engine::Aging::kNoBest)
    settings.limit = engine::extended_priority(convention, aging.best());
  return settings;
}

Result<std::vector<engine::QueueOrder::LevelWeight>> read_weights(
    engine::Convention convention, const std::vector<LevelWeight>& weights) {
  std::map<std::uint16_t, std::uint32_t> by_level;
  std::uint32_t divisor = 0;
  for (const LevelWeight& each : weights) {
    std::uint16_t level = engine::Turn::kOthers;
    if (each.level != "*") {
      const auto priority = priority_of_text(convention, each.level);
      if (!priority)
        return invalid_setting("level_weights." + each.level,
                               "level " + each.level + ": " + priority.error().message);
      level = *engine::rank_of(convention, priority.value());
    }
    if (each.weight == 0 && level != engine::Turn::kOthers)
      return invalid_setting("level_weights." + each.level,
                             "level " + each.level + ": a weight is at least 1");
    if (!by_level.emplace(level, each.weight).second)
      return invalid_setting("level_weights." + each.level,
                             "level " + each.level + " has two weights");
    divisor = std::gcd(divisor, each.weight);
  }
  std::vector<engine::QueueOrder::LevelWeight> read;
  if (weights.empty()) return read;
  if (divisor == 0)
    return invalid_setting("level_weights", "at least one level must have a weight of its own");
  // Where one turn for all others would make the cycle too long, they get as many as divide the
  // rest.
  std::uint64_t turns = 1;
  for (const auto& [level, weight] : by_level) turns += weight;
  const bool fits = turns <= engine::Turn::kMostTurns;
  if (by_level.emplace(engine::Turn::kOthers, fits ? 1 : divisor).second && fits) divisor = 1;
  std::uint64_t sum = 0;
  for (const auto& [level, weight] : by_level) {
    read.push_back({level, weight});
    sum += weight / divisor;
  }
  if (sum > engine::Turn::kMostTurns)
    return invalid_setting(
        "level_weights",
        fmt::format("the weights, divided by what they have in common, come to {} turns (1 for the "
                    "levels without a weight); the most is {}",
                    sum, engine::Turn::kMostTurns),
        engine::Turn::kMostTurns);
  return read;
}

std::vector<LevelWeight> describe_weights(engine::Convention convention,
                                          const engine::QueueRecord& queue) {
  const engine::Turn cycle(queue.turn.load());
  std::map<std::uint16_t, std::uint32_t> turns;
  if (cycle.length() != 0) turns[engine::Turn::kOthers] = 0;
  for (unsigned at = 0; at < cycle.length(); ++at) ++turns[queue.turn_of(cycle, at)];
  std::vector<LevelWeight> weights;
  for (const auto& [level, weight] : turns)
    weights.push_back(
        {level == engine::Turn::kOthers
             ? "*"
             : std::to_string(engine::priority_of(convention, static_cast<std::uint8_t>(level))),
         weight});
  return weights;
}

Result<std::vector<std::pair<std::string, std::uint32_t>>> read_tenant_weights(
    const TenantFairness& fairness) {
  constexpr std::uint32_t kMost = engine::Fairness::kMostWeight;
  const auto wrong = [](std::uint32_t weight) { return weight == 0 || weight > kMost; };
  if (wrong(fairness.default_weight))
    return invalid_setting("tenant_fairness.default_weight", "a tenant's weight is 1 to 1000",
                           kMost);
  constexpr std::string_view kPrefix = "tenant:";
  std::map<std::string, std::uint32_t> weights;
  for (const auto& [name, weight] : fairness.weights) {
    if (wrong(weight))
      return invalid_setting("tenant_fairness.weights", name + ": a tenant's weight is 1 to 1000",
                             kMost);
    if (name.empty() || name.size() > sizeof engine::TenantRule::name)
      return invalid_setting("tenant_fairness.weights",
                             "a tenant with a weight has a name of 1 to 128 bytes", 128);
    if (!weights.emplace(name, weight).second)
      return invalid_setting("tenant_fairness.weights", "tenant '" + name + "' has two weights");
  }
  for (const auto& [name, weight] : fairness.weights)
    if (name.starts_with(kPrefix) && !weights.emplace(name.substr(kPrefix.size()), weight).second)
      return invalid_setting(
          "tenant_fairness.weights",
          "'" + name + "' and '" + name.substr(kPrefix.size()) + "' are weights of one tenant");
  return std::vector<std::pair<std::string, std::uint32_t>>(weights.begin(), weights.end());
}

/// Calls `visit(name, rule)` for each tenant of the queue that anything is said of.
template <class Visit>
static void each_tenant_rule(const engine::Store& store, std::uint32_t queue, const Visit& visit) {
  for (std::uint32_t i = 0; i < engine::kTenantRules; ++i) {
    const engine::TenantRule& rule = store.tenant_rules[i];
    const std::uint64_t word = rule.queue_and_length.load();
    if (rule.key.load() == 0 || word >> 32 != queue) continue;
    std::string name(std::min<std::uint64_t>(word & 0xFFFF'FFFF, sizeof rule.name), '\0');
    shm::copy_out(name.data(), rule.name, name.size());
    visit(std::move(name), rule);
  }
}

Status check_tenant_bounds(const std::vector<TenantBound>& bounds) {
  std::map<std::string_view, int> seen;
  for (const TenantBound& bound : bounds) {
    if (bound.tenant.size() > sizeof engine::TenantRule::name)
      return invalid_setting("backpressure.tenant_bounds",
                             "a tenant with a bound has a name of at most 128 bytes",
                             sizeof engine::TenantRule::name);
    if (seen[bound.tenant]++ != 0)
      return invalid_setting("backpressure.tenant_bounds",
                             "tenant '" + bound.tenant + "' has two bounds");
    if (bound.max_depth.value_or(0) > kMostTenantJobs ||
        bound.max_size_bytes.value_or(0) > kMostBoundBytes)
      return invalid_setting("backpressure.tenant_bounds",
                             "tenant '" + bound.tenant + "': a bound is at most " +
                                 std::to_string(kMostTenantJobs) + " jobs and " +
                                 std::to_string(kMostBoundBytes) + " bytes",
                             kMostTenantJobs);
  }
  return {};
}

std::vector<TenantBound> describe_tenant_bounds(const engine::Store& store, std::uint32_t queue) {
  std::vector<TenantBound> bounds;
  each_tenant_rule(store, queue, [&](std::string name, const engine::TenantRule& rule) {
    const auto own = [](std::uint64_t word) {
      return word == 0 ? std::nullopt : std::optional(word - 1);
    };
    TenantBound bound{std::move(name), own(rule.max_depth.load()), own(rule.max_bytes.load())};
    if (bound.max_depth || bound.max_size_bytes) bounds.push_back(std::move(bound));
  });
  std::sort(bounds.begin(), bounds.end(),
            [](const TenantBound& a, const TenantBound& b) { return a.tenant < b.tenant; });
  return bounds;
}

TenantFairness describe_fairness(const engine::Store& store, std::uint32_t queue) {
  const engine::Fairness set(store.queue(queue).fairness.load());
  TenantFairness fairness{
      set.on(), static_cast<std::uint32_t>(set.default_weight()), {}, set.across()};
  each_tenant_rule(store, queue, [&](std::string name, const engine::TenantRule& rule) {
    if (const std::uint64_t weight = rule.weight.load(); weight != 0)
      fairness.weights.emplace_back(std::move(name), static_cast<std::uint32_t>(weight));
  });
  std::sort(fairness.weights.begin(), fairness.weights.end());
  // Of two entries of one tenant the shorter one is shown.
  std::erase_if(fairness.weights, [&](const auto& each) {
    constexpr std::string_view kPrefix = "tenant:";
    return each.first.starts_with(kPrefix) &&
           std::any_of(fairness.weights.begin(), fairness.weights.end(), [&](const auto& other) {
             return each.first.compare(kPrefix.size(), std::string::npos, other.first) == 0;
           });
  });
  return fairness;
}

engine::Backpressure read_backpressure(const QueueSettings& settings, engine::Backpressure before) {
  const bool lowest =
      settings.drop ? *settings.drop == DropOrder::kLowestPriority : before.lowest_first();
  const auto parts = [](const std::optional<double>& share, unsigned otherwise) {
    return share ? static_cast<unsigned>(std::lround(*share * engine::Backpressure::kWhole))
                 : otherwise;
  };
  const bool follows = before.clear_threshold() == before.threshold();
  return engine::Backpressure(
      settings.strategy ? static_cast<engine::Strategy>(*settings.strategy) : before.strategy(),
      lowest, parts(settings.warning_threshold, before.threshold()),
      parts(settings.clear_threshold,
            follows ? engine::Backpressure::kWhole : before.clear_threshold()));
}

Status check_order(std::string_view queue, bool ages, bool weighted, bool across) {
  if (across && weighted)
    return invalid_setting(
        "tenant_fairness.scope",
        fmt::format("queue '{}' cannot have level weights while its tenants share across levels: "
                    "turn one of them off first",
                    queue));
  if (!ages || !weighted) return {};
  return invalid_setting(
      "level_weights",
      fmt::format(
          "queue '{}' cannot have both ageing and level weights: turn one of them off first",
          queue));
}

}  // namespace internal

}  // namespace ojs_shm
