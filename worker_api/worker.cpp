// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/worker.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "engine/turns.hpp"
#include "shm/parking.hpp"
#include "worker_api/attachment.hpp"
#include "worker_api/envelope.hpp"
#include "worker_api/settings_check.hpp"
#include "worker_api/worker_pools.hpp"

namespace ojs_shm {

namespace internal {

/// This lane among the sleepers of some queues, while it lives.
class Sleeper {
 public:
  Sleeper(engine::Actor& actor, const std::vector<std::uint32_t>& queues) : actor_(actor), queues_(queues) {}
  void lie_down() {
    for (const std::uint32_t q : queues_) word(q).fetch_or(bit(), shm::Point::kWaiterSet);  // PAIR idle
  }
  /// Returns true when somebody had already chosen this lane to be woken.
  bool get_up() {
    bool chosen = false;
    for (const std::uint32_t q : queues_)
      chosen = (word(q).fetch_and(~bit(), shm::Point::kWaiterCleared) & bit()) == 0 || chosen;
    return chosen;
  }
  bool sees_work() {
    return std::any_of(queues_.begin(), queues_.end(), [this](std::uint32_t q) { return actor_.sees_work(q); });
  }
  /// Hands a wake on that this lane does not need.
  void wake_another() {
    for (const std::uint32_t q : queues_)
      if (actor_.sees_work(q)) actor_.wake_one(actor_.store().queue(q));
  }

 private:
  shm::Word& word(std::uint32_t q) { return actor_.store().queue(q).waiters[actor_.lane() / 64]; }
  std::uint64_t bit() const { return 1ULL << (actor_.lane() % 64); }
  engine::Actor& actor_;
  const std::vector<std::uint32_t>& queues_;
};

/// Serves an event descriptor: a thread with a lane of its own sleeps among the waiters and fills the descriptor to the
/// brim when there is work; it becomes writable again when somebody has read it.
class EventBell {
 public:
  EventBell(std::unique_ptr<Handle> handle, std::vector<std::uint32_t> queues, std::uint32_t pool)
      : handle_(std::move(handle)),
        queues_(std::move(queues)),
        pool_(pool),
        fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~EventBell() {
    stop_.set();
    hush();
    shm::Half& park = handle_->store().segment().lane(handle_->lane()).park;
    park.fetch_add(1, shm::Point::kParkSet);
    shm::futex_wake(park, 1);
    thread_.join();
    ::close(fd_);
  }
  int fd() const { return fd_; }
  void hush() {
    eventfd_t count = 0;
    ::eventfd_read(fd_, &count);
  }

 private:
  void serve() {
    Sleeper sleeper(handle_->actor(), queues_);
    const shm::Half& park = handle_->store().segment().lane(handle_->lane()).park;
    while (!stop_.get()) {
      const std::uint32_t before = park.load();
      if (pool_ != engine::kNoIndex)
        if (auto plan = handle_->store().pool_plan(pool_)) queues_ = std::move(plan->queues);
      sleeper.lie_down();
      const bool work = sleeper.sees_work();
      if (!work && !stop_.get()) shm::futex_wait(park, before, 100);
      sleeper.get_up();
      if (!work && park.load() == before) continue;
      ::eventfd_write(fd_, 0xFFFF'FFFF'FFFF'FFFEULL);
      pollfd read_by_user{fd_, POLLOUT, 0};
      while (!stop_.get() && ::poll(&read_by_user, 1, 100) == 0) {}
    }
  }
  std::unique_ptr<Handle> handle_;
  std::vector<std::uint32_t> queues_;
  std::uint32_t pool_;  ///< whose queues these are, if it is one
  int fd_;
  shm::LocalFlag stop_;
  std::thread thread_;
};

}  // namespace internal

using internal::EventBell;
using internal::Handle;
using internal::Sleeper;

struct Worker::Impl {
  std::unique_ptr<Handle> handle;
  WorkerOptions options;
  std::vector<std::uint32_t> queues;
  std::vector<std::string> names;              ///< of the queues, by their number, for Job::queue()
  std::array<std::int16_t, 256> priorities{};  ///< by rank
  std::optional<engine::Turns> turns;          ///< of the weighted strategy
  shm::LocalFlag interrupted;
  std::uint32_t pool = engine::kNoIndex;
  std::vector<std::pair<std::uint32_t, std::uint64_t>>
      in_hand;  ///< slot and word of jobs, when there is a limit to them
  std::unique_ptr<EventBell> bell;
  std::chrono::microseconds spin{0};
  std::chrono::steady_clock::time_point looked_for_dead{};

  engine::Actor& actor() { return handle->actor(); }

  engine::Outcome fetch_from(std::uint32_t queue, engine::Fetched& out) {
    return actor().fetch(queue, options.lease_ms, options.lease_owned, out);
  }
  void hand_over(const engine::Fetched& got, Job& job);
  Status try_others(Job& job);
  Status try_in_turns(Job& job);
  Status try_in_pool(Job& job);
  /// Whether as many jobs are in hand as may be: looks at what became of them.
  bool laden();
  Status take_queues(const std::vector<std::string>& wanted);
  Status join_pool();
  void follow_pool();
};

bool Job::cancel_requested() const {
  if (!segment_) return true;
  return segment_->store().job(slot_).control.load() != word_;
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Result<Worker> Worker::attach(const Segment& segment, const WorkerOptions& options) {
  if (options.queues.empty()) return Error{Code::kInvalid, "a worker needs at least one queue", "queues", 0, 0, ""};
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
  if (options.strategy == QueueStrategy::kWeighted)
    impl->turns.emplace(options.weights.empty() ? std::vector<std::uint32_t>(options.queues.size(), 1)
                                                : options.weights);
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

/// The numbers of its queues; those that do not exist are made.
Status Worker::Impl::take_queues(const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted) {
    JobSpec probe;
    probe.type = "x";
    probe.queue = name;
    engine::NewJob found;
    if (const auto fault = internal::read_spec(actor(), probe, found); fault != internal::SpecFault::kNone)
      return internal::error_of(fault, probe, handle->store());
    if (found.queue == engine::kNoIndex) found.queue = actor().ensure_queue(name);
    if (found.queue == engine::kNoIndex)
      return internal::error_of(internal::SpecFault::kNoQueues, probe, handle->store());
    queues.push_back(found.queue);
    if (names.size() <= found.queue) names.resize(found.queue + 1);
    names[found.queue] = name;
  }
  return {};
}

/// What the segment says of a pool goes before what the worker asks for.
Status Worker::Impl::join_pool() {
  const bool named = !options.pool.empty();
  pool = handle->store().find_pool(named ? options.pool : "default");
  if (pool == engine::kNoIndex) return named ? Status(internal::no_pool(options.pool)) : Status();
  actor().join_pool(pool, options.concurrency);
  names.resize(handle->store().max_queues());  // now: jobs keep views of them
  follow_pool();
  return {};
}

/// The queues of the pool as it is now, to sleep on.
void Worker::Impl::follow_pool() {
  engine::Store& store = handle->store();
  const auto plan = store.pool_plan(pool);
  if (!plan || plan->queues == queues) return;
  queues = plan->queues;
  for (const std::uint32_t queue : queues)
    if (names[queue].empty()) names[queue] = store.queue_name(queue);
}

bool Worker::Impl::laden() {
  if (options.concurrency == 0 || in_hand.size() < options.concurrency) return false;
  const engine::Store& store = handle->store();
  std::erase_if(in_hand, [&](const auto& held) { return store.job(held.first).control.load() != held.second; });
  return in_hand.size() >= options.concurrency;
}

OJS_SHM_INLINE void Worker::Impl::hand_over(const engine::Fetched& got, Job& job) {
  if (job.segment_.get() != &handle->attachment()) [[unlikely]]
    job.segment_ = handle->segment().attachment();
  job.slot_ = got.slot;
  job.word_ = got.word;
  job.fence_ = engine::Control(got.word).tag();
  job.queue_ = names[got.queue];
  job.priority_ = priorities[got.rank];
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
  if (options.concurrency != 0) [[unlikely]] {
    in_hand.emplace_back(got.slot, got.word);
    if (pool != engine::kNoIndex) actor().seem_laden(laden());
  }
}

/// From the first of the queues that has one, after the very first had none.
[[gnu::noinline]] Status Worker::Impl::try_others(Job& job) {
  engine::Fetched got;
  got.body = &job.body_;
  for (std::size_t i = 1; i < queues.size(); ++i)
    if (fetch_from(queues[i], got) == engine::Outcome::kOk) {
      hand_over(got, job);
      return {};
    }
  return Error{Code::kEmpty, {}, {}, 0, 0, ""};
}

/// From the queue that the pool chooses.
[[gnu::noinline]] Status Worker::Impl::try_in_pool(Job& job) {
  engine::Fetched got;
  got.body = &job.body_;
  switch (actor().fetch_from_pool(pool, options.lease_ms, options.lease_owned, got)) {
    case engine::Outcome::kOk: break;
    case engine::Outcome::kNotFound: return internal::no_pool(handle->store().pool_name(pool));
    default: return Error{Code::kEmpty, {}, {}, 0, 0, ""};
  }
  if (names[got.queue].empty()) names[got.queue] = handle->store().queue_name(got.queue);
  hand_over(got, job);
  return {};
}

/// From the queue whose turn it is.
[[gnu::noinline]] Status Worker::Impl::try_in_turns(Job& job) {
  engine::Fetched got;
  got.body = &job.body_;
  if (!turns->serve_next([&](std::size_t i) { return fetch_from(queues[i], got) == engine::Outcome::kOk; }))
    return Error{Code::kEmpty, {}, {}, 0, 0, ""};
  hand_over(got, job);
  return {};
}

[[gnu::flatten, gnu::hot]] Status Worker::try_fetch(Job& job) {
  Impl& impl = *impl_;
  if (impl.handle->closed() || impl.interrupted.get()) [[unlikely]]
    return internal::closed();
  if (impl.bell) [[unlikely]]
    impl.bell->hush();
  if (impl.options.concurrency != 0 && impl.laden()) [[unlikely]]
    return Error{Code::kEmpty, {}, {}, 0, 0, ""};
  if (impl.pool != engine::kNoIndex) [[unlikely]]
    return impl.try_in_pool(job);
  if (impl.turns) [[unlikely]]
    return impl.try_in_turns(job);
  engine::Fetched got;  // stays in registers, as nothing that is called keeps it
  got.body = &job.body_;
  if (impl.fetch_from(impl.queues.front(), got) != engine::Outcome::kOk) [[unlikely]]
    return impl.try_others(job);
  impl.hand_over(got, job);
  return {};
}

Status Worker::fetch(Job& job, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  Status got = try_fetch(job);
  if (got || got.code() != Code::kEmpty) return got;
  const auto start = Clock::now();
  const auto end = start + timeout;
  for (auto until = std::min(start + impl_->spin, end); Clock::now() < until;) {
    for (int i = 0; i < 32; ++i) {
      got = try_fetch(job);
      if (got || got.code() != Code::kEmpty) return got;
      shm::pause_cpu();
    }
  }
  impl_->actor().rest();
  Sleeper sleeper(impl_->actor(), impl_->queues);
  const shm::Half& park = impl_->handle->store().segment().lane(impl_->handle->lane()).park;
  for (;;) {
    const std::uint32_t before = park.load();
    const bool laden = impl_->laden();
    if (impl_->pool != engine::kNoIndex) impl_->follow_pool();
    if (!laden) sleeper.lie_down();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    const bool slept = left > 0 && !impl_->interrupted.get() && (laden || !sleeper.sees_work());
    // Bounded: a wake is lost when its sender, or another whom it woke in our stead, is killed.
    if (slept) shm::futex_wait(park, before, std::min<std::uint64_t>(static_cast<std::uint64_t>(left), 100));
    const bool chosen = !laden && sleeper.get_up();
    got = try_fetch(job);
    if (got || got.code() != Code::kEmpty) {
      // Whoever chose this lane may have put a job into another queue than the one it took its job from.
      if (chosen && got && (!slept || impl_->queues.size() > 1)) sleeper.wake_another();
      return got;
    }
    if (left <= 0) return Error{Code::kTimeout, "no job came in time", "", 0, 0, ""};
    if (!chosen && Clock::now() - impl_->looked_for_dead > std::chrono::milliseconds(90)) {
      impl_->looked_for_dead = Clock::now();
      impl_->handle->attachment().repair_the_dead();
      const shm::Segment& segment = impl_->handle->store().segment();
      if (!segment.named())
        return Error{Code::kCannotAttach, "segment " + segment.path() + " was removed", "segment", 0, 0, ""};
    }
  }
}

Result<std::vector<Job>> Worker::fetch_batch(std::size_t count, std::chrono::milliseconds timeout) {
  std::vector<Job> jobs;
  while (jobs.size() < count) {
    Job job;
    const Status got = jobs.empty() && timeout.count() > 0 ? fetch(job, timeout) : try_fetch(job);
    if (got.code() == Code::kEmpty || got.code() == Code::kTimeout) break;
    if (!got) return got.error();
    jobs.push_back(std::move(job));
  }
  return jobs;
}

namespace {
[[gnu::noinline]] Error lost(engine::Outcome outcome, Handle& handle) {
  return internal::error_of(outcome, handle.store(), engine::kNoIndex, "result");
}
}  // namespace

[[gnu::flatten, gnu::hot]] Status Worker::ack(Job& job, std::string_view result) {
  if (impl_->handle->closed()) [[unlikely]]
    return internal::closed();
  if (!job.valid()) [[unlikely]]
    return lost(engine::Outcome::kLost, *impl_->handle);
  const engine::Outcome outcome = impl_->actor().ack(job.slot_, job.word_, result);
  if (outcome == engine::Outcome::kOk) [[likely]]
    return {};
  return lost(outcome, *impl_->handle);
}

Result<NackOutcome> Worker::nack(Job& job, const Failure& failure) {
  if (impl_->handle->closed()) return internal::closed();
  if (!job.valid()) return lost(engine::Outcome::kLost, *impl_->handle);
  engine::ErrorEntry entry;
  entry.at_ms = impl_->handle->store().now_ms();
  entry.attempt = job.attempt_;
  entry.code = failure.code;
  entry.type = failure.type.empty() ? failure.code : failure.type;
  entry.retryable = failure.retryable && (job.extra().empty() || !forbids_retry(job.extra(), entry.type));
  entry.message = failure.message;
  entry.details = failure.details;
  const engine::Settled settled = impl_->actor().set_back(job.slot_, job.word_, engine::Setback::kNack, &entry);
  if (settled.outcome != engine::Outcome::kOk) return lost(settled.outcome, *impl_->handle);
  return NackOutcome{static_cast<State>(settled.state), settled.delay_ms, settled.due_at};
}

Status Worker::requeue(Job& job) {
  if (impl_->handle->closed()) return internal::closed();
  if (!job.valid()) return lost(engine::Outcome::kLost, *impl_->handle);
  const engine::Settled settled = impl_->actor().set_back(job.slot_, job.word_, engine::Setback::kRequeue, nullptr);
  if (settled.outcome != engine::Outcome::kOk) return lost(settled.outcome, *impl_->handle);
  return {};
}

Result<std::uint64_t> Worker::heartbeat(Job& job, std::uint32_t lease_ms) {
  if (impl_->handle->closed()) return internal::closed();
  std::uint64_t until = 0;
  const engine::Outcome outcome =
      job.valid() ? impl_->actor().heartbeat(job.slot_, job.word_, lease_ms, until) : engine::Outcome::kLost;
  if (outcome != engine::Outcome::kOk) return lost(outcome, *impl_->handle);
  job.deadline_ms_ = until;
  return until;
}

Status Worker::progress(Job& job, double fraction) {
  if (impl_->handle->closed()) return internal::closed();
  if (!(fraction >= 0.0 && fraction <= 1.0))
    return Error{Code::kInvalid, "progress is a number from 0 to 1", "progress", 0, 1, ""};
  const engine::Outcome outcome =
      job.valid() ? impl_->actor().progress(job.slot_, job.word_, fraction) : engine::Outcome::kLost;
  if (outcome != engine::Outcome::kOk) return lost(outcome, *impl_->handle);
  return {};
}

Result<int> Worker::event_fd() {
  if (impl_->handle->closed()) return internal::closed();
  if (!impl_->bell) {
    auto handle = Handle::make(segment());
    if (!handle) return handle.error();
    if (impl_->pool != engine::kNoIndex) handle.value()->actor().serve_pool(impl_->pool);
    impl_->bell = std::make_unique<EventBell>(std::move(handle).value(), impl_->queues, impl_->pool);
  }
  return impl_->bell->fd();
}

void Worker::interrupt() noexcept {
  impl_->interrupted.set();
  shm::Half& park = impl_->handle->store().segment().lane(impl_->handle->lane()).park;
  park.fetch_add(1, shm::Point::kParkSet);
  shm::futex_wake(park, 1);
}

}  // namespace ojs_shm
