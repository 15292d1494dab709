// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

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
  return fmt::format("{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}", (epoch_ms >> 16) & 0xFFFFFFFF, epoch_ms & 0xFFFF,
                     key.sequence % 0x1000, key.producer % 0x1000, key.sequence);
}

}  // namespace

const std::vector<std::string>& storm_queues() {
  static const std::vector<std::string> kQueues{"storm-a", "storm-b", "storm-bound"};
  return kQueues;
}

std::string payload_context(std::string_view queue, std::string_view type) { return fmt::format("{}/{}", queue, type); }

std::optional<PayloadKey> key_of(const JobInfo& job) {
  return judge_payload(job.args, payload_context(job.queue, job.type));
}

PlannedJob::PlannedJob(PayloadKey key, const OjsPlan& plan)
    : PlannedJob(key, plan, std::nullopt, Dice(Dice(key.sequence ^ (std::uint64_t{key.producer} << 48)).next())) {}

PlannedJob::PlannedJob(PayloadKey key, const OjsPlan& plan, std::string_view batch_queue)
    : PlannedJob(key, plan, batch_queue, Dice(Dice(key.sequence ^ (std::uint64_t{key.producer} << 48)).next())) {}

PlannedJob::PlannedJob(PayloadKey key, const OjsPlan& plan, std::optional<std::string_view> batch_queue, Dice dice) {
  // Mostly the few levels that people use, and now and then any of them.
  priority = static_cast<std::int64_t>(dice.below(dice.chance(0.9) ? 5 : 200));
  type = dice.chance(0.5) ? "storm.one" : "storm.two";
  queue = storm_queues()[dice.below(10) < 5 ? 0 : dice.below(10) < 8 ? 1 : 2];
  if (batch_queue) queue = *batch_queue;
  if (key.producer % 2 == 1) id = own_id(key, plan.epoch_ms);
  write_payload(args, key, payload_context(queue, type), body_bytes(dice, plan.tight));
  retry = {.max_attempts = kNeverGivesUp, .initial_ms = 5, .max_ms = 50};
  if (dice.chance(0.1)) lease_ms = static_cast<std::uint32_t>(dice.between(60, 200));
  if (plan.everything && queue == storm_queues().front() && dice.chance(0.2))
    age_rate = static_cast<std::uint32_t>(dice.below(8));
  if (batch_queue) return;
  if (dice.chance(0.02)) {
    marks |= kMayDiscard;
    retry.max_attempts = 2;
  }
  if (!plan.everything) return;
  retry.backoff = static_cast<RetryBackoff>(dice.below(4));
  if (dice.chance(0.05)) delay_ms = static_cast<std::uint32_t>(dice.between(1, 200));
  if (dice.chance(0.03)) pending = true;
  if (dice.chance(0.03)) timeout_ms = static_cast<std::uint32_t>(dice.between(30, 150));
  if (dice.chance(0.03)) {
    marks |= kMayExpire;
    life_ms = static_cast<std::uint32_t>(dice.between(1, 500)) + delay_ms;
  }
}

JobSpec PlannedJob::spec() const {
  JobSpec spec;
  spec.type = type;
  spec.args = args;
  spec.queue = queue;
  spec.id = id;
  spec.priority = priority;
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
