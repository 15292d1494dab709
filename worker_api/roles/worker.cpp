// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/job_look.hpp"
#include "worker_api/roles/worker_impl.hpp"

#include <algorithm>
#include <thread>

#include "shm/parking.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/failure_entry.hpp"
#include "worker_api/roles/results.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/sleeper.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::EventBell;
using internal::Handle;
using internal::Sleeper;

bool Job::cancel_requested() const {
  if (!segment_) return true;
  return segment_->store().job(slot_).control.load() != word_;
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Result<Worker> Worker::attach(const Segment& segment, const WorkerOptions& options) {
  if (options.queues.empty())
    return Error{Code::kInvalid, "a worker needs at least one queue"}.about("queues");
  if (Status checked = internal::check_strategy(options); !checked) return checked.error();
  auto handle = Handle::make(segment);
  if (!handle) return handle.error();
  auto impl = std::make_unique<Impl>();
  impl->handle = std::move(handle).value();
  impl->options = options;
  for (unsigned rank = 0; rank < impl->priorities.size(); ++rank)
    impl->priorities[rank] = static_cast<std::int16_t>(
        engine::priority_of(impl->handle->store().convention(), static_cast<std::uint8_t>(rank)));
  if (Status joined = impl->join_pool(); !joined) return joined.error();
  if (impl->pool == engine::kNoIndex)
    if (Status taken = impl->take_queues(options.queues); !taken) return taken.error();
  if (!options.id.empty()) {
    impl->registration = std::make_unique<internal::Registration>(options, impl->queue_names());
    if (Status entered = impl->registration->enter(impl->actor()); !entered) return entered.error();
    impl->note_options();
  }
  impl->spin = std::chrono::microseconds(options.spin_us != 0                      ? options.spin_us
                                         : std::thread::hardware_concurrency() > 1 ? 10
                                                                                   : 0);
  return Worker(std::move(impl));
}

Result<Worker> Worker::attach(const SegmentName& name, const WorkerOptions& options) {
  const Result<Segment> segment = Segment::attach(name);
  if (!segment) return segment.error();
  return attach(segment.value(), options);
}

const Segment& Worker::segment() const { return impl_->handle->segment(); }

/// The numbers of its queues. One that does not exist is made by its first job, so that a misspelt
/// name makes none.
Status Worker::Impl::take_queues(const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted) {
    JobSpec probe;
    probe.type = "x";
    probe.queue = name;
    engine::NewJob found;
    if (const auto fault = internal::read_spec(actor(), probe, found);
        fault != internal::SpecFault::kNone)
      return internal::error_of(fault, probe, handle->store());
  }
  names.resize(handle->store().max_queues());  // now: jobs keep views of them
  look_for_queues();
  return {};
}

std::vector<std::string> Worker::Impl::queue_names() const {
  if (pool == engine::kNoIndex) return options.queues;
  std::vector<std::string> of_pool;
  for (const std::uint32_t queue : queues) of_pool.push_back(names[queue]);
  return of_pool;
}

void Worker::Impl::look_for_queues() {
  engine::Store& store = handle->store();
  if (incomplete && internal::found_queues(store, options.queues).size() == queues.size()) return;
  queues.clear();
  std::vector<std::string> found;
  std::vector<std::uint32_t> weights;
  for (std::size_t i = 0; i < options.queues.size(); ++i) {
    const std::uint32_t queue = store.find_queue(options.queues[i]);
    if (queue == engine::kNoIndex) continue;
    queues.push_back(queue);
    found.push_back(options.queues[i]);
    names[queue] = options.queues[i];
    weights.push_back(options.weights.empty() ? 1 : options.weights[i]);
  }
  incomplete = queues.size() < options.queues.size();
  if (options.strategy == QueueStrategy::kWeighted && !queues.empty()) {
    const std::uint64_t key = engine::key_of_shares(found, weights);
    turns.emplace(weights, engine::shared_turn(store, key), key);
  }
  note_options();
}

void Worker::Impl::note_options() {
  has_options = bell != nullptr || options.concurrency != 0 || pool != engine::kNoIndex ||
                incomplete || queues.empty() || turns.has_value() || registration != nullptr;
}

/// What the segment says of a pool goes before what the worker asks for.
Status Worker::Impl::join_pool() {
  const bool named = !options.pool.empty();
  pool = engine::find_pool(handle->store(), named ? options.pool : "default");
  if (pool == engine::kNoIndex) return named ? Status(internal::no_pool(options.pool)) : Status();
  actor().pool_worker().join(pool, options.concurrency);
  names.resize(handle->store().max_queues());  // now: jobs keep views of them
  follow_pool();
  return {};
}

/// The queues of the pool as it is now, to sleep on.
void Worker::Impl::follow_pool() {
  engine::Store& store = handle->store();
  const auto plan = engine::pool_plan(store, pool);
  if (!plan || plan->queues == queues) return;
  queues = plan->queues;
  for (const std::uint32_t queue : queues)
    if (names[queue].empty()) names[queue] = store.queue_name(queue);
}

[[gnu::noinline]] bool Worker::Impl::count_in_hand() {
  const engine::Store& store = handle->store();
  if (in_hand.size() >= options.concurrency)
    std::erase_if(in_hand, [&](const auto& held) {
      return store.job(held.first).control.load() != held.second;
    });
  const bool is_full = in_hand.size() >= options.concurrency;
  if (pool != engine::kNoIndex) actor().pool_worker().report_full(is_full);
  if (full.get() != is_full) {
    full.set(is_full);
    if (!is_full && bell) bell->look_again();
  }
  return is_full;
}

OJS_SHM_INLINE void Worker::Impl::hand_over(const engine::Fetched& got, Job& job) {
  job.slot_ = got.slot;
  job.word_ = got.word;
  job.attempt_ = got.attempt;
  job.max_attempts_ = got.max_attempts;
  job.type_length_ = got.type_length;
  job.args_length_ = got.args_length;
  job.timeout_ms_ = got.timeout_ms;
  job.created_at_ms_ = got.created_at;
  job.enqueued_at_ms_ = got.available_at;
  job.started_at_ms_ = got.started_at;
  job.deadline_ms_ = got.deadline;
  job.id_.assign(got.id.hi, got.id.lo);
  hand_over(job, got.queue, got.rank);
}

/// From the first of the queues that has one, beginning with that one.
[[gnu::noinline]] Status Worker::Impl::try_each(Job& job, std::size_t begin) {
  engine::Fetched got;
  got.body = &job.body_;
  for (std::size_t i = begin; i < queues.size(); ++i)
    if (fetch_from(queues[i], got) == engine::Outcome::kOk) {
      hand_over(got, job);
      return {};
    }
  return Error{Code::kEmpty};
}

/// From the queue that the pool chooses.
[[gnu::noinline]] Status Worker::Impl::try_in_pool(Job& job) {
  engine::Fetched got;
  got.body = &job.body_;
  switch (actor().fetch_from_pool(options.lease_ms, options.lease_owned, got)) {
    case engine::Outcome::kOk: break;
    case engine::Outcome::kNotFound:
      return internal::no_pool(engine::pool_name(handle->store(), pool));
    default: return Error{Code::kEmpty};
  }
  if (names[got.queue].empty()) names[got.queue] = handle->store().queue_name(got.queue);
  hand_over(got, job);
  return {};
}

/// From the queue whose turn it is.
[[gnu::noinline]] Status Worker::Impl::try_in_turns(Job& job) {
  engine::Fetched got;
  got.body = &job.body_;
  if (!turns->serve_next(
          [&](std::size_t i) { return fetch_from(queues[i], got) == engine::Outcome::kOk; }))
    return Error{Code::kEmpty};
  hand_over(got, job);
  return {};
}

/// With whatever was asked of the worker.
[[gnu::noinline]] Status Worker::Impl::try_with_options(Job& job) {
  if (bell) bell->hush();
  if (registration)
    if (Status may = registration->may_fetch(actor()); !may) return may;
  if (options.concurrency != 0 && at_limit()) return Error{Code::kEmpty};
  if (pool != engine::kNoIndex) return try_in_pool(job);
  if (incomplete) {
    look_for_queues();
    if (queues.empty()) return Error{Code::kEmpty};
  }
  if (turns) return try_in_turns(job);
  return try_each(job, 0);
}

Status Worker::Impl::why_held_up() {
  if (handle->closed() || held_up.has(kInterrupted)) return internal::closed();
  if (bell) bell->hush();
  if (registration)  // which must go on giving signs of life, and may be told to end
    if (Status may = registration->may_fetch(actor()); !may) return may;
  return Error{Code::kEmpty};
}

[[gnu::flatten, gnu::hot]] Status Worker::try_fetch(Job& job) {
  Impl& impl = *impl_;
  if (impl.handle->closed() || impl.held_up.any()) [[unlikely]]
    return impl.why_held_up();
  if (impl.has_options) [[unlikely]]
    return impl.try_with_options(job);
  engine::Fetched got;  // stays in registers, as nothing that is called keeps it
  got.body = &job.body_;
  switch (impl.actor().fetch_plain(impl.queues.front(), impl.options.lease_ms,
                                   impl.options.lease_owned, got)) {
    [[likely]] case engine::Straight::kDone : impl.hand_over(got, job);
    return {};
    case engine::Straight::kEmpty: return impl.try_each(job, 1);
    case engine::Straight::kAside: break;
  }
  return impl.try_each(job, 0);
}

Status Worker::fetch(Job& job, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  Status got = try_fetch(job);
  if (got || got.code() != Code::kEmpty) return got;
  const auto start = Clock::now();
  const auto end = start + internal::within_reach(timeout);
  for (auto until = std::min(start + impl_->spin, end); Clock::now() < until;) {
    for (int i = 0; i < 32; ++i) {
      got = try_fetch(job);
      if (got || got.code() != Code::kEmpty) return got;
      shm::pause_cpu();
    }
  }
  impl_->actor().slots().rest();
  Sleeper sleeper(impl_->actor(), impl_->queues);
  const shm::Half& park = impl_->handle->store().segment().lane(impl_->handle->lane()).park;
  for (;;) {
    const std::uint32_t before = park.load();
    const bool at_limit = impl_->at_limit() || !impl_->takes_jobs();
    if (impl_->pool != engine::kNoIndex) impl_->follow_pool();
    if (impl_->incomplete) impl_->look_for_queues();
    if (!at_limit) sleeper.lie_down();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    const bool slept =
        left > 0 && !impl_->held_up.has(Impl::kInterrupted) && (at_limit || !sleeper.sees_work());
    // Bounded: a wake is lost when its sender, or another whom it woke in our stead, is killed.
    if (slept)
      shm::futex_wait(park, before, std::min<std::uint64_t>(static_cast<std::uint64_t>(left), 100));
    const bool chosen = !at_limit && sleeper.get_up();
    got = try_fetch(job);
    if (got || got.code() != Code::kEmpty) {
      // Its chooser may have put a job into another queue than the one it took its job
      // from.
      if (chosen && got && (!slept || impl_->queues.size() > 1)) sleeper.wake_another();
      return got;
    }
    if (left <= 0) return Error{Code::kTimeout, "no job came in time"};
    if (!chosen && Clock::now() - impl_->looked_for_dead > std::chrono::milliseconds(90)) {
      impl_->looked_for_dead = Clock::now();
      impl_->handle->attachment().repair_the_dead();
      const shm::Segment& segment = impl_->handle->store().segment();
      if (!segment.named())
        return Error{Code::kCannotAttach, "segment " + segment.path() + " was removed"}.about(
            "segment");
    }
  }
}

namespace {
[[gnu::noinline]] Error lost(engine::Outcome outcome, Handle& handle) {
  return internal::error_of(outcome, handle.store(), engine::kNoIndex, "result");
}
}  // namespace

/// Of a job that this attachment did not fetch: another one of the same segment may have.
[[gnu::noinline]] Status Worker::Impl::may_end_foreign(const Job& job) {
  if (!job.valid())
    return Error{Code::kEmpty, "this handle holds no job: fetch one into it first"}.about("job");
  const shm::Segment& theirs = job.segment_->segment();
  if (theirs.header().salt == handle->store().segment().header().salt) return {};
  return Error{Code::kInvalid, "the job was fetched from segment " + theirs.path() +
                                   ": use a worker of that segment"}
      .about("job");
}

[[gnu::flatten, gnu::hot]] Status Worker::ack(Job& job, std::string_view result) {
  if (impl_->handle->closed()) [[unlikely]]
    return internal::closed();
  if (!impl_->fetched_here(job)) [[unlikely]]
    if (Status may = impl_->may_end_foreign(job); !may) return may;
  if (!result.empty() && !job.extra().empty()) [[unlikely]]
    result = internal::result_to_keep(result, job);
  const engine::Outcome outcome = impl_->actor().ack(job.slot_, job.word_, result);
  if (outcome != engine::Outcome::kOk) [[unlikely]]
    return lost(outcome, *impl_->handle);
  (void)impl_->at_limit();
  return {};
}

Result<NackOutcome> Worker::nack(Job& job, const Failure& failure) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status may = impl_->may_end(job); !may) return may.error();
  const engine::ErrorEntry entry =
      internal::entry_of(failure, job.extra(), job.attempt_, impl_->handle->store().now_ms());
  const engine::Settled settled =
      impl_->actor().set_back(job.slot_, job.word_, engine::Setback::kNack, &entry);
  if (settled.outcome != engine::Outcome::kOk) return lost(settled.outcome, *impl_->handle);
  (void)impl_->at_limit();
  return NackOutcome{static_cast<State>(settled.state), settled.delay_ms, settled.due_at};
}

Status Worker::requeue(Job& job) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status may = impl_->may_end(job); !may) return may;
  const engine::Settled settled =
      impl_->actor().set_back(job.slot_, job.word_, engine::Setback::kRequeue, nullptr);
  if (settled.outcome != engine::Outcome::kOk) return lost(settled.outcome, *impl_->handle);
  (void)impl_->at_limit();
  return {};
}

Result<std::uint64_t> Worker::heartbeat(Job& job, std::uint32_t lease_ms) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status may = impl_->may_end(job); !may) return may.error();
  beat();
  std::uint64_t until = 0;
  const engine::Outcome outcome = impl_->actor().heartbeat(job.slot_, job.word_, lease_ms, until);
  if (outcome != engine::Outcome::kOk) return lost(outcome, *impl_->handle);
  job.deadline_ms_ = until;
  return until;
}

void Worker::beat() {
  if (impl_->registration && !impl_->handle->closed())
    (void)impl_->registration->beat(impl_->actor());
}

Status Worker::say(WorkerDirective state) {
  if (impl_->handle->closed()) return internal::closed();
  if (state > WorkerDirective::kTerminate)
    return Error{Code::kInvalid, "a worker's state is kRunning, kQuiet or kTerminate"}.about(
        "state");
  return impl_->registration ? impl_->registration->say(impl_->actor(), state) : Status();
}

WorkerDirective Worker::directive() const {
  return impl_->registration ? impl_->registration->directive(impl_->handle->store())
                             : WorkerDirective::kRunning;
}

Result<int> Worker::event_fd() {
  if (impl_->handle->closed()) return internal::closed();
  if (!impl_->bell) {
    auto handle = Handle::make(segment());
    if (!handle) return handle.error();
    if (impl_->pool != engine::kNoIndex) handle.value()->actor().pool_worker().serve(impl_->pool);
    // While all places are taken it looks once a second: a lease may have ended.
    impl_->bell = std::make_unique<EventBell>(
        std::move(handle).value(), impl_->queues, impl_->awaited(),
        [impl = impl_.get(), looks = 0U]() mutable {
          looks = impl->full.get() ? looks + 1 : 0;
          return impl->is_quiet() || (impl->full.get() && looks % 10 != 0);
        });
    if (impl_->bell->fd() < 0) {
      impl_->bell.reset();
      return internal::no_descriptor();
    }
    impl_->note_options();
  }
  return impl_->bell->fd();
}

void Worker::Impl::hold_up(std::uint32_t reason) noexcept {
  held_up.set(reason);
  if (handle->closed()) return;  // in a fork's child the lane is the parent's
  shm::Half& park = handle->store().segment().lane(handle->lane()).park;
  park.fetch_add(1, shm::Point::kParkSet);
  shm::futex_wake(park, 1);
}

void Worker::interrupt() noexcept { impl_->hold_up(Impl::kInterrupted); }

void Worker::quiet() noexcept { impl_->hold_up(Impl::kQuiet); }

void Worker::resume() noexcept { impl_->held_up.clear(Impl::kQuiet); }

}  // namespace ojs_shm
