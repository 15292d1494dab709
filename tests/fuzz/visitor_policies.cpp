// SPDX-License-Identifier: Apache-2.0
// What a visitor does with limits, pools, tenants and full queues, and with lines of an export.
#include <algorithm>
#include <string>
#include <utility>

#include "tests/fuzz/surroundings.hpp"
#include "tests/fuzz/visitor.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/cron_keeper.hpp"

namespace ojs_shm::fuzz {
namespace {

constexpr std::string_view kQueues[] = {"default", "bounded", "other", "one-too-many"};
constexpr std::string_view kTenants[] = {"", "t0", "t1", "t2"};
constexpr std::string_view kLimits[] = {"k0",          "k1",        "k2",
                                        "k3",          "pool:crew", "queue:default",
                                        "queue:other", "tenant:t1", "type:fuzz.odd"};
constexpr std::string_view kCrons[] = {"nightly", "hourly", "paused", "none"};
constexpr std::string_view kPools[] = {"crew", "default", "night"};

RateLimit some_rate(Input& input) {
  RateLimit limit;
  const unsigned choice = input.byte();
  if ((choice & 1) != 0) limit.concurrency = static_cast<std::uint32_t>(input.below(4));
  if ((choice & 2) != 0) {
    limit.rate = 1 + input.byte();
    limit.rate_period_ms = static_cast<std::uint32_t>(1 + input.number(2));
    limit.sliding = (choice & 4) != 0;
  }
  if ((choice & 8) != 0) {
    limit.throttle = 1 + input.byte();
    limit.throttle_period_ms = static_cast<std::uint32_t>(1 + input.number(2));
    limit.burst = 1 + (choice >> 6);
  }
  limit.on_limit = static_cast<OnLimit>((choice >> 4) % 3);
  return limit;
}

PoolSettings some_pool(Input& input) {
  PoolSettings pool;
  const unsigned choice = input.byte();
  for (unsigned queue = 0; queue < 3; ++queue)
    if ((choice >> queue & 1) != 0) pool.queues.emplace_back(kQueues[queue]);
  if (pool.queues.empty()) pool.queues.emplace_back(kQueues[2]);
  pool.strategy = static_cast<PoolStrategy>(choice >> 3 & 3);
  if (pool.strategy == PoolStrategy::kWeighted)
    pool.weights = {{pool.queues.front(), 1 + input.byte()}};
  pool.concurrency = (choice & 32) != 0 ? input.byte() : 0;
  pool.isolated = (choice & 64) != 0;
  pool.starvation_prevention = {.enabled = (choice & 128) != 0, .rotation_interval_ms = 100};
  return pool;
}

/// One of each kind, and jobs in every state; what does not go together is refused.
std::string some_line(Input& input, std::string_view id) {
  const unsigned choice = input.byte();
  const std::string queue(kQueues[choice >> 3 & 3]), number = std::to_string(input.byte());
  const auto state = std::string(state_name(static_cast<State>(choice >> 5)));
  switch (choice % 8) {
    case 0: return R"({"ojs_shm_export":1,"convention":"ojs"})";
    case 1:
      return R"({"queue":{"name":")" + queue + R"(","settings":{"backpressure":{"max_depth":)" +
             number + "}}}}";
    case 2:
      return R"({"limit":{"key":"k)" + number +
             R"(","override":true,"settings":{"concurrency":1}}})";
    case 3:
      return R"({"pool":{"name":"crew","settings":{"queues":["default",")" + queue +
             R"("],"concurrency":2}}})";
    case 4: return R"({"default_priority":{"type":"fuzz.even","priority":)" + number + "}}";
    case 5: return R"({"job":{"type":"fuzz.odd","queue":")" + queue + R"("}})";
    default:
      return R"({"job":{"id":")" + std::string(id) + R"(","type":"fuzz.even","queue":")" + queue +
             R"(","state":")" + state + R"(","priority":)" + number +
             R"(,"attempt":1,"created_at":"2027-01-15T08:00:00Z",)" +
             R"("extra":{"meta":{"tenant_id":"t)" + number +
             R"("},"rate_limit":{"key":"k0","concurrency":2}}}})";
  }
}

}  // namespace

void look_at_policies(const Observer& seen) {
  for (const LimitInfo& limit : seen.limits())
    require(json::check(print_limit(limit)).ok(), "a limit was printed as something else");
  for (const WorkerPoolInfo& pool : seen.pools())
    require(json::check(print_pool(pool)).ok(), "a pool was printed as something else");
  for (const RegisteredWorker& worker : seen.registered_workers())
    require(json::check(print_registered_worker(worker)).ok(),
            "a worker was printed as something else");
  (void)seen.registered_worker("w0");
  require(json::check(print_scheduling(seen.scheduling_stats())).ok(),
          "statistics were printed as something else");
  for (const CronInfo& cron : seen.crons())
    require(json::check(print_cron(cron)).ok(), "a cron was printed as something else");
  for (const QueueInfo& queue : seen.queues())
    require(json::check(print_queue_policy(queue)).ok(), "a policy was printed as something else");
  (void)seen.limit("k0");
  (void)seen.pool("crew");
  (void)seen.queue("other");
  (void)seen.priority_by_name("urgent");
  std::size_t lines = 0;
  (void)export_segment(seen.segment(), [&](std::string_view line) {
    require(json::check(line).ok(), "a line of an export is something else");
    return ++lines < 1000 ? Status() : Status(Error{Code::kTooLarge});
  });
}

/// A job with a tenant, a limit or a unique key of its own. What it points to lives until the next
/// one.
JobSpec Visitor::some_held_spec(Input& input) {
  JobSpec spec = some_spec(input);
  const unsigned choice = input.byte();
  spec.tenant = kTenants[choice & 3];
  if ((choice & 96) == 96) {
    UniquePolicy policy;
    policy.states = static_cast<std::uint8_t>(1 + input.byte() % 255);
    policy.on_conflict = static_cast<OnConflict>(choice & 3);
    policy.period_ms = input.byte();
    policy.raise_priority = (choice & 16) != 0;
    auto unique = JobUnique::of(spec, policy);  // few types: few keys
    unique_ = unique ? std::optional(*unique) : std::nullopt;
    spec.unique = unique_ ? &*unique_ : nullptr;
  }
  if ((choice & 12) == 0) return spec;
  limit_ = {std::string(kLimits[choice >> 2 & 3]), {}};
  if ((choice & 16) == 0) limit_.limit = some_rate(input);
  spec.limit = &limit_;
  return spec;
}

void Visitor::enqueue_held(Input& input) {
  if (const auto id = producer_->enqueue(some_held_spec(input)); id.ok()) remember(id->view());
  (void)producer_->pressure();
  (void)producer_->deduplicated(input.byte());
}

/// An hour is longer than any run, and most give up long before.
void Visitor::begin(Input& input) {
  const std::vector<JobSpec> specs(1 + input.below(3), some_held_spec(input));
  auto begun = producer_->begin(specs, {.block_timeout = std::chrono::hours(1)});
  if (begun.ok() && waiting_.size() < 8) waiting_.push_back(std::move(*begun));
}

void Visitor::poll(Input& input) {
  if (waiting_.empty()) return;
  const auto one = waiting_.begin() + static_cast<std::ptrdiff_t>(input.below(waiting_.size()));
  (void)one->pressure();
  const auto answer = one->poll();
  (void)one->deadline();
  if (answer && answer->ok())
    for (const JobIdText& id : **answer) remember(id.view());
  if (answer || input.below(2) != 0) waiting_.erase(one);
}

/// Without a wait the place in line is taken and given up at once.
void Visitor::enqueue_patiently(Input& input) {
  const JobSpec spec = some_held_spec(input);
  if (const auto id = producer_->enqueue(spec, {.block_timeout = std::chrono::milliseconds(1)});
      id.ok())
    remember(id->view());
}

void Visitor::fetch_pooled(Input& input) {
  if (pooled_) (void)pooled_->try_fetch(some_job(input));
}

void Visitor::wait(Input& input) {
  (void)producer_->wait(some_id(input), std::chrono::milliseconds(0));
}

void Visitor::set_limit(Input& input) {
  const std::string_view key = kLimits[input.below(std::size(kLimits))];
  (void)admin_->set_limit(key, some_rate(input));
}

void Visitor::clear_limit(Input& input) {
  (void)admin_->clear_limit(kLimits[input.below(std::size(kLimits))]);
}

void Visitor::set_pool(Input& input) {
  const std::string_view name = kPools[input.below(std::size(kPools))];
  (void)admin_->set_pool(name, some_pool(input));
}

void Visitor::create_workflow(Input& input) {
  const unsigned choice = input.byte();
  WorkflowSpec job;
  job.job.type = "fuzz.member";
  job.job.queue = kQueues[choice & 3];
  job.job.expires_at_ms = (choice & 4) != 0 ? 1'000'000'000'000 + input.number(5) : 0;
  WorkflowSpec group;
  group.kind = WorkflowKind::kGroup;
  group.steps.assign(1 + input.below(6), job);
  WorkflowSpec whole;
  whole.kind = (choice & 8) != 0 ? WorkflowKind::kBatch : WorkflowKind::kChain;
  whole.steps = {job, group, job};
  if (whole.kind == WorkflowKind::kBatch) whole.on_complete = {job};
  if (const auto id = producer_->create_workflow(whole)) workflow_ = *id;
}

void Visitor::cancel_workflow(Input&) {
  const Observer observer = Observer::attach(segment_).value();
  for (const WorkflowInfo& each : observer.workflows({.most = 3})) (void)observer.workflow(each.id);
  (void)producer_->cancel_workflow(workflow_);
}

void Visitor::set_cron(Input& input) {
  const unsigned choice = input.byte();
  CronSpec spec;
  spec.name = kCrons[choice & 3];
  spec.expression = (choice & 4) != 0 ? "@every 1s" : "*/5 * * * *";
  spec.overlap = static_cast<CronOverlap>(choice >> 3 & 3);
  spec.enabled = (choice & 32) == 0;
  spec.job = some_held_spec(input);
  spec.job.id = {};
  spec.job.scheduled_at_ms = 0;
  (void)admin_->set_cron(spec);
}

void Visitor::change_cron(Input& input) {
  const unsigned choice = input.byte();
  const std::string_view name = kCrons[choice & 3];
  switch (choice >> 2 & 3) {
    case 0: (void)admin_->remove_cron(name); break;
    case 1: (void)admin_->enable_cron(name, (choice & 16) != 0); break;
    case 2: (void)admin_->trigger_cron(name); break;
    default: {
      const Observer seen = Observer::attach(segment_).value();
      (void)seen.cron(name);
    }
  }
}

void Visitor::fire_crons(Input& input) {
  advance_clock(input.number(2));
  internal::CronKeeper(*actor_).look(segment_.attachment()->store().now_ms());
}

void Visitor::direct_worker(Input& input) {
  const std::string id = "w" + std::to_string(input.below(3));
  const unsigned choice = input.byte();
  if (choice % 4 == 3)
    (void)admin_->remove_worker(id);
  else
    (void)admin_->direct_worker(id, static_cast<WorkerDirective>(choice % 4));
  if (auto named = Worker::attach(segment_, {.id = id}); named.ok()) {
    named->beat();
    (void)named->directive();
  }
}

void Visitor::remove_pool(Input& input) {
  (void)admin_->remove_pool(kPools[input.below(std::size(kPools))]);
}

void Visitor::set_policy(Input& input) {
  QueueSettings settings;
  const unsigned choice = input.byte(), more = input.byte();
  settings.strategy = static_cast<BackpressureStrategy>((choice >> 2) % 3);
  settings.drop = static_cast<DropOrder>(choice >> 4 & 1);
  if ((choice & 32) != 0) settings.max_depth = input.byte() % 64;
  if ((choice & 64) != 0) {
    settings.tenant_fairness.emplace().enabled = (more & 1) != 0;
    settings.tenant_fairness->default_weight = 1 + (more >> 4);
    for (unsigned tenant = 1; tenant < 1 + (more >> 1 & 3); ++tenant)
      settings.tenant_fairness->weights.emplace_back(kTenants[tenant], 1 + input.byte());
  }
  if ((choice & 128) != 0) {
    settings.tenant_max_depth = more;
    settings.tenant_bounds.emplace();
    for (unsigned tenant = 1; tenant < 1 + (more >> 6); ++tenant)
      settings.tenant_bounds->push_back(
          {std::string(kTenants[tenant]), input.byte(), input.number(2)});
  }
  settings.warning_threshold = 0.5;
  settings.clear_threshold = 0.4;
  (void)admin_->set_queue(kQueues[choice & 3], settings);
}

void Visitor::set_default_aging(Input& input) {
  AgingSettings aging;
  const unsigned choice = input.byte();
  aging.enabled = (choice & 1) != 0;
  aging.interval_ms = 1 + input.byte();
  aging.rate = choice >> 1;
  (void)admin_->set_default_aging(aging);
}

void Visitor::unset_default(Input& input) {
  (void)admin_->set_default_priority("fuzz.made" + std::to_string(input.byte()), std::nullopt);
}

void Visitor::import(Input& input) {
  if (!import_) {
    auto made = Import::attach(segment_);
    if (!made.ok()) return;
    import_.emplace(std::move(*made));
    (void)import_->take(R"({"ojs_shm_export":1,"convention":"ojs"})");
  }
  for (std::size_t lines = 1 + input.below(4); lines > 0; --lines) {
    const std::string& id = some_id(input);
    (void)import_->take(some_line(input, id));
  }
}

void Visitor::finish_import(Input&) {
  if (!import_) return;
  (void)import_->finish();
  (void)import_->report();
  import_.reset();
}

}  // namespace ojs_shm::fuzz
