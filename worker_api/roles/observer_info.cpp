// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/observer_info.hpp"

#include <algorithm>
#include <cstring>

#include "engine/supervision/dead_letters.hpp"
#include "engine/supervision/maintenance.hpp"
#include "engine/supervision/retention.hpp"
#include "worker_api/roles/queue_policy.hpp"

namespace ojs_shm::internal {

bool failed_as_wanted(const JobFilter& filter, const engine::Snapshot& job) {
  if (filter.error_type.empty()) return true;
  const std::vector<engine::ErrorEntry> errors = engine::decode_errors(job.errors);
  if (errors.empty()) return false;
  const engine::ErrorEntry& last = errors.back();
  return (last.type.empty() ? last.code : last.type) == filter.error_type;
}

namespace {

QueueRetention describe_retention(const engine::QueueRecord& record) {
  const engine::Retention kept = engine::Retention::of(record);
  const auto told = [](std::uint64_t ms) { return ms == 0 ? std::nullopt : std::optional(ms); };
  return {told(kept.completed_ms), told(kept.discarded_ms), told(kept.cancelled_ms)};
}

}  // namespace

QueueInfo describe_queue(const engine::Store& store, std::uint32_t q,
                         const engine::Census::Queue& counted) {
  const engine::QueueRecord& record = store.queue(q);
  QueueInfo info;
  info.name = store.queue_name(q);
  info.created_at_ms = record.created.load();
  info.paused = (record.flags.load() & engine::kPaused) != 0;
  info.max_depth = record.max_depth.load();
  info.max_size_bytes = record.max_bytes.load();
  const engine::Backpressure policy(record.backpressure.load());
  info.strategy = static_cast<BackpressureStrategy>(policy.strategy());
  info.warning_threshold = static_cast<double>(policy.threshold()) / engine::Backpressure::kWhole;
  info.clear_threshold =
      static_cast<double>(policy.clear_threshold()) / engine::Backpressure::kWhole;
  info.drop = policy.lowest_first() ? DropOrder::kLowestPriority : DropOrder::kOldest;
  const std::uint64_t depth = store.depth_charge(q);
  info.depth = engine::charged_jobs(depth);
  info.size_bytes = engine::charged_bytes(depth);
  info.pressure = engine::Fullness::of(depth, info.max_depth, info.max_size_bytes).pressure();
  for (std::uint32_t t = 0; t < store.tickets.size(); ++t) {
    const engine::TicketControl ticket(store.tickets[t].control.load());
    info.waiting += ticket.taken() && ticket.queue() == q ? 1 : 0;
  }
  std::copy(counted.by_state.begin(), counted.by_state.end(), info.by_state);
  for (std::uint32_t l = 0; l < store.lanes(); ++l) {
    const engine::QueueTally& tally = store.tally(q, l);
    info.enqueued_total += tally.enqueued.get_ordered();
    info.dispatched_total += tally.dispatched.get_ordered();
    info.completed_total += tally.completed.get_ordered();
    info.reprioritized_total += tally.reprioritized.get_ordered();
    info.dropped_total += tally.dropped.get_ordered();
  }
  info.dead_letters = counted.dead_letters;
  const std::uint64_t now = store.now_ms();
  info.oldest_age_ms = now - std::min(now, counted.oldest_available_at);
  // each read once, so that what is a part of another number is never more
  info.retried_total = record.retried.load();
  info.expired_total = record.expired.load();
  const std::uint64_t discarded = record.discarded.load();
  info.failed_attempts_total = info.retried_total + discarded;
  info.discarded_total =
      discarded + info.expired_total + record.emptied.load() + info.dropped_total;
  info.cancelled_total = record.cancelled.load();
  info.returned_total = record.returned.load();
  info.rejected_total = record.rejected.load();
  info.conflicts_total = record.conflicts.load();
  info.pruned_total = record.pruned.load();
  for (unsigned rank = 0; rank < counted.available.size(); ++rank)
    if (counted.available[rank] != 0)
      info.available_by_priority.emplace_back(
          engine::priority_of(store.convention(), static_cast<std::uint8_t>(rank)),
          counted.available[rank]);
  info.lower_first = engine::lower_first(store.convention());
  info.aging = describe_aging(store.convention(), store.aging(record));
  info.aging_is_default = !engine::Aging(record.aging.load()).set();
  for (unsigned part = 1; part < engine::kAgeClasses; ++part)
    if (const std::uint64_t rate = record.age_class[part].load(); engine::is_age_class(rate))
      info.age_rates.push_back(static_cast<std::uint32_t>(rate - 1));
  info.level_weights = describe_weights(store.convention(), record);
  info.tenant_fairness = describe_fairness(store, q);
  info.retention = describe_retention(record);
  info.tenant_max_depth = record.tenant_max_depth.load();
  info.tenant_max_size_bytes = record.tenant_max_bytes.load();
  info.tenant_bounds = describe_tenant_bounds(store, q);
  info.shards = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(record.shards.load(), 1, engine::kParts));
  return info;
}

/// The header's word outlives a broker that died, and another process may get its place: the seat
/// is the truth.
bool is_broker(Attachment& attachment, std::uint32_t process) {
  if (attachment.segment().header().broker.load() != process + 1) return false;
  return !attachment.alive(process) || attachment.locks().descriptor() < 0 ||
         attachment.locks().held(shm::kBrokerSeat);
}

Maintenance describe_maintenance(const engine::Store& store) {
  const engine::MaintenanceView view = engine::look_at_maintenance(store);
  return {view.on, view.reason, view.since_ms, view.end_ms};
}

SegmentInfo describe_settings(Attachment& attachment) {
  const engine::Store& store = attachment.store();
  const shm::Segment& segment = attachment.segment();
  const shm::Header& header = segment.header();
  const engine::EngineHeader& engine_header = store.header();
  const engine::ConventionInfo& convention = engine::info(store.convention());
  SegmentInfo info;
  info.name = attachment.name().name;
  info.path = segment.path();
  info.convention = convention.name;
  info.created_by_version.assign(engine_header.version,
                                 strnlen(engine_header.version, sizeof engine_header.version));
  info.format = header.format;
  info.size_bytes = segment.size();
  info.created_at_ms = header.made_at_ms;
  info.slots = segment.geometry().slots;
  info.max_body_bytes = store.max_body();
  info.default_lease_ms = store.default_lease_ms();
  info.retention_ms = engine_header.retention_ms;
  info.dead_max_age_ms = engine_header.dead_max_age_ms.load();
  info.dead_max_count = engine_header.dead_max_count.load();
  info.next_prune_at_ms = engine::next_prune(store.now_ms());
  info.strict_envelopes = engine_header.strict_envelopes.load() != 0;
  info.immutable_priorities = store.immutable_priorities();
  info.events = (engine_header.telling.load() & engine::kTells) != 0;
  info.maintenance = describe_maintenance(store);
  info.unmeasured_waits_total = engine_header.waits_unmeasured.load();
  info.priority_min = convention.min;
  info.priority_max = convention.max;
  info.priority_default = convention.default_priority;
  info.lower_first = engine::lower_first(store.convention());
  info.aging = describe_aging(store.convention(), engine::Aging(engine_header.aging.load()));
  info.deaths_total = header.deaths.load();
  info.repairs_total = header.repairs.load();
  if (const std::uint64_t at = header.last_repair_at_ms.load(); at != 0) {
    const std::uint64_t pids = header.last_repair.load();
    info.last_repair = LastRepair{at, static_cast<std::uint32_t>(pids >> 32),
                                  static_cast<std::uint32_t>(pids), header.last_mended.load()};
  }
  return info;
}

SegmentInfo describe_segment(Attachment& attachment, const engine::Census& census) {
  shm::Segment& segment = attachment.segment();
  const shm::Geometry& g = segment.geometry();
  SegmentInfo info = describe_settings(attachment);
  info.overdue_ms = census.overdue_ms;
  for (std::uint32_t i = 0; i < g.processes; ++i) {
    if (segment.process(i).live.load() == 0) continue;
    ProcessInfo process;
    process.index = i;
    process.pid = segment.process(i).pid.load();
    process.alive = attachment.alive(i);
    process.stopped = process.alive && shm::stopped(segment.process(i));
    process.supervisor = segment.header().supervisor.load() == i + 1;
    process.broker = is_broker(attachment, i);
    for (std::uint32_t l = 0; l < g.lanes; ++l)
      if (segment.lane(l).process.load() == i + 1)
        ++process.handles,
            process.active_jobs += static_cast<std::uint32_t>(census.lanes[l].active);
    info.processes.push_back(process);
  }
  return info;
}

}  // namespace ojs_shm::internal
