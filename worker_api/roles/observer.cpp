// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/observer.hpp>

#include <algorithm>
#include <array>
#include <map>

#include "engine/audit.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/pools.hpp"
#include "worker_api/roles/queue_policy.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::Attachment;

Result<Observer> Observer::attach(const Segment& segment) { return Observer(segment); }

Result<Observer> Observer::attach(const SegmentName& name) {
  Result<Segment> segment = Segment::observe(name);
  if (!segment) return segment.error();
  return Observer(std::move(segment).value());
}

SegmentInfo Observer::segment_info() const {
  Attachment& attachment = *segment_.attachment();
  engine::Store& store = attachment.store();
  shm::Segment& segment = attachment.segment();
  const shm::Header& header = segment.header();
  const engine::EngineHeader& engine_header = store.header();
  const engine::ConventionInfo& convention = engine::info(store.convention());
  const shm::Geometry& g = segment.geometry();
  SegmentInfo info;
  info.name = attachment.name().name;
  info.path = segment.path();
  info.convention = convention.name;
  info.created_by_version.assign(engine_header.version,
                                 strnlen(engine_header.version, sizeof engine_header.version));
  info.format = header.format;
  info.size_bytes = segment.size();
  info.created_at_ms = header.made_at_ms;
  info.slots = g.slots;
  info.max_body_bytes = store.max_body();
  info.default_lease_ms = store.default_lease_ms();
  info.retention_ms = engine_header.retention_ms;
  info.strict_envelopes = engine_header.strict_envelopes.load() != 0;
  info.immutable_priorities = store.immutable_priorities();
  info.events = engine_header.telling.load() != 0;
  info.unmeasured_waits_total = engine_header.waits_unmeasured.load();
  info.priority_min = convention.min;
  info.priority_max = convention.max;
  info.priority_default = convention.default_priority;
  info.lower_first = engine::lower_first(store.convention());
  info.aging =
      internal::describe_aging(store.convention(), engine::Aging(engine_header.aging.load()));
  info.deaths_total = header.deaths.load();
  info.repairs_total = header.repairs.load();
  for (unsigned i = 0; i < internal::kPools; ++i)
    info.pools.push_back(internal::pool_info(store, static_cast<internal::Pool>(i)));
  std::vector<std::uint32_t> active(g.lanes, 0);
  const std::uint64_t now = store.now_ms();
  for (std::uint32_t i = 0; i < g.slots; ++i) {
    const engine::JobRecord& job = store.job(i);
    const engine::Control control(job.control.load());
    if (control.state() == engine::kSlotScheduled || control.state() == engine::kSlotRetryable) {
      const std::uint64_t due = job.due_at.get();
      if (due < now && job.control.load() == control.word)
        info.overdue_ms = std::max(info.overdue_ms, now - due);
    }
    if (control.state() == engine::kSlotActive && control.owner() >= 1 &&
        control.owner() <= g.lanes)
      ++active[control.owner() - 1];
  }
  for (std::uint32_t i = 0; i < g.processes; ++i) {
    if (segment.process(i).live.load() == 0) continue;
    ProcessInfo process;
    process.index = i;
    process.pid = segment.process(i).pid.load();
    process.alive = attachment.alive(i);
    process.stopped = process.alive && shm::stopped(segment.process(i));
    process.supervisor = header.supervisor.load() == i + 1;
    process.broker = header.broker.load() == i + 1;
    for (std::uint32_t l = 0; l < g.lanes; ++l)
      if (segment.lane(l).process.load() == i + 1)
        ++process.handles, process.active_jobs += active[l];
    info.processes.push_back(process);
  }
  return info;
}

namespace {

/// One walk over all slots for all queues.
struct Census {
  std::array<std::uint64_t, 8> by_state{};
  std::map<std::uint8_t, std::uint64_t> available;
  std::uint64_t dead_letters = 0, oldest_available_at = ~0ULL;
};

std::vector<Census> count_jobs(const engine::Store& store) {
  std::vector<Census> census(store.max_queues());
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const engine::JobRecord& job = store.job(slot);
    const engine::Control control(job.control.load());
    const std::uint32_t q = job.queue.get();
    if (q >= census.size()) continue;
    unsigned state = control.state();
    // What is in somebody's hands is counted as what it was a moment ago.
    if (state == engine::kSlotClaimed || state == engine::kSlotSettling)
      state = engine::kSlotActive;
    if (state == engine::kSlotMoving) state = engine::kSlotAvailable;
    if (!engine::holds_job(state)) continue;
    ++census[q].by_state[static_cast<std::size_t>(engine::job_state(state))];
    if (state == engine::kSlotDiscarded && job.flags().has(engine::Policy::kDead))
      ++census[q].dead_letters;
    if (state != engine::kSlotAvailable) continue;
    ++census[q].available[engine::rank_of_ring(control.ring())];
    census[q].oldest_available_at = std::min(census[q].oldest_available_at, job.available_at.get());
  }
  return census;
}

QueueInfo describe(const engine::Store& store, std::uint32_t q, const Census& census) {
  const engine::QueueRecord& record = store.queue(q);
  QueueInfo info;
  info.name = store.queue_name(q);
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
  for (std::uint32_t t = 0; t < engine::room_tickets(store.lanes()); ++t) {
    const engine::TicketControl ticket(store.ticket(t).control.load());
    info.waiting += ticket.taken() && ticket.queue() == q ? 1 : 0;
  }
  std::copy(census.by_state.begin(), census.by_state.end(), info.by_state);
  for (std::uint32_t l = 0; l < store.lanes(); ++l) {
    const engine::QueueTally& tally = store.tally(q, l);
    info.enqueued_total += tally.enqueued.get_ordered();
    info.dispatched_total += tally.dispatched.get_ordered();
    info.completed_total += tally.completed.get_ordered();
    info.reprioritized_total += tally.reprioritized.get_ordered();
    info.dropped_total += tally.dropped.get_ordered();
  }
  info.dead_letters = census.dead_letters;
  const std::uint64_t now = store.now_ms();
  info.oldest_age_ms = now - std::min(now, census.oldest_available_at);
  info.failed_attempts_total = record.retried.load() + record.discarded.load();
  info.discarded_total = record.discarded.load() + record.expired.load() + info.dropped_total;
  info.cancelled_total = record.cancelled.load();
  info.retried_total = record.retried.load();
  info.returned_total = record.returned.load();
  info.rejected_total = record.rejected.load();
  info.expired_total = record.expired.load();
  for (const auto& [rank, count] : census.available)
    info.available_by_priority.emplace_back(engine::priority_of(store.convention(), rank), count);
  info.lower_first = engine::lower_first(store.convention());
  info.aging = internal::describe_aging(store.convention(), store.aging(record));
  info.aging_is_default = !engine::Aging(record.aging.load()).set();
  for (unsigned part = 1; part < engine::kAgeClasses; ++part)
    if (const std::uint64_t rate = record.age_class[part].load(); engine::is_age_class(rate))
      info.age_rates.push_back(static_cast<std::uint32_t>(rate - 1));
  info.level_weights = internal::describe_weights(store.convention(), record);
  info.tenant_fairness = internal::describe_fairness(store, q);
  info.tenant_max_depth = record.tenant_max_depth.load();
  info.tenant_max_size_bytes = record.tenant_max_bytes.load();
  info.tenant_bounds = internal::describe_tenant_bounds(store, q);
  info.shards = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(record.shards.load(), 1, engine::kParts));
  return info;
}

}  // namespace

std::vector<QueueInfo> Observer::queues() const {
  const engine::Store& store = segment_.attachment()->store();
  const std::vector<Census> census = count_jobs(store);
  std::vector<QueueInfo> infos;
  for (std::uint32_t q = 0; q < store.queue_count(); ++q)
    infos.push_back(describe(store, q, census[q]));
  return infos;
}

Result<QueueInfo> Observer::queue(std::string_view name) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t q = store.find_queue(name);
  if (q == engine::kNoIndex)
    return Error{Code::kNotFound, "no queue '" + std::string(name) + "'", "queue", 0, 0, ""};
  return describe(store, q, count_jobs(store)[q]);
}

std::vector<WorkerPoolInfo> Observer::pools() const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<WorkerPoolInfo> infos;
  for (std::uint32_t i = 0; i < engine::kPools; ++i)
    if (const auto plan = store.pool_plan(i))
      infos.push_back(internal::describe_pool(store, i, *plan));
  return infos;
}

Result<WorkerPoolInfo> Observer::pool(std::string_view name) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t pool = store.find_pool(name);
  const auto plan = pool == engine::kNoIndex ? std::nullopt : store.pool_plan(pool);
  if (!plan) return internal::no_pool(name);
  return internal::describe_pool(store, pool, *plan);
}

Result<JobInfo> Observer::get(std::string_view id) const {
  const engine::Store& store = segment_.attachment()->store();
  const auto parsed = engine::parse_id(id);
  if (!parsed) return internal::not_an_id(id);
  for (int look = 0; look < 1000; ++look) {
    const std::uint32_t slot = store.find_job(*parsed);
    if (slot == engine::kNoIndex) break;
    const auto snapshot = store.snapshot(slot);
    if (snapshot && snapshot->id == *parsed) return internal::info_of(store, *snapshot);
  }
  return Error{Code::kNotFound, "no job with id " + std::string(id), "id", 0, 0, ""};
}

std::vector<Violation> Observer::audit() const {
  std::vector<Violation> violations;
  for (engine::Finding& finding : engine::audit_patiently(segment_.attachment()->store()))
    violations.push_back({finding.invariant, std::move(finding.text)});
  return violations;
}

std::optional<std::int64_t> Observer::default_priority(std::string_view type) const {
  const engine::Store& store = segment_.attachment()->store();
  if (const auto rank = store.type_rank(type))
    return engine::priority_of(store.convention(), *rank);
  return std::nullopt;
}

Result<std::int64_t> Observer::priority_by_name(std::string_view name) const {
  return internal::named_priority(segment_.attachment()->store().convention(), name);
}

}  // namespace ojs_shm
