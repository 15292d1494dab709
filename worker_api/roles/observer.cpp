// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/observer.hpp>

#include "engine/audit/audit.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/type_ranks.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/births.hpp"
#include "worker_api/roles/observer_info.hpp"
#include "worker_api/roles/pools.hpp"
#include "worker_api/roles/results.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/tenant_names.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::Attachment;

Observer::Observer(Segment segment)
    : segment_(std::move(segment)),
      tenants_(std::make_shared<internal::TenantNames>()),
      births_(std::make_shared<internal::Births>()) {}

Result<Observer> Observer::attach(const Segment& segment) { return Observer(segment); }

Result<Observer> Observer::attach(const SegmentName& name) {
  Result<Segment> segment = Segment::observe(name);
  if (!segment) return segment.error();
  return Observer(std::move(segment).value());
}

SegmentInfo Observer::segment_info() const {
  Attachment& attachment = *segment_.attachment();
  engine::Store& store = attachment.store();
  SegmentInfo info = internal::describe_segment(attachment, engine::take_census(store));
  for (unsigned i = 0; i < internal::kPools; ++i)
    info.pools.push_back(internal::pool_info(store, static_cast<internal::Pool>(i)));
  return info;
}

SegmentInfo Observer::segment_settings() const {
  return internal::describe_settings(*segment_.attachment());
}

Maintenance Observer::maintenance() const {
  return internal::describe_maintenance(segment_.attachment()->store());
}

std::vector<QueueInfo> Observer::queues() const {
  const engine::Store& store = segment_.attachment()->store();
  const engine::Census census = engine::take_census(store);
  std::vector<QueueInfo> infos;
  for (std::uint32_t q = 0; q < census.queues.size(); ++q)
    if (!store.deleted(q)) infos.push_back(internal::describe_queue(store, q, census.queues[q]));
  return infos;
}

Result<QueueInfo> Observer::queue(std::string_view name) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t q = store.find_queue(name);
  if (q == engine::kNoIndex || store.deleted(q))
    return Error{Code::kNotFound, "no queue '" + std::string(name) + "'"}.about("queue");
  // A queue that was made since the walk is empty.
  engine::Census census = engine::take_census(store);
  if (q >= census.queues.size()) census.queues.resize(q + 1);
  return internal::describe_queue(store, q, census.queues[q]);
}

std::vector<WorkerPoolInfo> Observer::pools() const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<WorkerPoolInfo> infos;
  for (std::uint32_t i = 0; i < engine::kPools; ++i)
    if (const auto plan = engine::pool_plan(store, i))
      infos.push_back(internal::describe_pool(store, i, *plan));
  return infos;
}

Result<WorkerPoolInfo> Observer::pool(std::string_view name) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t pool = engine::find_pool(store, name);
  const auto plan = pool == engine::kNoIndex ? std::nullopt : engine::pool_plan(store, pool);
  if (!plan) return internal::no_pool(name);
  return internal::describe_pool(store, pool, *plan);
}

Result<JobInfo> Observer::get(std::string_view id) const {
  const engine::Store& store = segment_.attachment()->store();
  const auto parsed = engine::parse_id(id);
  if (!parsed) return internal::not_an_id(id);
  for (int look = 0; look < 1000; ++look) {
    const std::uint32_t slot = engine::find_job(store, *parsed);
    if (slot == engine::kNoIndex) break;
    const auto snapshot = engine::snapshot(store, slot);
    if (snapshot && snapshot->id == *parsed) return internal::info_of(store, *snapshot);
  }
  return internal::no_job(store, id);
}

std::vector<Violation> Observer::audit() const {
  std::vector<Violation> violations;
  for (engine::Finding& finding : engine::audit_patiently(segment_.attachment()->store()))
    violations.push_back({finding.invariant, std::move(finding.text)});
  return violations;
}

std::optional<std::int64_t> Observer::default_priority(std::string_view type) const {
  const engine::Store& store = segment_.attachment()->store();
  if (const auto rank = engine::type_rank(store, type))
    return engine::priority_of(store.convention(), *rank);
  return std::nullopt;
}

Result<std::int64_t> Observer::priority_by_name(std::string_view name) const {
  return internal::named_priority(segment_.attachment()->store().convention(), name);
}

}  // namespace ojs_shm
