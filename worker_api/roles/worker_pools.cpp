// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/worker_pools.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "engine/pools/pool_look.hpp"
#include "engine/rules/names.hpp"
#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm {

namespace internal {
namespace {

std::vector<std::uint32_t> weights_of(const PoolSettings& settings) {
  std::vector<std::uint32_t> weights(settings.queues.size(), 1);
  for (const auto& [name, weight] : settings.weights)
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (settings.queues[i] == name) weights[i] = weight;
  return weights;
}

Status check_weights(const PoolSettings& settings) {
  for (const auto& [name, weight] : settings.weights) {
    if (std::find(settings.queues.begin(), settings.queues.end(), name) == settings.queues.end())
      return invalid_setting("weights",
                             "'" + name + "' has a weight and is none of the pool's queues");
    if (weight == 0)
      return invalid_setting("weights", "the weight of '" + name + "' must be at least 1");
  }
  if (settings.strategy != PoolStrategy::kWeighted) return {};
  const std::vector<std::uint32_t> weights = weights_of(settings);
  const std::uint32_t divisor =
      std::accumulate(weights.begin(), weights.end(), 0U,
                      [](std::uint32_t a, std::uint32_t b) { return std::gcd(a, b); });
  std::uint64_t turns = 0;
  for (const std::uint32_t weight : weights) turns += weight / divisor;
  if (turns > engine::kPoolTurns)
    return invalid_setting("weights",
                           "the weights, divided by what they have in common, come to " +
                               std::to_string(turns) + " turns; the most is " +
                               std::to_string(engine::kPoolTurns),
                           engine::kPoolTurns);
  return {};
}

}  // namespace

Status check_pool(std::string_view name, const PoolSettings& settings) {
  if (!engine::valid_queue_name(name))
    return invalid_setting("name", "a pool's name must be 1 to 128 characters of [a-z0-9.-]",
                           engine::kMaxQueueNameLength);
  if (settings.queues.empty()) return invalid_setting("queues", "a pool needs at least one queue");
  if (settings.queues.size() > engine::kPoolQueues)
    return invalid_setting("queues",
                           "a pool has at most " + std::to_string(engine::kPoolQueues) + " queues",
                           engine::kPoolQueues);
  std::vector<std::string> sorted = settings.queues;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (!engine::valid_queue_name(sorted[i]))
      return invalid_setting(
          "queues", "'" + sorted[i] + "': a queue must be 1 to 128 characters of [a-z0-9.-]");
    if (i > 0 && sorted[i] == sorted[i - 1])
      return invalid_setting("queues", "queue '" + sorted[i] + "' is listed twice");
  }
  if (Status checked = check_weights(settings); !checked) return checked;
  if (settings.concurrency > engine::kMostPermits)
    return invalid_setting(
        "concurrency",
        "the concurrency of a pool is at most " + std::to_string(engine::kMostPermits),
        engine::kMostPermits);
  const StarvationPrevention& prevention = settings.starvation_prevention;
  if (prevention.rotation_interval_ms == 0)
    return invalid_setting("starvation_prevention.rotation_interval",
                           "the rotation interval must be longer than nothing");
  if (!(prevention.min_dispatch_ratio >= 0 && prevention.min_dispatch_ratio <= 1))
    return invalid_setting("starvation_prevention.min_dispatch_ratio",
                           "min_dispatch_ratio is a number from 0 to 1", 1);
  if (prevention.enabled &&
      prevention.min_dispatch_ratio * static_cast<double>(settings.queues.size()) > 1 + 1e-9)
    return invalid_setting("starvation_prevention.min_dispatch_ratio",
                           "min_dispatch_ratio times the number of queues must not be more than 1",
                           1);
  return {};
}

engine::PoolSpec spec_of(const PoolSettings& settings) {
  engine::PoolSpec spec;
  spec.strategy = static_cast<engine::PoolStrategy>(settings.strategy);
  spec.weights = weights_of(settings);
  spec.concurrency = settings.concurrency;
  spec.isolated = settings.isolated;
  spec.prevents = settings.starvation_prevention.enabled;
  spec.interval_ms = settings.starvation_prevention.rotation_interval_ms;
  spec.ratio = settings.starvation_prevention.min_dispatch_ratio;
  return spec;
}

WorkerPoolInfo describe_pool(const engine::Store& store, std::uint32_t pool,
                             const engine::PoolPlan& plan) {
  return describe_pool(store, pool, plan, engine::pool_load(store, pool, plan));
}

WorkerPoolInfo describe_pool(const engine::Store& store, std::uint32_t pool,
                             const engine::PoolPlan& plan, const engine::PoolLoad& load) {
  WorkerPoolInfo info;
  info.name = engine::pool_name(store, pool);
  PoolSettings& settings = info.settings;
  for (const std::uint32_t queue : plan.queues) settings.queues.push_back(store.queue_name(queue));
  settings.strategy = static_cast<PoolStrategy>(plan.setup.strategy());
  settings.concurrency = plan.concurrency;
  settings.isolated = plan.setup.isolated();
  settings.starvation_prevention = {plan.setup.prevents(),
                                    static_cast<std::uint32_t>(plan.interval_ms), plan.ratio};
  std::vector<std::uint32_t> turns(plan.queues.size(), 0);
  for (const std::uint8_t place : plan.cycle) ++turns[place];
  if (settings.strategy == PoolStrategy::kWeighted)
    for (std::size_t i = 0; i < turns.size(); ++i)
      settings.weights.emplace_back(settings.queues[i], turns[i]);

  std::map<std::uint32_t, std::uint64_t> dispatched;
  for (const engine::Word& counter : store.pools[pool].dispatched)
    if (const std::uint64_t word = counter.load(); word != 0)
      dispatched[static_cast<std::uint32_t>(word >> 52) - 1] = word & ((1ULL << 52) - 1);
  for (const auto& [queue, jobs] : dispatched)
    info.dispatched_total.emplace_back(store.queue_name(queue), jobs);

  const engine::PoolCrew crew = engine::pool_crew(store, pool);
  info.active_workers = crew.workers;
  info.declared_concurrency = crew.concurrency;
  info.active_jobs = load.active;
  info.waiting_jobs = load.waiting;
  return info;
}

Error no_pool(std::string_view name) {
  return Error{Code::kNotFound, "no pool '" + std::string(name) + "'"}.about("pool");
}

}  // namespace internal

namespace {

using json::Complaint;
using json::Member;

class PoolReader {
 public:
  Result<PoolSettings> read(std::string_view object) {
    for (const Member& member : json::members_of(object)) {
      read_member(member);
      if (complaint_.raised()) return complaint_.error();
    }
    if (!has_queues_) complaint_.about("queues", "are missing: a pool names the queues it serves");
    if (complaint_.raised()) return complaint_.error();
    return settings_;
  }

 private:
  void read_member(const Member& member) {
    if (member.name == "name" || member.name == "id") {
      json::text(member.name, member.value, complaint_);
    } else if (member.name == "queues") {
      read_queues(member.value);
    } else if (member.name == "strategy") {
      read_strategy(member.value);
    } else if (member.name == "concurrency") {
      const auto number = json::whole_number("concurrency", member.value, 1'000'000, complaint_);
      settings_.concurrency = number.value_or(0);
    } else if (member.name == "weights") {
      for (const Member& weight : members("weights", member.value))
        add_weight(weight.name, weight.value);
    } else if (member.name == "isolated") {
      settings_.isolated = json::boolean("isolated", member.value, complaint_).value_or(false);
    } else if (member.name == "starvation_prevention") {
      for (const Member& each : members("starvation_prevention", member.value))
        if (!complaint_.raised()) read_prevention(each);
    } else {
      complaint_.about(member.name,
                       "is not a setting of a pool; there are name, queues, strategy, concurrency, "
                       "weights, isolated, "
                       "starvation_prevention");
    }
  }

  std::vector<Member> members(std::string_view name, std::string_view value) {
    if (json::kind_of(value) == json::Kind::kObject) return json::members_of(value);
    complaint_.wrong_kind(name, "an object", value);
    return {};
  }

  void add_weight(std::string_view queue, std::string_view value) {
    const auto weight =
        json::whole_number("weights." + std::string(queue), value, 1'000'000, complaint_);
    if (weight == 0U) complaint_.about("weights." + std::string(queue), "must be at least 1");
    settings_.weights.emplace_back(queue, weight.value_or(1));
  }

  void read_queues(std::string_view value) {
    has_queues_ = true;
    if (json::kind_of(value) == json::Kind::kArray) {
      if (!json::check_texts("queues", value, complaint_)) return;
      for (const std::string_view element : json::elements_of(value))
        settings_.queues.push_back(json::string_of(element).value_or(""));
      return;
    }
    if (json::kind_of(value) != json::Kind::kObject)
      return complaint_.wrong_kind("queues", "an array", value);
    for (const Member& queue : json::members_of(value)) {
      settings_.queues.push_back(queue.name);
      if (json::kind_of(queue.value) != json::Kind::kObject) {
        add_weight(queue.name, queue.value);
        continue;
      }
      for (const Member& member : json::members_of(queue.value))
        if (member.name == "weight") add_weight(queue.name, member.value);
    }
  }

  void read_strategy(std::string_view value) {
    auto name = json::text("strategy", value, complaint_);
    if (!name) return;
    std::replace(name->begin(), name->end(), '_', '-');
    for (std::size_t i = 0; i < std::size(engine::kPoolStrategies); ++i)
      if (engine::kPoolStrategies[i] == *name) {
        settings_.strategy = static_cast<PoolStrategy>(i);
        return;
      }
    complaint_.about("strategy",
                     "'" + *name + "' is none of strict, round-robin, weighted, least-loaded");
  }

  void read_prevention(const Member& member) {
    StarvationPrevention& prevention = settings_.starvation_prevention;
    const std::string path = "starvation_prevention." + member.name;
    if (member.name == "enabled") {
      prevention.enabled = json::boolean(path, member.value, complaint_).value_or(false);
    } else if (member.name == "rotation_interval") {
      prevention.rotation_interval_ms =
          json::seconds_or_duration(path, member.value, complaint_).value_or(30'000);
    } else if (member.name == "min_dispatch_ratio") {
      const auto ratio = json::number_of(member.value);
      if (!ratio) return complaint_.wrong_kind(path, "a number", member.value);
      prevention.min_dispatch_ratio = *ratio;
    } else {
      complaint_.about(path,
                       "is unknown; there are enabled, rotation_interval, min_dispatch_ratio");
    }
  }

  PoolSettings settings_;
  bool has_queues_ = false;
  Complaint complaint_;
};

}  // namespace

double WorkerPoolInfo::utilization() const {
  const std::uint64_t limit =
      settings.concurrency != 0 ? settings.concurrency : declared_concurrency;
  return limit == 0 ? -1
                    : std::min(1.0, static_cast<double>(active_jobs) / static_cast<double>(limit));
}

std::string_view pool_strategy_name(PoolStrategy strategy) noexcept {
  return engine::kPoolStrategies[static_cast<std::size_t>(strategy) %
                                 std::size(engine::kPoolStrategies)];
}

Result<PoolSettings> parse_pool_settings(std::string_view text) {
  if (Status checked = json::check(text); !checked) return checked.error();
  std::string_view object = json::trim(text);
  const auto not_an_object =
      Error{Code::kInvalid, "the settings of a pool must be a JSON object"}.about("pool");
  if (json::kind_of(object) != json::Kind::kObject) return not_an_object;
  if (const auto members = json::members_of(object);
      members.size() == 1 && members.front().name == "pool") {
    object = json::trim(members.front().value);
    if (json::kind_of(object) != json::Kind::kObject) return not_an_object;
  }
  return PoolReader().read(object);
}

namespace {

void write_queues(json::ObjectWriter& writer, const std::vector<std::string>& names) {
  std::string& queues = writer.open("queues");
  queues += '[';
  for (const std::string& queue : names) {
    if (queues.back() != '[') queues += ',';
    json::append_quoted(queues, queue);
  }
  queues += ']';
}

void write_weights(json::ObjectWriter& writer, const PoolSettings& settings) {
  if (settings.weights.empty()) return;
  json::ObjectWriter weights(writer.open("weights"));
  for (const auto& [queue, weight] : settings.weights) weights.number(queue, std::int64_t{weight});
  weights.close();
}

void write_prevention(json::ObjectWriter& writer, const StarvationPrevention& prevention) {
  json::ObjectWriter members(writer.open("starvation_prevention"));
  members.boolean("enabled", prevention.enabled);
  members.text("rotation_interval", print_duration(prevention.rotation_interval_ms));
  members.number("min_dispatch_ratio", prevention.min_dispatch_ratio);
  members.close();
}

}  // namespace

std::string print_pool_settings(const PoolSettings& settings) {
  std::string out;
  json::ObjectWriter writer(out);
  write_queues(writer, settings.queues);
  writer.text("strategy", pool_strategy_name(settings.strategy));
  write_weights(writer, settings);
  if (settings.concurrency != 0)
    writer.number("concurrency", static_cast<std::int64_t>(settings.concurrency));
  if (settings.isolated) writer.boolean("isolated", true);
  const StarvationPrevention &prevention = settings.starvation_prevention, unset;
  if (prevention.enabled || prevention.rotation_interval_ms != unset.rotation_interval_ms ||
      prevention.min_dispatch_ratio != unset.min_dispatch_ratio)
    write_prevention(writer, prevention);
  writer.close();
  return out;
}

std::string print_pool(const WorkerPoolInfo& pool) {
  const PoolSettings& settings = pool.settings;
  std::string out;
  json::ObjectWriter writer(out);
  writer.text("name", pool.name);
  write_queues(writer, settings.queues);
  if (settings.concurrency == 0)
    writer.value("concurrency", "null");
  else
    writer.number("concurrency", static_cast<std::int64_t>(settings.concurrency));
  writer.text("strategy", pool_strategy_name(settings.strategy));
  write_weights(writer, settings);
  writer.boolean("isolated", settings.isolated);
  write_prevention(writer, settings.starvation_prevention);
  writer.number("active_workers", std::int64_t{pool.active_workers});
  writer.number("active_jobs", static_cast<std::int64_t>(pool.active_jobs));
  writer.number("waiting_jobs", static_cast<std::int64_t>(pool.waiting_jobs));
  if (pool.utilization() >= 0) writer.number("utilization", pool.utilization());
  json::ObjectWriter dispatched(writer.open("dispatched"));
  for (const auto& [queue, jobs] : pool.dispatched_total)
    dispatched.number(queue, static_cast<std::int64_t>(jobs));
  dispatched.close();
  writer.close();
  return out;
}

}  // namespace ojs_shm
