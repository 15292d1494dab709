// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/resilience.hpp>

#include <concurrentqueue/concurrentqueue.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "engine/rules/uuid.hpp"
#include "shm/atomics.hpp"
#include "worker_api/json/id_text.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {

static_assert(sizeof(JobSpec) == 216, "A new text of JobSpec must be one that OwnedJobSpec keeps.");

OwnedJobSpec::OwnedJobSpec(const JobSpec& job)
    : id(job.id),
      plain_(job),
      type_(job.type),
      args_(job.args),
      queue_(job.queue),
      extra_(job.extra),
      tenant_(job.tenant) {
  if (job.limit != nullptr) limit_ = *job.limit;
  if (job.unique != nullptr) unique_ = *job.unique;
}

JobSpec OwnedJobSpec::view() const {
  JobSpec job = plain_;
  job.id = id;
  job.type = type_;
  job.args = args_;
  job.queue = queue_;
  job.extra = extra_;
  job.tenant = tenant_;
  job.limit = limit_ ? &*limit_ : nullptr;
  job.unique = unique_ ? &*unique_ : nullptr;
  return job;
}

std::size_t OwnedJobSpec::bytes() const noexcept {
  return type_.size() + args_.size() + queue_.size() + extra_.size() + tenant_.size();
}

namespace {

using std::chrono::milliseconds;

/// Jobs that were put together and are enqueued together.
struct Parcel {
  std::vector<OwnedJobSpec> jobs;
  std::size_t bytes = 0;
  std::optional<Error> refusal = {};  ///< by which they came here
};

/// What the sender knows about one queue.
struct Lane {
  std::deque<Parcel> parcels;
  milliseconds delay{0};
  Clock::time_point due = Clock::time_point::min();
  Error last = Error{Code::kClosed, "the local buffer was closed before the job was sent"};
};
using Lanes = std::map<std::string, Lane, std::less<>>;

Error buffer_closed() {
  return Error{Code::kClosed, "the local buffer is closed, or belongs to the parent of a fork"};
}

}  // namespace

/// put() counts and hands over under the mutex; the sender takes parcels over, keeps them by queue
/// and brings the first of each queue that is due, all without it. A parcel that has left the
/// buffer is counted out under the mutex again.
struct LocalBuffer::Impl {
  Impl(Producer made, const LocalBufferOptions& wanted, std::shared_ptr<CircuitBreaker> shared,
       std::shared_ptr<Clock> time)
      : producer(std::move(made)),
        options(wanted),
        breaker(std::move(shared)),
        clock(std::move(time)),
        salt(std::random_device{}()) {
    salt = salt << 32 | std::random_device{}();
  }

  bool forked() const { return ::getpid() != process; }
  void run();
  void take_over(Lanes& lanes);
  /// Enqueues the first parcel of each lane that is due; returns when the next parcel is due.
  Clock::time_point bring(Lanes& lanes);
  void bring_first(const std::string& queue, Lane& lane, Clock::time_point now);
  void count_out(const std::string& queue, const Parcel& parcel, bool keep_count);
  engine::JobId next_id();

  Producer producer;  ///< the sender's
  const LocalBufferOptions options;
  const std::shared_ptr<CircuitBreaker> breaker;
  const std::shared_ptr<Clock> clock;
  const pid_t process = ::getpid();
  moodycamel::ConcurrentQueue<Parcel> arrivals;
  shm::LocalFlag in_use;  ///< `waiting` is not empty

  mutable std::mutex mutex;
  std::condition_variable changed;
  /// of all that counts against the bounds
  std::size_t jobs = 0, bytes = 0;
  /// jobs of each queue that are not yet enqueued
  std::map<std::string, std::size_t, std::less<>> waiting;
  std::vector<UnsentJob> failed;
  std::vector<UnsentJob> unsent;  ///< filled at the end of the sender
  std::uint64_t salt;
  engine::IdClock ids;
  bool arrived = false, closing = false;
  std::thread sender;
};

/// Nothing else makes this id: 56 random bits of this buffer stand where the segment's own ids name
/// a slot.
engine::JobId LocalBuffer::Impl::next_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto stamp =
      ids.next(static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(now).count()));
  return engine::make_id(stamp.unix_ms, stamp.seq, 0, 0, salt);
}

void LocalBuffer::Impl::take_over(Lanes& lanes) {
  for (Parcel parcel; arrivals.try_dequeue(parcel);) {
    const std::string queue(parcel.jobs.front().view().queue);
    Lane& lane = lanes[queue];
    if (parcel.refusal) lane.last = *parcel.refusal;
    lane.parcels.push_back(std::move(parcel));
  }
}

void LocalBuffer::Impl::count_out(const std::string& queue, const Parcel& parcel, bool keep_count) {
  if (!keep_count) jobs -= parcel.jobs.size(), bytes -= parcel.bytes;
  const auto found = waiting.find(queue);
  if ((found->second -= parcel.jobs.size()) == 0) waiting.erase(found);
  in_use.set(!waiting.empty());
}

void LocalBuffer::Impl::bring_first(const std::string& queue, Lane& lane, Clock::time_point now) {
  if (breaker) {
    if (auto open = breaker->admit(queue)) {
      lane.due = now + std::chrono::seconds(1);
      return;
    }
  }
  Parcel& parcel = lane.parcels.front();
  std::vector<JobSpec> specs;
  for (const OwnedJobSpec& job : parcel.jobs) specs.push_back(job.view());
  std::optional<Error> error;
  if (specs.size() == 1) {
    if (const auto sent = producer.enqueue(specs.front()); !sent) error = sent.error();
  } else if (const auto sent = producer.enqueue_batch(specs); !sent) {
    error = sent.error();
  }
  if (breaker) breaker->settle(queue, error ? &*error : nullptr);
  if (error && is_refusal(error->code)) {
    lane.delay = next_delay(lane.delay, recommended_delay(*error), options.max_delay);
    lane.due = clock->now() + lane.delay;
    lane.last = *std::move(error);
    return;
  }
  {
    const std::lock_guard lock(mutex);
    count_out(queue, parcel, error.has_value());
    if (error)
      for (OwnedJobSpec& job : parcel.jobs) failed.push_back({std::move(job), *error});
  }
  lane.parcels.pop_front();
  lane.delay = milliseconds(0);
  changed.notify_all();
}

Clock::time_point LocalBuffer::Impl::bring(Lanes& lanes) {
  auto next = Clock::time_point::max();
  for (auto at = lanes.begin(); at != lanes.end();) {
    auto& [queue, lane] = *at;
    if (const auto now = clock->now(); lane.due <= now) bring_first(queue, lane, now);
    if (lane.parcels.empty()) {
      at = lanes.erase(at);
    } else {
      next = std::min(next, lane.due);
      ++at;
    }
  }
  return next;
}

void LocalBuffer::Impl::run() {
  Lanes lanes;
  for (auto next = Clock::time_point::min();;) {
    {
      std::unique_lock lock(mutex);
      while (!closing && !arrived && clock->now() < next) clock->wait(lock, changed, next);
      if (closing) break;
      arrived = false;
    }
    take_over(lanes);
    next = bring(lanes);
  }
  take_over(lanes);
  const std::lock_guard lock(mutex);
  for (auto& [queue, lane] : lanes) {
    for (Parcel& parcel : lane.parcels) {
      count_out(queue, parcel, false);
      for (OwnedJobSpec& job : parcel.jobs) unsent.push_back({std::move(job), lane.last});
    }
  }
}

LocalBuffer::LocalBuffer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::shared_ptr<LocalBuffer>> LocalBuffer::start(const Segment& segment,
                                                        const LocalBufferOptions& options,
                                                        std::shared_ptr<CircuitBreaker> breaker,
                                                        std::shared_ptr<Clock> clock) {
  auto producer = Producer::attach(segment);
  if (!producer) return producer.error();
  auto impl = std::make_unique<Impl>(std::move(producer).value(), options, std::move(breaker),
                                     std::move(clock));
  impl->sender = std::thread([shared = impl.get()] { shared->run(); });
  return std::shared_ptr<LocalBuffer>(new LocalBuffer(std::move(impl)));
}

LocalBuffer::~LocalBuffer() {
  if (impl_->forked()) {
    internal::abandon(impl_->sender);
    (void)impl_.release();  // what the sender may have been in the middle of is the parent's too
  } else {
    (void)close();
  }
}

Result<std::vector<JobIdText>> LocalBuffer::put(std::span<const JobSpec> jobs,
                                                const Error* refusal) {
  Impl& impl = *impl_;
  if (impl.forked()) return buffer_closed();
  if (jobs.empty()) return std::vector<JobIdText>();
  const std::string queue(jobs.front().queue);
  Parcel parcel;
  if (refusal != nullptr) parcel.refusal = *refusal;
  for (const JobSpec& job : jobs) {
    if (job.queue != queue && refusal != nullptr) return *refusal;
    if (job.queue != queue)
      return Error{Code::kInvalid, "the jobs that wait here together go to one queue"}.about(
          "queue");
    if (!job.id.empty() && !engine::parse_id(job.id))
      return Error{Code::kInvalid, internal::not_an_id_text(job.id)}.about("id");
    parcel.jobs.emplace_back(job);
    parcel.bytes += parcel.jobs.back().bytes();
  }
  std::vector<JobIdText> ids;
  {
    const std::lock_guard lock(impl.mutex);
    if (impl.closing) return refusal != nullptr ? *refusal : buffer_closed();
    const bool by_jobs = impl.jobs + jobs.size() > impl.options.max_jobs;
    if (by_jobs || impl.bytes + parcel.bytes > impl.options.max_bytes) {
      const std::size_t bound = by_jobs ? impl.options.max_jobs : impl.options.max_bytes;
      const std::string bound_text = std::to_string(bound) + (by_jobs ? " jobs)" : " bytes)");
      if (refusal != nullptr) {
        Error error = *refusal;
        error.message += "; and the local buffer is full (" + bound_text;
        return error;
      }
      return Error{Code::kQueueFull,
                   "the local buffer of queue '" + queue + "' is full (" + bound_text}
          .about(queue)
          .uses(by_jobs ? impl.jobs : impl.bytes, bound, by_jobs ? "jobs" : "bytes");
    }
    for (OwnedJobSpec& job : parcel.jobs) {
      if (job.id.empty()) job.id = engine::to_string(impl.next_id());
      const engine::JobId id = engine::parse_id(job.id).value();
      ids.emplace_back().assign(id.hi, id.lo);
    }
    const std::size_t bytes = parcel.bytes;
    if (!impl.arrivals.enqueue(std::move(parcel)))
      return Error{Code::kInternal, "no heap memory for the local buffer"}.about("buffer");
    impl.jobs += jobs.size();
    impl.bytes += bytes;
    impl.waiting[queue] += jobs.size();
    impl.in_use.set();
    impl.arrived = true;
  }
  impl.changed.notify_all();
  return ids;
}

bool LocalBuffer::holds(std::string_view queue) const {
  if (!impl_->in_use.get() || impl_->forked()) return false;
  const std::lock_guard lock(impl_->mutex);
  return impl_->waiting.find(queue) != impl_->waiting.end();
}

std::size_t LocalBuffer::jobs() const {
  if (impl_->forked()) return 0;
  const std::lock_guard lock(impl_->mutex);
  return impl_->jobs;
}

Status LocalBuffer::flush(milliseconds timeout) {
  Impl& impl = *impl_;
  if (impl.forked()) return buffer_closed();
  std::unique_lock lock(impl.mutex);
  const Clock::time_point until = impl.clock->now() + internal::within_reach(timeout);
  while (!impl.waiting.empty() && !impl.closing && impl.clock->now() < until)
    impl.clock->wait(lock, impl.changed, until);
  if (impl.waiting.empty()) return {};
  if (impl.closing) return buffer_closed();
  std::uint64_t left = 0;
  for (const auto& [queue, count] : impl.waiting) left += count;
  return Error{Code::kTimeout, std::to_string(left) + " jobs are still in the local buffer"}
      .about("buffer")
      .uses(left, 0, "jobs");
}

std::vector<UnsentJob> LocalBuffer::take_failed() {
  if (impl_->forked()) return {};
  const std::lock_guard lock(impl_->mutex);
  for (const UnsentJob& each : impl_->failed) --impl_->jobs, impl_->bytes -= each.job.bytes();
  return std::exchange(impl_->failed, {});
}

std::vector<UnsentJob> LocalBuffer::close() {
  Impl& impl = *impl_;
  if (impl.forked()) return {};
  std::thread ending;
  {
    const std::lock_guard lock(impl.mutex);
    impl.closing = true;
    ending = std::move(impl.sender);
  }
  impl.changed.notify_all();
  if (ending.joinable()) ending.join();
  std::vector<UnsentJob> all = take_failed();
  const std::lock_guard lock(impl.mutex);
  std::move(impl.unsent.begin(), impl.unsent.end(), std::back_inserter(all));
  impl.unsent.clear();
  return all;
}

}  // namespace ojs_shm
