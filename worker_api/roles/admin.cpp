// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/admin.hpp>

#include <algorithm>
#include <numeric>

#include "engine/limits/limit_setter.hpp"
#include "engine/supervision/maintenance.hpp"
#include "engine/supervision/retention.hpp"
#include "engine/tables/type_ranks.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "worker_api/roles/admin_impl.hpp"
#include "worker_api/roles/limit_rule.hpp"
#include "worker_api/roles/queue_policy.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::Handle;

Admin::Admin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Admin::Admin(Admin&&) noexcept = default;
Admin& Admin::operator=(Admin&&) noexcept = default;
Admin::~Admin() = default;

Result<Admin> Admin::attach(const Segment& segment) {
  auto handle = Handle::make(segment);
  if (!handle) return handle.error();
  Result<Producer> producer = Producer::attach(segment);
  if (!producer) return producer.error();
  auto impl = std::make_unique<Impl>();
  impl->handle = std::move(handle).value();
  impl->producer.emplace(std::move(producer).value());
  return Admin(std::move(impl));
}

Result<Admin> Admin::attach(const SegmentName& name) {
  const Result<Segment> segment = Segment::attach(name);
  if (!segment) return segment.error();
  return attach(segment.value());
}

const Segment& Admin::segment() const { return impl_->handle->segment(); }
Producer& Admin::producer() { return *impl_->producer; }

namespace {

Error no_rules(const char* subject) {
  return Error{Code::kSegmentFull,
               "all " + std::to_string(engine::kTenantRules) +
                   " places for tenants with a weight or a bound of their own are taken"}
      .about(subject)
      .uses(engine::kTenantRules, engine::kTenantRules);
}

Status share_among_tenants(engine::Actor& actor, std::uint32_t q, const TenantFairness& fairness,
                           const std::vector<std::pair<std::string, std::uint32_t>>& weights) {
  // In lowest terms, so that equal weights are turns of one job each.
  std::uint32_t divisor = fairness.default_weight;
  for (const auto& [tenant, weight] : weights) divisor = std::gcd(divisor, weight);
  for (const auto& [tenant, weight] : weights)
    if (!engine::set_tenant_weight(actor.store(), q, tenant, weight / divisor))
      return no_rules("tenant_fairness.weights");
  for (const auto& [tenant, weight] : internal::describe_fairness(actor.store(), q).weights)
    for (const std::string& name : {tenant, "tenant:" + tenant})  // it may stand under both
      if (std::none_of(weights.begin(), weights.end(),
                       [&](const auto& each) { return each.first == name; }))
        engine::set_tenant_weight(actor.store(), q, name, 0);
  actor.set_fairness(q, engine::Fairness(fairness.enabled, !weights.empty(), fairness.across,
                                         fairness.default_weight / divisor));
  return {};
}

Status bound_tenants(engine::Actor& actor, std::uint32_t q, const QueueSettings& settings) {
  const engine::QueueRecord& record = actor.store().queue(q);
  if (settings.tenant_bounds) {
    const std::vector<TenantBound>& bounds = *settings.tenant_bounds;
    for (const TenantBound& bound : bounds)
      if (!engine::set_tenant_rule_bounds(actor.store(), q, bound.tenant, bound.max_depth,
                                          bound.max_size_bytes))
        return no_rules("backpressure.tenant_bounds");
    for (const TenantBound& before : internal::describe_tenant_bounds(actor.store(), q))
      if (std::none_of(bounds.begin(), bounds.end(),
                       [&](const auto& each) { return each.tenant == before.tenant; }))
        engine::set_tenant_rule_bounds(actor.store(), q, before.tenant, {}, {});
  }
  actor.set_tenant_bounds(
      q, {settings.tenant_max_depth.value_or(record.tenant_max_depth.load()),
          settings.tenant_max_size_bytes.value_or(record.tenant_max_bytes.load())});
  return {};
}

}  // namespace

Status Admin::set_queue(std::string_view name, const QueueSettings& settings) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = internal::check_queue(name, settings); !checked) return checked;
  engine::Actor& actor = impl_->handle->actor();
  const engine::Convention convention = actor.store().convention();
  const auto aging =
      settings.aging ? internal::read_aging(convention, *settings.aging) : engine::Aging();
  if (!aging) return aging.error();
  const auto weights = internal::read_weights(
      convention, settings.level_weights.value_or(std::vector<LevelWeight>{}));
  if (!weights) return weights.error();
  const auto tenants =
      internal::read_tenant_weights(settings.tenant_fairness.value_or(TenantFairness{}));
  if (!tenants) return tenants.error();
  std::uint32_t q = actor.ensure_queue(name, false);  // settings that are refused make no queue
  const engine::QueueRecord* const found =
      q == engine::kNoIndex ? nullptr : &actor.store().queue(q);
  const engine::Aging before = found == nullptr || (settings.aging && settings.aging->inherit)
                                   ? engine::Aging(actor.store().header().aging.load())
                                   : actor.store().aging(*found);
  const bool ages = (aging->set() ? aging.value() : before).enabled();
  const bool weighted = settings.level_weights
                            ? !weights->empty()
                            : found != nullptr && (found->flags.load() & engine::kWeighted) != 0;
  const bool across = settings.tenant_fairness
                          ? settings.tenant_fairness->enabled && settings.tenant_fairness->across
                          : found != nullptr && (found->flags.load() & engine::kAcross) != 0;
  // A process killed between the two has left both behind, and a queue in that state can still be
  // paused or bounded.
  if (settings.aging || settings.level_weights || settings.tenant_fairness)
    if (Status checked = internal::check_order(name, ages, weighted, across); !checked)
      return checked;
  q = actor.ensure_queue(name);
  if (q == engine::kNoIndex)
    return internal::error_of(engine::Outcome::kNoQueues, actor.store(), q, name);
  const engine::QueueRecord& record = actor.store().queue(q);
  const auto done = [&](engine::Outcome outcome) -> Status {
    if (outcome == engine::Outcome::kOk) return {};
    return internal::error_of(outcome, actor.store(), q, name);
  };
  // What may be refused comes first.
  if (settings.shards)
    if (Status set = done(actor.order().set_shards(q, *settings.shards)); !set) return set;
  if (settings.level_weights)
    if (Status set = done(actor.order().set_level_weights(q, weights.value())); !set) return set;
  if (settings.tenant_fairness)
    if (Status set = share_among_tenants(actor, q, *settings.tenant_fairness, tenants.value());
        !set)
      return set;
  if (settings.tenant_max_depth || settings.tenant_max_size_bytes || settings.tenant_bounds)
    if (Status set = bound_tenants(actor, q, settings); !set) return set;
  if (settings.aging) actor.order().set_aging(q, aging.value());
  if (settings.max_depth || settings.max_size_bytes)
    actor.set_bounds(q, settings.max_depth.value_or(record.max_depth.load()),
                     settings.max_size_bytes.value_or(record.max_bytes.load()));
  if (settings.strategy || settings.warning_threshold || settings.clear_threshold || settings.drop)
    actor.set_backpressure(
        q, internal::read_backpressure(settings, engine::Backpressure(record.backpressure.load())));
  if (const QueueRetention& kept = settings.retention;
      kept.completed_ms || kept.discarded_ms || kept.cancelled_ms) {
    const engine::Retention old = engine::Retention::of(record);
    engine::set_retention(
        actor, q,
        {kept.completed_ms.value_or(old.completed_ms), kept.discarded_ms.value_or(old.discarded_ms),
         kept.cancelled_ms.value_or(old.cancelled_ms)});
  }
  if (settings.paused) actor.set_paused(q, *settings.paused);
  if (record.deleted.load() != 0) actor.store().queue(q).deleted.store(0, shm::Point::kSetChanged);
  return {};
}

Status Admin::set_default_aging(const AgingSettings& settings) {
  if (impl_->handle->closed()) return internal::closed();
  engine::Actor& actor = impl_->handle->actor();
  if (Status checked = internal::check_default_aging(actor.store().convention(), settings);
      !checked)
    return checked;
  const auto aging = internal::read_aging(actor.store().convention(), settings);
  for (std::uint32_t q = 0; q < actor.store().queue_count(); ++q) {
    const engine::QueueRecord& record = actor.store().queue(q);
    const bool follows = !engine::Aging(record.aging.load()).set();
    const bool weighted = (record.flags.load() & engine::kWeighted) != 0;
    if (Status checked = internal::check_order(actor.store().queue_name(q),
                                               follows && aging.value().enabled(), weighted, false);
        !checked)
      return checked;
  }
  actor.order().set_default_aging(aging.value());
  return {};
}

Result<bool> Admin::set_pool(std::string_view name, const PoolSettings& settings) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = internal::check_pool(name, settings); !checked) return checked.error();
  engine::Actor& actor = impl_->handle->actor();
  engine::PoolSpec spec = internal::spec_of(settings);
  for (const std::string& queue : settings.queues) {
    spec.queues.push_back(actor.ensure_queue(queue));
    if (spec.queues.back() == engine::kNoIndex)
      return internal::error_of(engine::Outcome::kNoQueues, actor.store(), engine::kNoIndex, queue);
  }
  bool made = false;
  if (const engine::Outcome outcome = engine::Pools(actor).define(name, spec, made);
      outcome != engine::Outcome::kOk)
    return internal::error_of(outcome, actor.store(), engine::kNoIndex, name);
  return made;
}

Status Admin::remove_pool(std::string_view name) {
  if (impl_->handle->closed()) return internal::closed();
  const engine::Outcome outcome = engine::Pools(impl_->handle->actor()).remove(name);
  if (outcome == engine::Outcome::kNotFound) return internal::no_pool(name);
  if (outcome != engine::Outcome::kOk)
    return internal::error_of(outcome, impl_->handle->store(), engine::kNoIndex, name);
  return {};
}

Status Admin::set_limit(std::string_view key, const RateLimit& limit, std::uint64_t expires_at_ms) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = internal::check_limit(key, limit, true); !checked) return checked;
  constexpr std::uint64_t kLatestS = 0xFFFF'FFFF;  // in the year 2106
  const std::uint64_t expires_at_s = (expires_at_ms + 999) / 1000;
  if (expires_at_s > kLatestS ||
      (expires_at_s != 0 && expires_at_ms <= impl_->handle->store().now_ms()))
    return Error{Code::kInvalid, "expires_at must be a time to come, at most in the year 2106"}
        .about("expires_at");
  const engine::Outcome outcome =
      engine::LimitSetter(impl_->handle->actor())
          .define(key, internal::settings_of(limit), static_cast<std::uint32_t>(expires_at_s));
  if (outcome == engine::Outcome::kOk) return {};
  return internal::error_of(outcome, impl_->handle->store(), engine::kNoIndex, key);
}

Status Admin::clear_limit(std::string_view key) {
  if (impl_->handle->closed()) return internal::closed();
  const engine::Outcome outcome = engine::LimitSetter(impl_->handle->actor()).clear(key);
  if (outcome == engine::Outcome::kOk) return {};
  if (outcome == engine::Outcome::kNotFound)
    return Error{Code::kNotFound, "there is no limit with the key '" + std::string(key) + "'"}
        .about("key");
  return internal::error_of(outcome, impl_->handle->store(), engine::kNoIndex, key);
}

Status Admin::set_strict_envelopes(bool on) {
  if (impl_->handle->closed()) return internal::closed();
  impl_->handle->store().header().strict_envelopes.store(on ? 1 : 0, shm::Point::kSetChanged);
  return {};
}

Status Admin::set_immutable_priorities(bool on) {
  if (impl_->handle->closed()) return internal::closed();
  impl_->handle->store().header().priority_changes.store(on ? 2 : 1, shm::Point::kSetChanged);
  return {};
}

Status Admin::set_maintenance(bool on, std::string_view reason, std::uint64_t estimated_end_ms) {
  if (impl_->handle->closed()) return internal::closed();
  if (reason.size() > engine::kReasonBytes)
    return Error{Code::kInvalid,
                 "the reason is longer than " + std::to_string(engine::kReasonBytes) + " bytes"}
        .about("reason")
        .uses(reason.size(), engine::kReasonBytes, "bytes");
  const engine::Outcome outcome =
      engine::Maintenance(impl_->handle->actor()).define(on, reason, on ? estimated_end_ms : 0);
  if (outcome != engine::Outcome::kOk)
    return internal::error_of(outcome, impl_->handle->store(), engine::kNoIndex, "maintenance");
  return {};
}

Status Admin::set_events(bool on) {
  if (impl_->handle->closed()) return internal::closed();
  impl_->handle->actor().tellings().turn(on);
  return {};
}

Status Admin::set_default_priority(std::string_view type, std::optional<std::int64_t> priority) {
  if (impl_->handle->closed()) return internal::closed();
  engine::Actor& actor = impl_->handle->actor();
  if (Status checked = internal::check_type(type); !checked) return checked;
  std::optional<std::uint8_t> rank;
  if (priority) {
    const auto checked = internal::check_priority(actor.store().convention(), *priority);
    if (!checked) return checked.error();
    rank = checked.value();
  }
  if (!engine::set_type_rank(actor.store(), engine::Store::hash_name(type), rank))
    return Error{Code::kSegmentFull, "all 256 default priorities of types are taken"}
        .about("types")
        .uses(256, 256);
  return {};
}

namespace {

/// Of a job that must be `wanted` for it.
template <class Operation>
Status ended(Handle& handle, std::string_view id, std::string_view wanted,
             const Operation& operation) {
  if (handle.closed()) return internal::closed();
  const auto parsed = engine::parse_id(id);
  if (!parsed) return internal::not_an_id(id);
  engine::JobState found{};
  const engine::Outcome outcome = operation(handle.actor(), *parsed, found);
  if (outcome == engine::Outcome::kOk) return {};
  if (outcome == engine::Outcome::kWrongState) return internal::wrong_state(id, found, wanted);
  if (outcome == engine::Outcome::kClash)
    return internal::key_taken(handle.actor().conflicts().clash, id);
  return internal::error_of(outcome, handle.store(), engine::kNoIndex, id);
}

}  // namespace

Status Admin::retry_dead(std::string_view id) {
  return ended(*impl_->handle, id, "a dead letter", [](auto& actor, auto job, auto& found) {
    return actor.retry(job, engine::Lost::kDeadLetter, found);
  });
}
Status Admin::drop_dead(std::string_view id) {
  return ended(*impl_->handle, id, "a dead letter",
               [](auto& actor, auto job, auto& found) { return actor.drop_dead(job, found); });
}
Status Admin::drop(std::string_view id) {
  const Status done =
      ended(*impl_->handle, id, "a job that is over",
            [](auto& actor, auto job, auto& found) { return actor.drop(job, found); });
  if (done.code() != Code::kTimeout) return done;
  const engine::Store& store = impl_->handle->store();
  const std::uint32_t slot = engine::find_job(store, *engine::parse_id(id));
  if (slot == engine::kNoIndex || !engine::kept_for_workflow(store, store.job(slot))) return done;
  return Error{Code::kWrongState, "job " + std::string(id) +
                                      " belongs to a workflow that runs and may ask for its result"}
      .about("workflow");
}

Result<std::uint32_t> Admin::repair() {
  if (impl_->handle->closed()) return internal::closed();
  return impl_->handle->attachment().repair_the_dead();
}

Result<std::uint32_t> Admin::mend() {
  if (impl_->handle->closed()) return internal::closed();
  return impl_->handle->attachment().mend();
}

}  // namespace ojs_shm
