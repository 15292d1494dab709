// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/registered_worker.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>
#include <ojs_shm/worker.hpp>

namespace ojs_shm {

/// The most queues that one fetch names.
constexpr std::size_t kMostFetchQueues = 1000;

/// What one fetch asks for.
struct FetchRequest {
  /// tried at each fetch from left to right, or as `weights` say; 1,000 at most; ignored when a
  /// pool is named
  std::vector<std::string> queues = {"default"};
  /// one for each queue, 1 to 1,000: how many turns each has; empty: strict. All turns, by smallest
  /// whole numbers, times the queues are 2^22 at most.
  std::vector<std::uint32_t> weights = {};
  /// whose queues and strategy hold; empty: the pool in which the worker is registered, else pool
  /// `default`, if any
  std::string pool = {};
  std::uint32_t lease_ms = 0;  ///< 0: the job's own, else the segment's default
  std::size_t count = 1;
  /// Only this tenant's jobs, whatever is ahead of them, from the queue whose turn it is of those
  /// that have any; best level first. Such a fetch looks at every slot of the segment.
  std::optional<std::string> tenant = {};
  /// Id of the worker that gets the jobs; empty: an unnamed worker. A worker that was told to take
  /// no more gets none.
  std::string worker = {};
  /// true: until hand_over() the jobs belong to this process; if it ends before, they become
  /// available at once, and the attempt is not counted. false: they belong to their lease from the
  /// start.
  bool held = false;
};

/// Works for many clients on one handle: each call names its job. Any process of the segment may
/// end a job by its id. One thread at a time.
///
/// `fence` is JobInfo::fence of the attempt that is meant; 0: the present attempt. Errors of all
/// calls that take an id: kNotFound, kWrongState (not active; `subject` is the state), kLost
/// (another attempt runs).
class OJS_SHM_API Proxy {
 public:
  /// Errors: kSegmentFull (no free handle), kPermission (the segment only observes), kClosed.
  static Result<Proxy> attach(const Segment& segment);
  Proxy(Proxy&&) noexcept;
  Proxy& operator=(Proxy&&) noexcept;
  ~Proxy();

  /// The best available jobs, in order; empty when there is none. Errors: kInvalid, kNotFound (the
  /// pool), kInUse (the worker is registered in another pool), kSegmentFull (no handle for the
  /// pool).
  Result<std::vector<JobInfo>> fetch(const FetchRequest& request);

  // One descriptor, for event loops in which any number of requests wait. It becomes readable when
  // something awaited may have happened, also when it had happened before the call. Read it, then
  // check everything that is awaited: reading arms it again. It belongs to this object, and costs a
  // thread and a second handle from the first of these calls on. Errors: kSegmentFull (no free
  // handle), kClosed.

  Result<int> descriptor();

  /// Awaits jobs of these queues, and of the queues of these pools; then call fetch(). Another call
  /// replaces them; with none of either it awaits no jobs. Errors: also kInvalid.
  Result<int> await_jobs(const std::vector<std::string>& queues,
                         const std::vector<std::string>& pools = {});
  /// Awaits the end of this job, besides the jobs that are awaited already; then call take_ended().
  /// Errors: also kNotFound (no job can have that id).
  Result<int> await_end(std::string_view id);
  void forget_end(std::string_view id);
  /// The awaited jobs that have ended or no longer exist. They are not awaited any more.
  std::vector<std::string> take_ended();
  /// Awaits events, some 30 ms after they were told, when EventReader::next() gives them out.
  Result<int> await_events(bool on = true);
  /// Producer::begin(), and awaits its outcome; take_decided() then names it by `tag`. The
  /// descriptor becomes readable when it is decided, also by its timeout. Errors: also as
  /// Producer::begin().
  Result<WaitingEnqueue> begin_enqueue(std::span<const JobSpec> jobs, const EnqueueOptions& options,
                                       std::uint64_t tag = 0);
  /// The tags of those enqueues that are decided, in the order in which they were, and whose
  /// WaitingEnqueue::poll() has not said so yet; it does from now on. Each once. Looks at those
  /// whose turn it is, not at all that wait. Where there are more than `most` the descriptor stays
  /// readable.
  std::vector<std::uint64_t> take_decided(
      std::size_t most = std::numeric_limits<std::size_t>::max());

  /// For a job that was fetched with `held`: the client has it, so from now on it belongs to its
  /// lease, also when this process ends; the fence stays. Errors: kLost also when it was handed
  /// over before.
  Status hand_over(std::string_view id, std::uint64_t fence);
  /// active -> completed. Errors: also kTooLarge, kSegmentFull (the job stays active).
  Status ack(std::string_view id, std::uint64_t fence, std::string_view result = {});
  Result<NackOutcome> nack(std::string_view id, std::uint64_t fence, const Failure& failure);
  Status requeue(std::string_view id, std::uint64_t fence);
  /// Returns the lease's new end; `lease_ms` 0: its present length.
  Result<std::uint64_t> heartbeat(std::string_view id, std::uint64_t fence,
                                  std::uint32_t lease_ms = 0);
  /// 0..1. Renews the lease. A report behind the last one of its attempt changes nothing else.
  Status progress(std::string_view id, std::uint64_t fence, double fraction);
  /// The same with texts, as Worker::progress() has them. Without a fraction the progress stays as
  /// it was. Errors: also kTooLarge, kSegmentFull.
  Status progress(std::string_view id, std::uint64_t fence, std::optional<double> fraction,
                  std::string_view message, std::string_view data = {});
  /// As Worker::checkpoint().
  Status checkpoint(std::string_view id, std::uint64_t fence, std::string_view data);
  /// Registers a worker or updates its record, and counts as a sign of life. Returns the record.
  /// Errors: kInvalid (`subject` is the member), kInUse (it has another pool), kSegmentFull,
  /// kTimeout.
  Result<RegisteredWorker> report(const WorkerReport& report);
  /// Unix time by the segment's clock, in milliseconds.
  std::uint64_t now_ms() const;
  const Segment& segment() const;

 private:
  struct Impl;
  explicit Proxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
