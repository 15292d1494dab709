// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <string>

#include "engine/limits/limit_setter.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/rules/names.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/id_text.hpp"
#include "worker_api/json/result_ttl.hpp"
#include "worker_api/roles/limit_rule.hpp"
#include "worker_api/roles/pools.hpp"
#include "worker_api/roles/registered_workers.hpp"
#include "worker_api/roles/results.hpp"

// Between the engine's words and the callers': errors and specs.

namespace ojs_shm::internal {

Error no_descriptor() {
  return Error{Code::kInternal, "this process has no descriptor left"}.about("descriptor");
}

[[gnu::noinline]] Error closed() {
  return Error{Code::kClosed, "this handle is closed, or belongs to the parent of a fork"};
}

Error error_of(const shm::Opened& opened) {
  Code code = Code::kInternal;
  switch (opened.code) {
    case shm::OpenCode::kNoFile:
    case shm::OpenCode::kNotASegment:
    case shm::OpenCode::kNotReady:
    case shm::OpenCode::kTorn: code = Code::kCannotAttach; break;
    case shm::OpenCode::kNoPermission: code = Code::kPermission; break;
    case shm::OpenCode::kOtherFormat:
    case shm::OpenCode::kOtherLayout: code = Code::kOtherFormat; break;
    case shm::OpenCode::kExists: code = Code::kInUse; break;
    case shm::OpenCode::kNoSpace: code = Code::kNoSpace; break;
    case shm::OpenCode::kSystem:
    case shm::OpenCode::kOk: break;
  }
  return Error{code, opened.detail}.about("segment");
}

void describe_refusal(const engine::Meeting& met, Error& error) {
  error.depth = met.fullness.depth;
  error.bound = met.fullness.bound;
  error.unit = met.fullness.bytes ? "bytes" : "jobs";
  error.strategy = strategy_name(static_cast<BackpressureStrategy>(met.strategy));
  error.retry_after_ms = met.retry_after_ms;
  const std::string whose =
      !error.tenant ? "Queue '" + error.subject + "' has reached its "
      : error.tenant->empty()
          ? "Queue '" + error.subject + "' has reached, for jobs without a tenant, its "
          : "Tenant '" + *error.tenant + "' has reached, in queue '" + error.subject + "', its ";
  error.message = whose + (met.fullness.bytes ? "size" : "depth") + " bound (" +
                  std::to_string(error.bound) + (met.fullness.bytes ? " bytes)" : ")");
}

std::string tenant_of(const JobSpec& spec) {
  return spec.tenant.empty() ? ojs_shm::tenant_of(spec.extra) : std::string(spec.tenant);
}

[[gnu::noinline]] Error error_of(engine::Outcome outcome, engine::Store& store, std::uint32_t queue,
                                 std::string_view subject) {
  using engine::Outcome;
  const std::string name = queue == engine::kNoIndex ? std::string() : store.queue_name(queue);
  switch (outcome) {
    case Outcome::kOk: break;
    case Outcome::kEmpty: return Error{Code::kEmpty, "no job is available"};
    case Outcome::kQueueFull: {
      engine::QueueRecord& record = store.queue(queue);
      const std::uint64_t now = store.depth_charge(queue);
      const std::uint64_t jobs = engine::charged_jobs(now), bytes = engine::charged_bytes(now);
      const std::uint64_t max_jobs = record.max_depth.load(), max_bytes = record.max_bytes.load();
      const bool by_jobs = max_bytes == 0 || (max_jobs != 0 && jobs >= max_jobs);
      Error error = Error{Code::kQueueFull}.about(name);
      engine::Meeting met;
      met.fullness = by_jobs ? engine::Fullness{jobs, max_jobs, false}
                             : engine::Fullness{bytes, max_bytes, true};
      met.strategy = engine::Backpressure(record.backpressure.load()).strategy();
      met.retry_after_ms = 1000;
      describe_refusal(met, error);
      return error;
    }
    case Outcome::kMustWait:
    case Outcome::kMustDrop:
    case Outcome::kClash:
    case Outcome::kMustReplace:
    case Outcome::kRivalMoved: break;
    case Outcome::kNoAccounts:
      return Error{
          Code::kSegmentFull,
          "all places near by of the " + std::to_string(store.accounts.size()) +
              " accounts of tenants in bounded queues are taken; --max-tenants sets how many "
              "there are"}
          .about("accounts")
          .uses(store.accounts.size(), store.accounts.size(), "accounts");
    case Outcome::kNoTickets:
      return {
          Code::kSegmentFull,
          "all " + std::to_string(store.tickets.size()) +
              " places of those who wait for room are taken; --max-waiting sets how many there are",
          "tickets",
          store.tickets.size(),
          store.tickets.size(),
          "tickets"};
    case Outcome::kNoSlots: return exhausted(store, Pool::kSlots);
    case Outcome::kNoBlocks: return exhausted(store, Pool::kBlocks);
    case Outcome::kNoRings: return exhausted(store, Pool::kLevels);
    case Outcome::kNoChunks: return exhausted(store, Pool::kChunks);
    case Outcome::kNoKeys: return exhausted(store, Pool::kIds);
    case Outcome::kNoQueues: return exhausted(store, Pool::kQueues);
    case Outcome::kDuplicate:
      return Error{Code::kDuplicate, "a job with id " + std::string(subject) + " exists"}.about(
          "id");
    case Outcome::kTooLarge:
      return Error{Code::kTooLarge, "larger than the segment's maximum of " +
                                        std::to_string(store.max_body()) + " bytes (--max-body)"}
          .about(std::string(subject))
          .at_most(store.max_body(), "bytes");
    case Outcome::kNoParts: return exhausted(store, Pool::kParts);
    case Outcome::kLimitsMoved:  // again and again: there are too few
    case Outcome::kNoLimits:
      return Error{Code::kSegmentFull,
                   "all keys of limits (" + std::to_string(store.limit_keys.size()) +
                       ") or all permits (" +
                       std::to_string(store.permit_pages.size() * engine::kPermitsPerPage) +
                       ") are in use; --slots sets how many there are"}
          .about("limits")
          .uses(store.limit_keys.size(), store.limit_keys.size());
    case Outcome::kTooManyRates:
      return Error{
          Code::kInvalid,
          "queue '" + store.queue_name(queue) + "' has had jobs of " +
              std::to_string(engine::kAgeClasses - 1) +
              " other ageing rates, the most there can be: each keeps its place as long as the "
              "queue is there, "
              "also when no job of it waits"}
          .about("priority_age_rate")
          .at_most(engine::kAgeClasses - 1);
    case Outcome::kRateOfShard:
      return Error{Code::kInvalid,
                   "a sharded queue ages at one rate: its jobs bring none of their own"}
          .about("priority_age_rate");
    case Outcome::kNoPools:
      return Error{Code::kSegmentFull,
                   "all " + std::to_string(engine::kPools) +
                       " pools of workers are taken; remove one that is not used"}
          .about("pools")
          .uses(engine::kPools, engine::kPools);
    case Outcome::kNoCrons: return no_cron_left();
    case Outcome::kNoWorkers:
    case Outcome::kOtherPool: return no_worker(subject);
    case Outcome::kQueueIsolated:
      return Error{Code::kInvalid, "one of its queues belongs to another pool that is isolated"}
          .about("isolated");
    case Outcome::kNotFound: return no_job(store, subject);
    case Outcome::kWrongState:
      return Error{Code::kWrongState, "the job's state forbids it"}.about(std::string(subject));
    case Outcome::kLost:
      return Error{Code::kLost,
                   "the job is no longer held here: its lease ended, or it was cancelled"};
    case Outcome::kBusy:
      return Error{Code::kTimeout, "a stopped process is in the middle of changing the job"};
  }
  return Error{Code::kInternal, "unexpected outcome"};
}

Error just_brought(std::string_view what) {
  return Error{Code::kTimeout,
               "another process was enqueueing a job with the same id (" + std::string(what) +
                   ") and has stopped or died; that job may or may not exist: try again"}
      .about("id");
}

namespace {

/// Whose job it is, and the key that it brings.
[[gnu::noinline]] SpecFault read_tenant_and_limit(engine::Actor& actor, const JobSpec& spec,
                                                  engine::NewJob& job) {
  if (spec.tenant.empty() && !tenant_in(spec.extra)) return SpecFault::kTenant;
  if (spec.result_ttl_s || !result_ttl_fits(spec.extra)) return SpecFault::kResultTtl;
  job.tenant = engine::hash_tenant(tenant_of(spec));
  if (spec.limit == nullptr) return SpecFault::kNone;
  if (!check_limit(spec.limit->key, spec.limit->limit, false)) return SpecFault::kLimit;
  job.limits_turn = engine::limits_turn(actor.store());
  std::uint32_t key = engine::kNoIndex;
  switch (engine::LimitSetter(actor).bring(spec.limit->key, settings_of(spec.limit->limit), key)) {
    case engine::Outcome::kOk: break;
    case engine::Outcome::kBusy: return SpecFault::kBusy;
    default: return SpecFault::kNoLimits;
  }
  job.limit = static_cast<std::uint16_t>(key + 1);
  return SpecFault::kNone;
}

}  // namespace

SpecFault check_basics(engine::Actor& actor, const JobSpec& spec, std::uint8_t& rank) {
  if (!actor.known_type(spec.type)) [[unlikely]] {
    if (!engine::valid_type(spec.type)) return SpecFault::kType;
    actor.know_type(spec.type);
  }
  if (spec.args.empty() || spec.args.front() != '[' || spec.args.back() != ']') [[unlikely]]
    return SpecFault::kArgs;
  if (spec.args.size() > 0xFF'FFFF || spec.extra.size() > 0xFF'FFFF) [[unlikely]]
    return SpecFault::kTooLarge;
  if (spec.priority) [[likely]] {
    const auto known = actor.ranks().of(*spec.priority);
    if (!known) [[unlikely]]
      return SpecFault::kPriority;
    rank = *known;
  } else {
    rank = actor.default_rank(spec.type);
  }
  if (const engine::RetryFault fault = engine::validate(retry_of(spec.retry));
      fault != engine::RetryFault::kNone) [[unlikely]]
    return fault == engine::RetryFault::kCoefficient ? SpecFault::kCoefficient
                                                     : SpecFault::kBackoff;
  return SpecFault::kNone;
}

SpecFault read_spec(engine::Actor& actor, const JobSpec& spec, engine::NewJob& job) {
  std::uint8_t rank = 0;
  if (const SpecFault fault = check_basics(actor, spec, rank); fault != SpecFault::kNone)
      [[unlikely]]
    return fault;
  job = basic_job(spec, actor.known_queue(spec.queue), rank);
  if (job.queue == engine::kNoIndex) [[unlikely]] {
    if (!engine::valid_queue_name(spec.queue)) return SpecFault::kQueue;
    job.queue = actor.ensure_queue(spec.queue, false);
  }
  if (!spec.id.empty()) [[unlikely]] {
    job.id = engine::parse_id(spec.id);
    if (!job.id) return SpecFault::kId;
  }
  job.extra = spec.extra;
  job.scheduled_at = spec.scheduled_at_ms;
  job.expires_at = spec.expires_at_ms;
  job.times = {spec.enqueue_ttl_s, spec.total_timeout_s, spec.grace_period_s};
  if (spec.total_timeout_s != 0 && std::uint64_t{spec.total_timeout_s} * 1000 < spec.timeout_ms)
      [[unlikely]]
    return SpecFault::kTotalTimeout;
  job.pending = spec.pending;
  if (spec.priority_age_rate) [[unlikely]] {
    if (*spec.priority_age_rate > engine::Aging::Rate::kMax) return SpecFault::kAgeRate;
    job.age_rate = static_cast<std::uint8_t>(*spec.priority_age_rate);
  }
  job.annex =
      spec.unique == nullptr ? nullptr : static_cast<const engine::NewAnnex*>(spec.unique->annex());
  if (spec.limit != nullptr || !(spec.tenant.empty() && spec.extra.empty() && !spec.result_ttl_s))
      [[unlikely]]
    return read_tenant_and_limit(actor, spec, job);
  return SpecFault::kNone;
}

namespace {

/// How many queues can still be made.
std::size_t queues_left(const engine::Store& store) {
  std::size_t left = 0;
  for (std::uint32_t q = 0; q < store.max_queues(); ++q)
    left += store.queue(q).name_hash.load() == 0;
  return left;
}

}  // namespace

SpecFault Handle::make_queues(std::span<const JobSpec> specs, std::span<engine::NewJob> jobs,
                              std::size_t& at) {
  for (at = 0; const engine::NewJob& job : jobs) {
    if (job.size() > store().max_body()) return SpecFault::kTooLarge;
    if (job.id && engine::find_job(store(), *job.id) != engine::kNoIndex)
      return SpecFault::kDuplicate;
    ++at;
  }
  const auto full = [this] {
    for (std::uint32_t slot = 0; slot < store().slots(); ++slot) {
      const unsigned state = engine::Control(store().job(slot).control.load()).state();
      if (state == engine::kSlotFree || engine::is_finished(state)) return false;
    }
    return true;
  };
  at = 0;
  if (full() && (attachment_->repair_the_dead() == 0 || full())) return SpecFault::kNoSlots;
  const std::size_t left = queues_left(store());
  std::set<std::string_view> fresh;  // a batch that is refused is to make none of them
  for (; at < jobs.size(); ++at)
    if (jobs[at].queue == engine::kNoIndex && fresh.insert(specs[at].queue).second &&
        fresh.size() > left)
      return SpecFault::kNoQueues;
  for (at = 0; at < jobs.size(); ++at) {
    if (jobs[at].queue == engine::kNoIndex) jobs[at].queue = actor_.ensure_queue(specs[at].queue);
    if (jobs[at].queue == engine::kNoIndex) return SpecFault::kNoQueues;
  }
  return SpecFault::kNone;
}

SpecFault Handle::read(const JobSpec& spec, engine::NewJob& job) {
  const auto once = [&] {
    const SpecFault fault = read_spec(actor_, spec, job);
    std::size_t at = 0;
    return fault == SpecFault::kNone && job.queue == engine::kNoIndex
               ? make_queues({&spec, 1}, {&job, 1}, at)
               : fault;
  };
  const SpecFault fault = once();
  return fault == SpecFault::kNoLimits && attachment_->repair_the_dead() != 0 ? once() : fault;
}

[[gnu::noinline]] Error error_of(SpecFault fault, const JobSpec& spec, engine::Store& store) {
  auto invalid = [](std::string member, std::string message, std::uint64_t bound = 0) {
    return Error{Code::kInvalid, std::move(message)}.about(std::move(member)).at_most(bound);
  };
  const engine::ConventionInfo& convention = engine::info(store.convention());
  switch (fault) {
    case SpecFault::kType:
      return invalid("type",
                     "type must be 1 to 255 characters of the form name(.name)*, in lower case",
                     engine::kMaxTypeLength);
    case SpecFault::kArgs: return invalid("args", "args must be a JSON array");
    case SpecFault::kTooLarge:
      return error_of(engine::Outcome::kTooLarge, store, engine::kNoIndex, "args");
    case SpecFault::kQueue:
      return invalid("queue", "queue must be 1 to 128 characters of [a-z0-9.-]",
                     engine::kMaxQueueNameLength);
    case SpecFault::kNoQueues:
      return error_of(engine::Outcome::kNoQueues, store, engine::kNoIndex, "");
    case SpecFault::kNoSlots:
      return error_of(engine::Outcome::kNoSlots, store, engine::kNoIndex, "");
    case SpecFault::kDuplicate:
      return error_of(engine::Outcome::kDuplicate, store, engine::kNoIndex, spec.id);
    case SpecFault::kPriority:
      return invalid("priority",
                     "priority " + std::to_string(spec.priority.value_or(0)) +
                         " is out of range: the minimum is " + std::to_string(convention.min) +
                         " and the maximum is " + std::to_string(convention.max),
                     static_cast<std::uint64_t>(convention.max));
    case SpecFault::kId: return invalid("id", not_an_id_text(spec.id));
    case SpecFault::kCoefficient:
      return invalid("retry.coefficient",
                     "retry.backoff_coefficient must be a number of at least 1");
    case SpecFault::kBackoff:
      return invalid("retry.backoff", "retry.backoff is none of the four strategies");
    case SpecFault::kAgeRate:
      return invalid("priority_age_rate", "priority_age_rate is at most 255",
                     engine::Aging::Rate::kMax);
    case SpecFault::kTenant: return invalid("meta.tenant_id", "meta.tenant_id must be a text");
    case SpecFault::kTotalTimeout:
      return invalid("total_timeout", "total_timeout must not be shorter than timeout");
    case SpecFault::kResultTtl: return wrong_result_ttl(spec);
    case SpecFault::kLimit: return check_limit(spec.limit->key, spec.limit->limit, false).error();
    case SpecFault::kNoLimits:
      return error_of(engine::Outcome::kNoLimits, store, engine::kNoIndex, "");
    case SpecFault::kBusy: return error_of(engine::Outcome::kBusy, store, engine::kNoIndex, "");
    case SpecFault::kNone: break;
  }
  return Error{Code::kInternal, "unexpected fault"};
}

Error not_an_id(std::string_view text, std::string_view whose) {
  return Error{Code::kNotFound, not_an_id_text(text, whose)}.about("id");
}

}  // namespace ojs_shm::internal
