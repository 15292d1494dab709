// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/settings_check.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <tuple>

#include "engine/rules/names.hpp"
#include "engine/tables/layout.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/queue_policy.hpp"

namespace ojs_shm::internal {
namespace {

Error out_of_range(engine::Convention convention, std::string_view priority) {
  const engine::ConventionInfo& known = engine::info(convention);
  return Error{Code::kInvalid, "priority " + std::string(priority) +
                                   " is out of range: the minimum is " + std::to_string(known.min) +
                                   " and the maximum is " + std::to_string(known.max)}
      .about("priority")
      .at_most(static_cast<std::uint64_t>(known.max));
}

}  // namespace

Error invalid_setting(std::string_view member, std::string message, std::uint64_t bound) {
  return Error{Code::kInvalid, std::move(message)}.about(std::string(member)).at_most(bound);
}

Status check_checkpoint(std::string_view text) {
  if (json::check(text)) return {};
  return invalid_setting("checkpoint", "a checkpoint must be JSON");
}

Status check_queue(std::string_view name, const QueueSettings& settings) {
  if (!engine::valid_queue_name(name))
    return Error{Code::kInvalid, "queue must be 1 to 128 characters of [a-z0-9.-]"}
        .about("queue")
        .at_most(engine::kMaxQueueNameLength);
  constexpr std::uint64_t kMostBytes = kMostBoundBytes;
  for (const auto& [member, bound, most] :
       {std::tuple("max_depth", settings.max_depth, kMostBoundJobs),
        std::tuple("tenant_max_depth", settings.tenant_max_depth, kMostTenantJobs)})
    if (bound.value_or(0) > most)
      return Error{Code::kInvalid, std::string(member) + " is at most " + std::to_string(most)}
          .about(member)
          .at_most(most, "jobs");
  if (settings.shards && (*settings.shards == 0 || *settings.shards > engine::kParts))
    return Error{Code::kInvalid, "a queue has 1 to " + std::to_string(engine::kParts) + " shards"}
        .about("shards")
        .at_most(engine::kParts);
  for (const auto& [member, bound] :
       {std::pair("max_size_bytes", settings.max_size_bytes),
        std::pair("tenant_max_size_bytes", settings.tenant_max_size_bytes)})
    if (bound.value_or(0) > kMostBytes)
      return Error{Code::kInvalid,
                   std::string(member) + " is at most " + std::to_string(kMostBytes)}
          .about(member)
          .at_most(kMostBytes, "bytes");
  if (settings.tenant_bounds)
    if (Status checked = check_tenant_bounds(*settings.tenant_bounds); !checked) return checked;
  for (const auto& [member, share] : {std::pair("warning_threshold", settings.warning_threshold),
                                      std::pair("clear_threshold", settings.clear_threshold)})
    if (share && !(*share >= 0 && *share <= 1))
      return Error{Code::kInvalid, std::string(member) + " is a number from 0 to 1"}
          .about(member)
          .at_most(1);
  for (const auto& [member, kept] :
       {std::pair("retention.completed", settings.retention.completed_ms),
        std::pair("retention.discarded", settings.retention.discarded_ms),
        std::pair("retention.cancelled", settings.retention.cancelled_ms)})
    if (kept.value_or(0) > kLongestRetentionMs)
      return Error{Code::kInvalid, std::string(member) + " is at most 100 years"}
          .about(member)
          .at_most(kLongestRetentionMs, "ms");
  return {};
}

Status check_queue_order(engine::Convention convention, std::string_view name,
                         const QueueSettings& settings,
                         const std::optional<AgingSettings>& others) {
  const auto own = read_aging(convention, settings.aging.value_or(AgingSettings{.inherit = true}));
  if (!own) return own.error();
  const auto weights =
      read_weights(convention, settings.level_weights.value_or(std::vector<LevelWeight>{}));
  if (!weights) return weights.error();
  const auto aging = own->set() || !others ? own : read_aging(convention, *others);
  const bool across = settings.tenant_fairness && settings.tenant_fairness->enabled &&
                      settings.tenant_fairness->across;
  return check_order(name, aging && aging->enabled(), !weights->empty(), across);
}

Status check_default_aging(engine::Convention convention, const AgingSettings& settings) {
  if (settings.inherit)
    return invalid_setting("aging",
                           "the ageing of the segment is the default itself: it is on or off");
  const auto read = read_aging(convention, settings);
  return read ? Status() : read.error();
}

std::int64_t limit_of_qo_cap(engine::Convention convention, std::int64_t cap) {
  const engine::ConventionInfo& known = engine::info(convention);
  const std::int64_t rank = engine::extended_rank(engine::Convention::kQo, cap);
  return engine::extended_priority(convention, std::min<std::int64_t>(rank, known.max - known.min));
}

Status check_strategy(const WorkerOptions& options) {
  constexpr std::uint32_t kMostWeight = 1000;
  const auto invalid = [](std::string message, std::uint64_t bound) {
    return Error{Code::kInvalid, std::move(message)}.about("weights").at_most(bound);
  };
  if (options.weights.empty()) return {};
  if (options.strategy != QueueStrategy::kWeighted)
    return invalid(
        "weights belong to the strategy weighted; strict tries the queues from left to right", 0);
  if (options.weights.size() != options.queues.size())
    return invalid(std::to_string(options.queues.size()) + " queues need as many weights, not " +
                       std::to_string(options.weights.size()),
                   options.queues.size());
  for (const std::uint32_t weight : options.weights)
    if (weight == 0 || weight > kMostWeight)
      return invalid("a queue's weight is 1 to " + std::to_string(kMostWeight) + ", not " +
                         std::to_string(weight),
                     kMostWeight);
  return {};
}

Status check_type(std::string_view type) {
  if (engine::valid_type(type)) return {};
  return Error{Code::kInvalid, "type must be of the form name(.name)*, in lower case"}
      .about("type")
      .at_most(255);
}

Result<std::uint8_t> check_priority(engine::Convention convention, std::int64_t priority) {
  if (const auto rank = engine::rank_of(convention, priority)) return *rank;
  return out_of_range(convention, std::to_string(priority));
}

Result<std::int64_t> named_priority(engine::Convention convention, std::string_view name) {
  if (const auto priority = engine::priority_by_name(convention, name))
    return std::int64_t{*priority};
  std::string names;
  for (const engine::NamedPriority& known : engine::priority_names(convention))
    names += (names.empty() ? "" : ", ") + std::string(known.name) + " (" +
             std::to_string(known.priority) + ")";
  return Error{Code::kInvalid, "'" + std::string(name) + "' is not a priority of convention '" +
                                   std::string(engine::info(convention).name) +
                                   "': use a number or one of " + names}
      .about("priority");
}

Result<std::int64_t> priority_of_text(engine::Convention convention, std::string_view text) {
  std::int64_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (rest != text.data() + text.size() || problem == std::errc::invalid_argument)
    return named_priority(convention, text);
  if (problem == std::errc::result_out_of_range) return out_of_range(convention, text);
  const auto rank = check_priority(convention, number);
  if (!rank) return rank.error();
  return number;
}

}  // namespace ojs_shm::internal
