// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include <ojs_shm/census.hpp>

#include "engine/observing/catalogue.hpp"
#include "engine/observing/census.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/pools/samples.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/limit_info.hpp"
#include "worker_api/roles/observer_info.hpp"
#include "worker_api/roles/registered_workers.hpp"
#include "worker_api/roles/tenant_names.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::Attachment;

namespace internal {

std::string TenantNames::name_of(const engine::Store& store, const engine::Census::Tenant& tenant) {
  if (tenant.tenant == 0) return {};
  const std::lock_guard lock(mutex_);
  if (const auto known = names_.find(tenant.tenant); known != names_.end()) return known->second;
  std::string name = "#" + std::to_string(tenant.tenant);
  const auto job = engine::snapshot(store, tenant.slot);
  if (!job) return name;
  const std::size_t begin = std::size_t{job->type_length} + job->args_length;
  const auto said =
      tenant_in(std::string_view(job->body).substr(std::min(begin, job->body.size())));
  // The slot may have another tenant's job by now.
  if (!said || engine::hash_tenant(*said) != tenant.tenant) return name;
  constexpr std::size_t kMostKnown = 1U << 20;
  if (names_.size() >= kMostKnown) names_.clear();
  names_.emplace(tenant.tenant, *said);
  return *said;
}

}  // namespace internal

namespace {

Durations durations_of(const engine::Spread& spread) {
  return {spread.count(), spread.quantile(50), spread.quantile(99)};
}

/// The columns of the catalogue and their numbers.
void read_catalogue(const engine::Store& store, Census& census) {
  const shm::Catalogue catalogue(store.segment());
  for (std::uint32_t i = 0; i < catalogue.size(); ++i) {
    const auto row = catalogue.row(i);
    if (!row) continue;
    const std::string label(shm::Catalogue::label_of(*row));
    const CounterInfo info{
        row->id, label, std::string(shm::Catalogue::unit_of(*row)),
        row->flow <= 4 ? static_cast<CounterFlow>(row->flow) : CounterFlow::kNone};
    const auto kind = static_cast<shm::CatalogueKind>(row->kind);
    const auto subject = static_cast<engine::Subject>(row->subject);
    if (kind == shm::CatalogueKind::kPool) {
      census.segment.pools.push_back(
          {label, catalogue.in_use(*row), row->rows, row->unit_bytes, "", ""});
    } else if (kind == shm::CatalogueKind::kCounter && subject == engine::Subject::kSegment) {
      census.segment_counters.push_back(info);
      census.segment_values.push_back(catalogue.sum(*row, 0));
    } else if (kind == shm::CatalogueKind::kCounter && subject == engine::Subject::kQueue) {
      census.queue_counters.push_back(info);
      for (std::uint32_t q = 0; q < census.queues.size(); ++q)
        census.queues[q].counters.push_back(catalogue.sum(*row, q));
    }
  }
}

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// The queues for which the lane sleeps.
void add_awaited(const engine::Store& store, std::uint32_t lane, const Census& census,
                 WorkerCensus& worker) {
  for (std::uint32_t q = 0; q < census.queues.size(); ++q)
    if ((store.queue(q).waiters[lane / 64].load() >> lane % 64 & 1) != 0)
      add_new(worker.queues, census.queues[q].info.name);
}

void add_pool(const engine::Store& store, std::uint32_t lane, WorkerCensus& worker) {
  const engine::PoolSeat seat(store.segment().lane(lane).counters[engine::kPoolSeat].get_ordered());
  for (std::uint32_t i = 0; i < engine::kPools; ++i) {
    const auto plan = seat.at(i) ? engine::pool_plan(store, i) : std::nullopt;
    if (!plan) continue;
    add_new(worker.pools, engine::pool_name(store, i));
    for (const std::uint32_t queue : plan->queues) add_new(worker.queues, store.queue_name(queue));
  }
}

WorkerCensus describe_worker(const engine::Store& store, std::uint32_t process,
                             const engine::Census& walked, const Census& census) {
  WorkerCensus worker;
  worker.process = process;
  engine::Census::Lane oldest;
  for (std::uint32_t lane = 0; lane < store.lanes(); ++lane) {
    if (store.segment().lane(lane).process.load() != process + 1) continue;
    const engine::Census::Lane& counted = walked.lanes[lane];
    for (std::uint32_t q = 0; q < census.queues.size(); ++q)
      worker.dispatched_total += store.tally(q, lane).dispatched.get_ordered();
    worker.last_sign_ms = std::max(worker.last_sign_ms, counted.last_sign);
    if (counted.oldest_started_at < oldest.oldest_started_at) oldest = counted;
    add_pool(store, lane, worker);
    for (const std::uint32_t q : counted.queues) add_new(worker.queues, store.queue_name(q));
    add_awaited(store, lane, census, worker);
  }
  std::sort(worker.queues.begin(), worker.queues.end());
  if (oldest.oldest_slot == engine::kNoIndex) return worker;
  worker.oldest_age_ms = walked.now_ms - std::min(walked.now_ms, oldest.oldest_started_at);
  if (const auto job = engine::snapshot(store, oldest.oldest_slot)) {
    worker.oldest_job = engine::to_string(job->id);
    worker.oldest_type = job->body.substr(0, job->type_length);
  }
  return worker;
}

/// Shares by weight are those of the tenants that have jobs waiting, and those of work are of what
/// the queue began in the last minute.
void describe_tenants(const engine::Store& store, const engine::Census& walked,
                      internal::TenantNames& names, Census& census) {
  std::vector<std::uint64_t> weights(census.queues.size()), begun(census.queues.size());
  const auto weight_of = [&store](const engine::Census::Tenant& each) {
    return engine::tenant_weight(store, store.queue(each.queue), each.tenant);
  };
  for (const engine::Census::Tenant& each : walked.tenants) {
    begun[each.queue] += each.begun;
    if (each.available != 0) weights[each.queue] += weight_of(each);
  }
  for (const engine::Census::Tenant& each : walked.tenants) {
    if (each.depth == 0 && each.active == 0 && each.begun == 0) continue;
    const engine::QueueRecord& queue = store.queue(each.queue);
    TenantCensus& tenant = census.tenants.emplace_back();
    tenant.queue = census.queues[each.queue].info.name;
    tenant.tenant = names.name_of(store, each);
    tenant.depth = each.depth;
    tenant.active = each.active;
    tenant.begun_1m = each.begun;
    tenant.oldest_age_ms = walked.now_ms - std::min(walked.now_ms, each.oldest_available_at);
    const engine::Bounds bounds =
        engine::tenant_bounds(store, queue, engine::mix_key(each.queue, each.tenant));
    tenant.max_depth = bounds.max_depth, tenant.max_size_bytes = bounds.max_bytes;
    if ((queue.flags.load() & engine::kFair) != 0) {
      tenant.weight = static_cast<std::uint32_t>(weight_of(each));
      const auto all = static_cast<double>(weights[each.queue]);
      tenant.entitled = each.available == 0 || all == 0 ? 0 : tenant.weight / all;
    }
    if (begun[each.queue] != 0)
      tenant.actual = static_cast<double>(each.begun) / static_cast<double>(begun[each.queue]);
  }
  std::sort(census.tenants.begin(), census.tenants.end(), [](const auto& a, const auto& b) {
    return std::tie(a.queue, a.tenant) < std::tie(b.queue, b.tenant);
  });
}

/// See Census::broker_lost_ms. A broker that ends in order leaves its seat's word empty.
std::uint64_t broker_lost_ms(Attachment& attachment) {
  shm::Segment& segment = attachment.segment();
  const shm::Header& header = segment.header();
  const std::uint32_t holder = header.broker.load();
  if (attachment.post_mortem() || holder == 0 || holder > segment.geometry().processes) return 0;
  const bool alive = attachment.alive(holder - 1);
  if (alive && internal::is_broker(attachment, holder - 1)) return 0;
  // A living process has got the place of the dead one, which a repair made free.
  const bool repaired = alive || segment.process(holder - 1).live.load() == 0;
  return repaired ? header.last_repair_at_ms.load() : engine::last_trace_ms(attachment.store());
}

}  // namespace

Census Observer::census() const {
  Attachment& attachment = *segment_.attachment();
  const engine::Store& store = attachment.store();
  const engine::Census walked = engine::take_census(store);
  Census census;
  census.at_ms = walked.now_ms;
  census.post_mortem = attachment.post_mortem();
  census.broker_lost_ms = broker_lost_ms(attachment);
  census.removed = !attachment.segment().named();
  census.segment = internal::describe_segment(attachment, walked);
  for (std::uint32_t q = 0; q < walked.queues.size(); ++q) {
    QueueCensus& queue = census.queues.emplace_back();
    queue.info = internal::describe_queue(store, q, walked.queues[q]);
    queue.wait = durations_of(walked.queues[q].waited);
    queue.run = durations_of(walked.queues[q].ran);
    const std::uint64_t starved = store.samples[q].starved.load();
    queue.starving = starved % 2 != 0;
    queue.starved_total = engine::starvations(starved);
  }
  read_catalogue(store, census);
  for (const ProcessInfo& process : census.segment.processes)
    census.workers.push_back(describe_worker(store, process.index, walked, census));
  for (std::uint32_t i = 0; i < engine::kPools; ++i) {
    const auto plan = engine::pool_plan(store, i);
    if (!plan) continue;
    engine::PoolLoad load{walked.active_by_pool[i], 0};
    for (const std::uint32_t q : plan->queues)
      if (q < walked.queues.size())
        load.waiting += walked.queues[q].by_state[static_cast<std::size_t>(State::kAvailable)];
    census.pools.push_back(internal::describe_pool(store, i, *plan, load));
  }
  census.registered = internal::describe_workers(store);
  describe_tenants(store, walked, *tenants_, census);
  std::erase_if(census.queues, [&store](const QueueCensus& queue) {
    return store.deleted(store.find_queue(queue.info.name));
  });
  census.limits = internal::describe_limits(store, walked.limits);
  return census;
}

}  // namespace ojs_shm
