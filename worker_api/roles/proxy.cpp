// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "engine/fetch/turns.hpp"
#include "engine/limits/limits.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/rules/names.hpp"
#include "engine/rules/smooth.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/failure_entry.hpp"
#include "worker_api/roles/proxy_impl.hpp"
#include "worker_api/roles/results.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::check_names;
using internal::Handle;

namespace {

/// Clients that ask for shares of the same queues share their turns; beyond so many sets the turns
/// begin anew.
constexpr std::size_t kMostTurns = 256;
constexpr std::size_t kMostKnownWorkers = 4096;

/// What the queues and weights of one request may cost before it looks at a job: the steps of a
/// cycle's making are its turns times its queues.
constexpr std::uint64_t kMostSteps = 1U << 22;

/// What the job has beside type and args; a snapshot without texts has nothing.
std::string_view extra_of(const engine::Snapshot& job) {
  return std::string_view(job.body).substr(
      std::min<std::size_t>(job.body.size(), std::size_t{job.type_length} + job.args_length));
}

/// Of a tenant is what its hash says, unless the job's own text names another one. A native job may
/// have no such text.
bool names_another(const engine::Snapshot& job, std::string_view tenant) {
  const std::string named = tenant_of(extra_of(job));
  return !named.empty() && named != tenant;
}

/// Such keys stand on all jobs of a queue, a type, a tenant or a pool: what closes them for all is
/// not for a job to say.
bool is_operators_key(const engine::Store& store, std::uint32_t key) {
  if (key >= store.limit_keys.size()) return false;
  const std::string name = engine::limit_name(store, key);
  return std::ranges::any_of(
      std::array{engine::kQueueLimit, engine::kTypeLimit, engine::kTenantLimit, engine::kPoolLimit},
      [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Proxy::Proxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Proxy::Proxy(Proxy&&) noexcept = default;
Proxy& Proxy::operator=(Proxy&&) noexcept = default;
Proxy::~Proxy() = default;

Result<Proxy> Proxy::attach(const Segment& segment) {
  auto producer = Producer::attach(segment);
  if (!producer) return producer.error();
  auto impl = std::make_unique<Impl>();
  impl->producer = producer->impl_;
  impl->handle = impl->producer->handle.get();
  return Proxy(std::move(impl));
}

std::uint64_t Proxy::now_ms() const { return impl_->store().now_ms(); }
const Segment& Proxy::segment() const { return impl_->handle->segment(); }

Status Proxy::Impl::check(const FetchRequest& request) const {
  if (request.queues.empty())
    return internal::invalid_setting("queues", "queues must name at least one queue");
  if (request.queues.size() > kMostFetchQueues)
    return internal::invalid_setting("queues", "a fetch names at most 1000 queues",
                                     kMostFetchQueues);
  if (Status checked = check_names(request.queues); !checked) return checked;
  if (request.weights.empty()) return {};
  if (request.weights.size() != request.queues.size())
    return internal::invalid_setting("weights", "weights must have one number for each queue");
  for (const std::uint32_t weight : request.weights)
    if (weight < 1 || weight > 1000)
      return internal::invalid_setting("weights", "a weight is a number from 1 to 1000", 1000);
  const auto in_all = static_cast<std::uint64_t>(engine::turns_of(request.weights));
  if (in_all * request.queues.size() > kMostSteps)
    return internal::invalid_setting(
        "weights",
        "the weights make too long a cycle of turns for so many queues; give smaller ones");
  return {};
}

engine::WorkerKey Proxy::Impl::worker_of(const FetchRequest& request) {
  if (request.worker.empty()) return {};
  engine::Registry registry(handle->actor());
  const auto known = workers.find(request.worker);
  engine::WorkerKey key =
      known != workers.end() ? known->second : engine::find_worker(store(), request.worker);
  const bool lives = registry.beat(key);
  const bool moves_in =
      lives && !request.pool.empty() && store().workers[key.place()].pool.load() == 0;
  if (lives && known != workers.end() && !moves_in) return key;
  if (!lives || moves_in) {
    // It has said no more of itself than this fetch does, so it promises no signs of life. Where
    // there is no place for it, its jobs are those of a worker that said nothing.
    WorkerReport report{.id = request.worker, .pledges = false};
    if (!lives) report.queues = request.queues;
    if (!request.pool.empty()) report.pool = request.pool;
    const auto made = internal::report_worker(handle->actor(), report, false);
    key = made ? made.value() : engine::WorkerKey();
  }
  if (workers.size() >= kMostKnownWorkers) workers.clear();
  workers[request.worker] = key;
  return key;
}

bool Proxy::Impl::takes_jobs(engine::WorkerKey worker) {
  if (!engine::worker_lives(store(), worker)) return true;
  return engine::takes_jobs(store().workers[worker.place()]);
}

std::size_t Proxy::Impl::room_of(engine::WorkerKey worker, std::uint32_t pool) {
  const auto plan = pool == engine::kNoIndex ? std::nullopt : engine::pool_plan(store(), pool);
  if (!plan || plan->setup.strategy() != engine::PoolStrategy::kLeastLoaded ||
      !engine::worker_lives(store(), worker))
    return std::numeric_limits<std::size_t>::max();
  const std::uint32_t most = engine::WorkerLoad(store().workers[worker.place()].load.load()).most();
  if (most == 0) return std::numeric_limits<std::size_t>::max();
  return most - std::min<std::size_t>(most, engine::jobs_of_worker(store(), worker));
}

/// For a worker that is registered the registry speaks, so the handle itself has no seat in the
/// pool.
Result<Handle*> Proxy::Impl::handle_of_pool(std::uint32_t pool, bool for_worker) {
  auto& known = pools[pool];
  if (!known) {
    auto made = Handle::make(handle->segment());
    if (!made) return made.error();
    known = std::move(made).value();
  }
  engine::PoolWorker& worker = known->actor().pool_worker();
  for_worker ? worker.serve(pool) : worker.join(pool, 0);
  return known.get();
}

template <class Take>
bool Proxy::Impl::in_turn(const FetchRequest& request, const Take& from_queue) {
  const auto from = [&](std::size_t place) {
    return from_queue(store().find_queue(request.queues[place]));
  };
  if (!request.weights.empty()) {
    if (turns.size() == kMostTurns) turns.clear();
    const std::pair shares{request.queues, request.weights};
    auto known = turns.find(shares);
    if (known == turns.end()) {
      const std::uint64_t key = engine::key_of_shares(request.queues, request.weights);
      known =
          turns.try_emplace(shares, request.weights, engine::shared_turn(store(), key), key).first;
    }
    return known->second.serve_next(from);
  }
  for (std::size_t place = 0; place < request.queues.size(); ++place)
    if (from(place)) return true;
  return false;
}

/// One job of the tenant, from the queue whose turn it is of those that have any: of the pool's, or
/// of those asked for.
bool Proxy::Impl::take_of_tenant(engine::TenantFetch& fetch, engine::PoolWorker& worker,
                                 std::uint32_t pool, const FetchRequest& request,
                                 engine::Fetched& job) {
  const auto from = [&](std::uint32_t queue) {
    return queue != engine::kNoIndex &&
           fetch.fetch(queue, request.lease_ms, !request.held, job) == engine::Outcome::kOk;
  };
  if (pool == engine::kNoIndex) return in_turn(request, from);
  engine::PoolTour tour;
  for (std::uint32_t queue = 0; worker.choose(tour, queue) == engine::Outcome::kOk;) {
    if (from(queue)) return worker.count_served(tour), true;
    (void)worker.passed(tour);
  }
  worker.give_turns_back(tour);  // other tenants may have jobs
  return false;
}

/// The pool in which the worker is registered; kNoIndex: in none that there is.
std::uint32_t Proxy::Impl::own_pool(engine::WorkerKey worker) {
  if (!engine::worker_lives(store(), worker)) return engine::kNoIndex;
  return engine::find_pool(store(), store().workers[worker.place()].pool.load());
}

/// The worker's pool, else `default`; kNoIndex: there is none.
std::uint32_t Proxy::Impl::pool_of(engine::WorkerKey worker) {
  const std::uint32_t own = own_pool(worker);
  return own != engine::kNoIndex ? own : engine::find_pool(store(), "default");
}

/// Fetches until there are enough, or none is left.
Status Proxy::Impl::fill(const FetchRequest& request, std::vector<JobInfo>& jobs) {
  const bool named = !request.pool.empty();
  std::uint32_t pool = named ? engine::find_pool(store(), request.pool) : engine::kNoIndex;
  if (named && pool == engine::kNoIndex) return internal::no_pool(request.pool);
  const engine::WorkerKey worker = worker_of(request);
  if (!named) pool = pool_of(worker);
  if (const std::uint32_t own = own_pool(worker); named && own != engine::kNoIndex && own != pool)
    return internal::other_pool(request.worker, engine::pool_name(store(), own));
  if (!takes_jobs(worker)) return {};
  engine::Actor* actor = &handle->actor();
  if (pool != engine::kNoIndex) {
    const auto serving = handle_of_pool(pool, !worker.none());
    if (!serving) return serving.error();
    actor = &serving.value()->actor();
  }
  actor->pool_worker().work_as(worker, request.held);
  const std::size_t most = std::min(request.count, room_of(worker, pool));
  std::optional<engine::TenantFetch> of_tenant;
  if (request.tenant)
    of_tenant.emplace(*actor, store(), engine::hash_tenant(*request.tenant), most);
  std::vector<engine::Snapshot> anothers;
  while (jobs.size() < most && anothers.size() <= most) {
    engine::Fetched got;
    got.body = &body;
    const bool found =
        of_tenant ? take_of_tenant(*of_tenant, actor->pool_worker(), pool, request, got)
        : pool == engine::kNoIndex
            ? in_turn(request, [&](std::uint32_t queue) { return take(queue, request, got); })
            : actor->fetch_from_pool(request.lease_ms, !request.held, got) == engine::Outcome::kOk;
    if (!found) break;
    const auto snapshot = engine::snapshot(store(), got.slot);
    if (!snapshot || snapshot->control.word != got.word) continue;  // cancelled since
    if (request.tenant && names_another(*snapshot, *request.tenant))
      anothers.push_back(*snapshot);
    else
      jobs.push_back(internal::info_of(store(), *snapshot));
  }
  for (const engine::Snapshot& each : anothers)  // now, so that the next look does not find them
    (void)handle->actor().set_back(each.slot, each.control.word, engine::Setback::kRequeue,
                                   nullptr);
  if (!jobs.empty()) engine::Registry(*actor).count(worker, static_cast<std::int32_t>(jobs.size()));
  return {};
}

Result<RegisteredWorker> Proxy::report(const WorkerReport& report) {
  if (impl_->handle->closed()) return internal::closed();
  for (unsigned look = 0; look < 100; ++look) {
    const auto key = internal::report_worker(impl_->handle->actor(), report, false);
    if (!key) return key.error();
    if (auto worker = internal::describe_worker(impl_->store(), key.value()))
      return std::move(*worker);
  }
  return internal::no_worker(report.id);
}

Result<std::vector<JobInfo>> Proxy::fetch(const FetchRequest& request) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = impl_->check(request); !checked) return checked.error();
  for (const auto& [pool, known] : impl_->pools) known->actor().pool_worker().leave_if_gone();
  std::vector<JobInfo> jobs;
  if (Status filled = impl_->fill(request, jobs); !filled) return filled.error();
  return jobs;
}

Result<engine::Snapshot> Proxy::Impl::find(std::string_view id, bool texts) {
  if (handle->closed()) return internal::closed();
  const auto parsed = engine::parse_id(id);
  if (!parsed) return internal::not_an_id(id);
  for (int look = 0; look < 1000; ++look) {
    const std::uint32_t slot = engine::find_job(store(), *parsed);
    if (slot == engine::kNoIndex) break;
    auto snapshot = engine::snapshot(store(), slot, texts);
    if (snapshot && snapshot->id == *parsed) return std::move(*snapshot);
  }
  return internal::error_of(engine::Outcome::kNotFound, store(), engine::kNoIndex, id);
}

Result<engine::Snapshot> Proxy::Impl::hold(std::string_view id, std::uint64_t fence, bool texts) {
  auto found = find(id, texts);
  if (!found) return found;
  if (found->state() != engine::JobState::kActive)
    return internal::wrong_state(id, found->state(), "active");
  if (fence != 0 && found->control.tag() != fence) return error(engine::Outcome::kLost);
  return found;
}

Status Proxy::hand_over(std::string_view id, std::uint64_t fence) {
  const auto held = impl_->hold(id, fence, false);
  if (!held) return held.error();
  const engine::Outcome outcome = impl_->handle->actor().hand_over(held->slot, held->control.word);
  return outcome == engine::Outcome::kOk ? Status() : Status(impl_->error(outcome));
}

Status Proxy::ack(std::string_view id, std::uint64_t fence, std::string_view result) {
  return impl_->with_held(id, fence, !result.empty(), [&](const engine::Snapshot& job) {
    std::uint64_t word = job.control.word;
    const std::string_view kept =
        internal::result_to_keep(result, extra_of(job), (job.signals & engine::kMember) != 0);
    const engine::Outcome outcome = impl_->handle->actor().ack(job.slot, word, kept);
    if (outcome == engine::Outcome::kOk) impl_->leaves(job);
    return outcome;
  });
}

Result<NackOutcome> Proxy::nack(std::string_view id, std::uint64_t fence, const Failure& failure) {
  engine::Settled settled;
  const Status done = impl_->with_held(id, fence, true, [&](const engine::Snapshot& job) {
    engine::ErrorEntry entry =
        internal::entry_of(failure, extra_of(job), job.attempt, impl_->store().now_ms());
    if (is_operators_key(impl_->store(), engine::own_limit(job.limits)))
      entry.close_limit_until = 0;
    return settled = impl_->set_back(job, engine::Setback::kNack, &entry), settled.outcome;
  });
  if (!done) return done.error();
  return NackOutcome{static_cast<State>(settled.state), settled.delay_ms, settled.due_at};
}

Status Proxy::requeue(std::string_view id, std::uint64_t fence) {
  return impl_->with_held(id, fence, false, [&](const engine::Snapshot& job) {
    return impl_->set_back(job, engine::Setback::kRequeue, nullptr).outcome;
  });
}

Result<std::uint64_t> Proxy::heartbeat(std::string_view id, std::uint64_t fence,
                                       std::uint32_t lease_ms) {
  std::uint64_t until = 0;
  const Status done = impl_->with_held(id, fence, false, [&](const engine::Snapshot& job) {
    return impl_->handle->actor().heartbeat(job.slot, job.control.word, lease_ms, until);
  });
  if (!done) return done.error();
  return until;
}

Status Proxy::Impl::report(std::string_view id, std::uint64_t fence, const engine::Report& report) {
  if (report.fraction && !(*report.fraction >= 0.0 && *report.fraction <= 1.0))
    return internal::invalid_setting("progress", "progress is a number from 0 to 1", 1);
  const auto act = [&](const engine::Snapshot& job) {
    std::uint64_t until = 0;
    return handle->actor().report(job.slot, job.control.word, report, until);
  };
  return with_held(id, fence, false, act, "progress");
}

Status Proxy::progress(std::string_view id, std::uint64_t fence, double fraction) {
  return impl_->report(id, fence, {.fraction = fraction});
}

Status Proxy::progress(std::string_view id, std::uint64_t fence, std::optional<double> fraction,
                       std::string_view message, std::string_view data) {
  return impl_->report(id, fence,
                       {.fraction = fraction, .has_texts = true, .message = message, .data = data});
}

Status Proxy::checkpoint(std::string_view id, std::uint64_t fence, std::string_view data) {
  if (Status checked = internal::check_checkpoint(data); !checked) return checked;
  return impl_->report(id, fence, {.fraction = {}, .checkpoint = data});
}

}  // namespace ojs_shm
