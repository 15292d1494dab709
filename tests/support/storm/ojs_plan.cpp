// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "tests/support/storm/ojs_lanes.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint16_t kNeverGivesUp = 60'000;

std::size_t body_bytes(Dice& dice, bool tight) {
  const std::uint64_t kind = dice.below(1000);
  if (kind < 800) return dice.below(64);
  if (kind < 950) return dice.below(1000);
  if (kind < 999 || tight) return dice.below(8000);
  return dice.below(200'000);
}

/// A UUIDv7 that says whose it is.
std::string own_id(PayloadKey key, std::uint64_t epoch_ms) {
  return fmt::format("{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}", (epoch_ms >> 16) & 0xFFFFFFFF,
                     epoch_ms & 0xFFFF, key.sequence % 0x1000, key.producer % 0x1000, key.sequence);
}

/// A limit on concurrency, and for most on one of three kinds of pace. One in four puts off what it
/// holds back, one drops it, the others let it wait.
std::string limit_text(std::uint32_t number) {
  static constexpr std::string_view kPaces[] = {
      "", R"(,"rate":{"limit":50,"period":"PT0.02S"})",
      R"(,"rate":{"limit":40,"period":"PT0.02S","window":"sliding"})",
      R"(,"throttle":{"limit":3000,"period":"PT1S","burst":3})"};
  static constexpr std::string_view kChoices[] = {"wait", "wait", "drop", "reschedule"};
  return fmt::format(R"({{"key":"k{}","concurrency":{}{},"on_limit":"{}"}})", number,
                     concurrency_of(number), kPaces[number / 4 % 4], kChoices[number / 16 % 4]);
}

}  // namespace

const std::vector<std::string>& storm_queues() {
  static const std::vector<std::string> kQueues{"storm-a", "storm-b", "storm-bound"};
  return kQueues;
}

const std::vector<std::string>& policy_queues() {
  static const std::vector<std::string> kQueues{std::string(kFairQueue), std::string(kKeyedQueue),
                                                std::string(kWaitingQueue),
                                                std::string(kDroppingQueue)};
  return kQueues;
}

std::vector<std::string> queues_of(const OjsPlan& plan) {
  std::vector<std::string> queues = storm_queues();
  if (plan.policies) queues.insert(queues.end(), policy_queues().begin(), policy_queues().end());
  return queues;
}

bool has_policy(std::string_view queue) {
  return std::ranges::find(policy_queues(), queue) != policy_queues().end();
}

PoolSettings storm_pool(Dice& dice) {
  PoolSettings pool;
  pool.queues = policy_queues();
  pool.strategy = static_cast<PoolStrategy>(dice.below(4));
  if (pool.strategy == PoolStrategy::kWeighted)
    pool.weights = {{pool.queues.front(), 2 + dice.below(3)}};
  pool.concurrency = kPoolConcurrency;
  pool.starvation_prevention = {.enabled = dice.chance(0.5), .rotation_interval_ms = 100};
  return pool;
}

PoolSettings passing_pool(Dice& dice) {
  PoolSettings pool;
  pool.queues = storm_queues();
  pool.strategy = static_cast<PoolStrategy>(dice.below(4));
  pool.concurrency = dice.chance(0.5) ? 0 : dice.between(4, 16);
  return pool;
}

QueueSettings storm_policy(std::string_view queue, Dice& dice) {
  QueueSettings settings;
  if (queue == kWaitingQueue)
    settings.max_depth = dice.between(4, 40), settings.strategy = BackpressureStrategy::kBlock;
  if (queue == kDroppingQueue) {
    settings.max_depth = dice.between(20, 200);
    settings.strategy = BackpressureStrategy::kDropOldest;
    settings.drop = static_cast<DropOrder>(dice.below(2));
  }
  if (queue == kFairQueue) {
    settings.tenant_fairness.emplace().enabled = dice.chance(0.5);
    settings.tenant_fairness->weights = {{"t0", 1 + dice.below(3)}};
    settings.tenant_max_depth = dice.below(3) * 50;
    settings.tenant_bounds.emplace().push_back({"t1", 20, {}});
  }
  return settings;
}

std::uint32_t limit_in(std::string_view extra) {
  constexpr std::string_view kBefore = R"("key":"k)";
  const std::size_t at = extra.find(kBefore);
  std::uint32_t number = 0;
  if (at != std::string_view::npos)
    std::from_chars(extra.data() + at + kBefore.size(), extra.data() + extra.size(), number);
  return number;
}

std::string payload_context(std::string_view queue, std::string_view type) {
  return fmt::format("{}/{}", queue, type);
}

std::optional<PayloadKey> key_of(const JobInfo& job) {
  return judge_payload(job.args, payload_context(job.queue, job.type));
}

PlannedJob::PlannedJob(PayloadKey key, const OjsPlan& plan)
    : PlannedJob(key, plan, std::nullopt,
                 Dice(Dice(key.sequence ^ (std::uint64_t{key.producer} << 48)).next())) {}

PlannedJob::PlannedJob(PayloadKey key, const OjsPlan& plan, std::string_view batch_queue)
    : PlannedJob(key, plan, batch_queue,
                 Dice(Dice(key.sequence ^ (std::uint64_t{key.producer} << 48)).next())) {}

PlannedJob::PlannedJob(PayloadKey key, const OjsPlan& plan,
                       std::optional<std::string_view> batch_queue, Dice dice) {
  // Mostly the few levels that people use, and now and then any of them.
  priority = static_cast<std::int64_t>(dice.below(dice.chance(0.9) ? 5 : 200));
  type = dice.chance(0.5) ? "storm.one" : "storm.two";
  queue = storm_queues()[dice.below(10) < 5 ? 0 : dice.below(10) < 8 ? 1 : 2];
  if (plan.policies && dice.chance(0.4))
    queue = policy_queues()[dice.below(policy_queues().size())];
  if (batch_queue) queue = *batch_queue;
  if (key.producer % 2 == 1) id = own_id(key, plan.epoch_ms);
  write_payload(args, key, payload_context(queue, type), body_bytes(dice, plan.tight));
  retry = {.max_attempts = kNeverGivesUp, .initial_ms = 5, .max_ms = 50};
  if (has_policy(queue)) {
    add_policy(key, batch_queue.has_value(), dice);
    return;
  }
  if (dice.chance(0.1)) lease_ms = static_cast<std::uint32_t>(dice.between(60, 200));
  if (plan.everything && queue == storm_queues().front() && dice.chance(0.2))
    age_rate = static_cast<std::uint32_t>(dice.below(8));
  if (batch_queue) return;
  if (dice.chance(0.02)) {
    marks |= kMayDiscard;
    retry.max_attempts = 2;
  }
  if (!plan.everything) return;
  retry.dead_letter = dice.chance((marks & kMayDiscard) != 0 ? 0.5 : 0.02);
  if (retry.dead_letter) marks |= kMayDie;
  // A full segment forgets dead letters as well, when nothing else is left to be forgotten.
  if (retry.dead_letter && plan.tight) marks |= kMayDiscard;
  ranked = !dice.chance(0.02);
  retry.backoff = static_cast<RetryBackoff>(dice.below(4));
  if (dice.chance(0.05)) delay_ms = static_cast<std::uint32_t>(dice.between(1, 200));
  if (dice.chance(0.03)) pending = true;
  if (dice.chance(0.03)) timeout_ms = static_cast<std::uint32_t>(dice.between(30, 150));
  if (dice.chance(0.03)) {
    marks |= kMayExpire;
    life_ms = static_cast<std::uint32_t>(dice.between(1, 500)) + delay_ms;
  }
  if (plan.policies && id.empty() && dice.chance(0.1)) add_unique(dice);
}

/// One of few that may live at a time. Not of a job with an id of its own, for whose enqueue was
/// cut off may come in when it is repeated, or not.
void PlannedJob::add_unique(Dice& dice) {
  constexpr std::uint64_t kKeys = 50;
  extra = fmt::format(R"({{"meta":{{"lot":{}}}}})", dice.below(kKeys));
  unique = JobUnique::of(
               spec(), {.meta_keys = {"lot"},
                        .on_conflict = dice.chance(0.5) ? OnConflict::kReject : OnConflict::kIgnore,
                        .raise_priority = dice.chance(0.3)})
               .value();
}

/// Tenants and keys change as time goes on, so that old ones have to be given up.
void PlannedJob::add_policy(PayloadKey key, bool of_batch, Dice& dice) {
  // each lot of each key has rings for each level
  priority = static_cast<std::int64_t>(dice.below(5));
  tenant = fmt::format("t{}",
                       dice.chance(0.3) ? dice.below(2) : key.sequence / 2048 * 8 + dice.below(8));
  extra = fmt::format(R"({{"meta":{{"tenant_id":"{}"}})", tenant);
  if (queue == kKeyedQueue || dice.chance(0.1)) {
    const std::string text =
        limit_text(kFirstKey + static_cast<std::uint32_t>(key.sequence / 512 * 8 + dice.below(8)));
    const JobLimit parsed = parse_limit(text).value();
    const bool drops = parsed.limit.on_limit == OnLimit::kDrop;
    if (!drops || !of_batch) {  // of a batch all or none comes out
      limit = parsed;
      extra += R"(,"rate_limit":)" + text;
      if (drops) marks |= kMayDiscard;
    }
  }
  extra += "}";
  if (queue == kDroppingQueue) marks |= kMayDrop;
}

std::string PlannedJob::export_line() const {
  return fmt::format(
      R"({{"job":{{"id":"{}","type":"{}","queue":"{}","priority":{},"args":{}{}{},"timeout_ms":{},)"
      R"("retry":{{"max_attempts":{},"initial_interval_ms":5,"max_interval_ms":50{}}}}}}})",
      id, type, queue, priority, args, extra.empty() ? "" : R"(,"extra":)", extra, timeout_ms,
      retry.max_attempts, retry.dead_letter ? R"(,"on_exhaustion":"dead_letter")" : "");
}

JobSpec PlannedJob::spec() const {
  JobSpec spec;
  spec.type = type;
  spec.args = args;
  spec.queue = queue;
  spec.extra = extra;
  spec.limit = limit ? &*limit : nullptr;
  spec.unique = unique ? &*unique : nullptr;
  spec.id = id;
  if (ranked) spec.priority = priority;
  spec.tenant = tenant;
  spec.scheduled_at_ms = delay_ms != 0 ? wall_ms() + delay_ms : 0;
  spec.expires_at_ms = life_ms != 0 ? wall_ms() + life_ms : 0;
  spec.timeout_ms = timeout_ms;
  spec.lease_ms = lease_ms;
  spec.pending = pending;
  spec.priority_age_rate = age_rate;
  spec.retry = retry;
  return spec;
}

}  // namespace ojs_shm::test
