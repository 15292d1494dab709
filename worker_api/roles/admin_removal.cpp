// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/admin.hpp>

#include "engine/limits/limit_setter.hpp"
#include "engine/supervision/queue_end.hpp"
#include "worker_api/roles/admin_impl.hpp"

// What makes things go: dead letters in time, and queues.

namespace ojs_shm {
namespace {

Error no_queue(std::string_view name) {
  return Error{Code::kNotFound, "no queue '" + std::string(name) + "'"}.about("queue");
}

Error unfinished(std::string_view name, std::uint64_t jobs) {
  return Error{Code::kWrongState, "queue '" + std::string(name) + "' has " + std::to_string(jobs) +
                                      (jobs == 1 ? " job that has" : " jobs that have") +
                                      " not finished"}
      .about("queue")
      .uses(jobs, 0, "jobs");
}

/// As a queue that was never configured.
QueueSettings no_settings() {
  QueueSettings none;
  none.max_depth = none.max_size_bytes = none.tenant_max_depth = none.tenant_max_size_bytes = 0;
  none.paused = false;
  none.aging = AgingSettings{.inherit = true};
  none.level_weights.emplace();
  none.shards = 1;
  none.tenant_fairness = TenantFairness{.enabled = false};
  none.tenant_bounds.emplace();
  none.strategy = BackpressureStrategy::kReject;
  none.warning_threshold = none.clear_threshold = QueueInfo().warning_threshold;
  none.drop = DropOrder::kOldest;
  none.retention = {0, 0, 0};
  return none;
}

}  // namespace

Status Admin::set_dead_retention(const DeadLetterRetention& retention) {
  if (impl_->handle->closed()) return internal::closed();
  engine::EngineHeader& header = impl_->handle->store().header();
  if (retention.max_age_ms)
    header.dead_max_age_ms.store(*retention.max_age_ms, shm::Point::kSetChanged);
  if (retention.max_count)
    header.dead_max_count.store(*retention.max_count, shm::Point::kSetChanged);
  impl_->handle->actor().bell().ring_supervisor_for(0);
  return {};
}

Result<std::uint64_t> Admin::delete_queue(std::string_view name, QueueDeletion jobs) {
  if (impl_->handle->closed()) return internal::closed();
  engine::Actor& actor = impl_->handle->actor();
  const std::uint32_t q = actor.ensure_queue(name, false);
  if (q == engine::kNoIndex || actor.store().deleted(q)) return no_queue(name);
  engine::QueueEnd end(actor);
  std::uint64_t discarded = 0, left = 0;
  const engine::Outcome outcome =
      jobs == QueueDeletion::kDiscard ? end.empty(q, discarded, left) : end.begin(q, left);
  if (outcome == engine::Outcome::kWrongState) return unfinished(name, left);
  if (outcome != engine::Outcome::kOk) return internal::error_of(outcome, actor.store(), q, name);
  if (Status reset = set_queue(name, no_settings()); !reset) return reset.error();
  (void)engine::LimitSetter(actor).clear("queue:" + std::string(name));  // not found: it had none
  end.finish(q, discarded);
  return discarded;
}

}  // namespace ojs_shm
