// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/backpressure.hpp>
#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>
#include <ojs_shm/workflow.hpp>

namespace ojs_shm {

/// An enqueue that waits for room without a thread: see Proxy::begin_enqueue() and
/// Producer::begin(). Its destructor gives up the place in line; what was let in before stays
/// stored. One thread at a time may use a producer or proxy together with all enqueues that wait
/// through it.
class OJS_SHM_API WaitingEnqueue {
 public:
  WaitingEnqueue(WaitingEnqueue&&) noexcept;
  WaitingEnqueue& operator=(WaitingEnqueue&&) noexcept;
  ~WaitingEnqueue();

  /// Nothing while it waits; then, at each call, its outcome: the ids, or an error. Never blocks.
  std::optional<Result<std::vector<JobIdText>>> poll();
  /// As Producer::deduplicated(), once the outcome is known.
  bool deduplicated(std::size_t at = 0) const;
  /// As Producer::pressure(), once the outcome is known.
  std::optional<QueuePressure> pressure() const;
  /// When it gives up; poll() then has the error.
  std::chrono::steady_clock::time_point deadline() const;

 private:
  friend class Producer;
  friend class Proxy;
  struct Impl;
  explicit WaitingEnqueue(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Jobs that differ only in args and priority, checked once: see Producer::prepare(). Never
/// changes; any thread may use it, or a copy of it, with a producer of its own.
class OJS_SHM_API PreparedJob {
 public:
  /// One such job, whose texts belong to this object; without `priority` it has the kind's.
  JobSpec with(std::string_view args, std::optional<std::int64_t> priority = {}) const;

 private:
  friend class Producer;
  struct Impl;
  struct JobsOfKind;
  explicit PreparedJob(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// What one job of a prepared batch has of its own.
struct PreparedArgs {
  std::string_view args = "[]";
  std::optional<std::int64_t> priority = {};
};

/// Puts jobs into queues. One thread at a time may use a Producer; make one for each thread. Any
/// change answers kTimeout when a stopped process is in the middle of it.
class OJS_SHM_API Producer {
 public:
  /// Errors: kSegmentFull (no free handle), kPermission (the segment only observes), kClosed.
  static Result<Producer> attach(const Segment& segment);
  /// Attaches to the segment and makes a producer in one step.
  static Result<Producer> attach(const SegmentName& name);
  Producer(Producer&&) noexcept;
  Producer& operator=(Producer&&) noexcept;
  ~Producer();

  /// Once this returns a job id, the job is in the segment and survives the death of every process.
  /// Errors: kInvalid, kTooLarge, kQueueFull, kSegmentFull, kDuplicate, kClosed; then nothing is
  /// stored. A unique job with OnConflict::kIgnore returns the id of the job in its way, and
  /// deduplicated() tells so. kTimeout: another process stopped or died in the middle of an enqueue
  /// with the same id, and it is open whether that job will exist; or a stopped process has its
  /// unique key in hand, or changes a limit, and nothing is stored.
  Result<JobIdText> enqueue(const JobSpec& job);
  Result<JobIdText> enqueue(const JobSpec& job, const EnqueueOptions& options);
  /// Stores all or none, also when the process is killed half-way; those of one queue in this
  /// order. Full queues that drop or that are waited for do so for their share of it. Errors: as
  /// enqueue(); kQueueFull names the queue that refuses.
  Result<std::vector<JobIdText>> enqueue_batch(std::span<const JobSpec> jobs);
  /// The same without allocating the ids: writes them into the first of `ids`, which must have at
  /// least as many elements as `jobs`.
  Status enqueue_batch(std::span<const JobSpec> jobs, std::span<JobIdText> ids);
  /// Checks once what jobs of one kind have in common. Ignores the args of `kind`. A kind with no
  /// more than type, queue, priority, retry policy, timeout_ms and lease_ms is checked whole, and
  /// its queue is made if it does not exist; a job of it that fits into its slot then costs some 75
  /// instructions less to enqueue. Of any other kind, queue and times are checked at each enqueue,
  /// and a job costs as much as by enqueue(). Errors: kInvalid (also for an id or a unique key,
  /// which belong to one job), kSegmentFull (no further queue), kClosed.
  Result<PreparedJob> prepare(const JobSpec& kind);
  /// As enqueue(kind.with(args, priority)); not faster if the kind was prepared in another segment.
  /// Errors: as enqueue().
  Result<JobIdText> enqueue(const PreparedJob& kind, std::string_view args,
                            std::optional<std::int64_t> priority = {});
  /// Stores all or none, in this order. Writes the ids into the first of `ids`.
  Status enqueue_batch(const PreparedJob& kind, std::span<const PreparedArgs> jobs,
                       std::span<JobIdText> ids);
  /// Waits for room for all of them, in the line of one full queue at a time and keeping no room in
  /// the other queues; a batch larger than the bound is refused at once.
  Result<std::vector<JobIdText>> enqueue_batch(std::span<const JobSpec> jobs,
                                               const EnqueueOptions& options);
  /// enqueue_batch() that never blocks: any number of them may wait at once. The jobs are copied.
  /// The caller polls each from time to time; with Proxy::begin_enqueue() a descriptor tells when
  /// to poll. Errors: as enqueue(), except those about room.
  Result<WaitingEnqueue> begin(std::span<const JobSpec> jobs, const EnqueueOptions& options);
  /// How full the queue of the last enqueue is, that job included, if this is above the queue's
  /// warning threshold.
  std::optional<QueuePressure> pressure() const;

  /// Stores all jobs of a workflow or none, also over several queues and when the process is killed
  /// half-way. Returns the workflow's id. Ignores the jobs' own ids. A bound never refuses a job
  /// that comes after other jobs. Errors: kInvalid (`subject` is the place, such as
  /// "$.steps[2].type"), and as enqueue(); it neither waits for room nor drops a job.
  Result<std::string> create_workflow(const WorkflowSpec& workflow);
  /// Cancels all of its jobs that have not begun; active ones may end. Errors: kNotFound,
  /// kWrongState (it has ended).
  Result<WorkflowInfo> cancel_workflow(std::string_view id);
  /// Of the last enqueue or batch that had a unique job: whether the job at that place existed
  /// already, so that no new job was stored for it.
  bool deduplicated(std::size_t at = 0) const;

  /// Waits until the job is finished. Errors: kNotFound, kTimeout, kCannotAttach (the segment's
  /// file is gone).
  Result<JobInfo> wait(std::string_view id, std::chrono::milliseconds timeout);
  Result<JobInfo> get(std::string_view id) const;
  /// Cancels; an active job becomes cancelled at once, and its worker sees that in
  /// Job::cancel_requested(). Errors: kNotFound, kWrongState (finished).
  Result<JobInfo> cancel(std::string_view id);
  /// Changes the priority of an available or scheduled job. Returns the previous one. Errors:
  /// kInvalid (the message names the maximum), kNotFound, kWrongState (also where priorities are
  /// immutable), kSegmentFull.
  Result<std::int64_t> reprioritize(std::string_view id, std::int64_t priority);
  /// pending -> available. Errors: kNotFound, kWrongState.
  Status activate(std::string_view id);
  /// scheduled or retryable -> available now, before its time. Errors: kNotFound, kWrongState.
  Status promote(std::string_view id);
  /// discarded or cancelled -> available, as if it had never been tried: attempt 0, no errors, no
  /// progress, and without an expires_at that is past. Whatever its queue holds. Errors: kNotFound,
  /// kWrongState, kDuplicate (it is unique, and another job has its key). Source: ojs-admin-api
  /// 7.4.
  Status retry(std::string_view id);

  const Segment& segment() const;

 private:
  friend class Admin;
  friend class Proxy;
  friend class WaitingEnqueue;
  struct Impl;
  explicit Producer(std::unique_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  ///< shared with the enqueues that wait
};

}  // namespace ojs_shm
