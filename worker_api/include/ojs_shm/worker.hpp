// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/registered_worker.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>

namespace ojs_shm {

namespace internal {
struct JobOfWorkflow;
}

/// A job that this process holds. The views stay valid until the Job is fetched into again or
/// destroyed. Destroying a Job does not give it back; ack, nack, requeue and the holder's death do.
class OJS_SHM_API Job {
 public:
  std::string_view id() const { return id_.view(); }
  std::string_view type() const { return part(0, type_length_); }
  std::string_view args() const { return part(type_length_, args_length_); }
  std::string_view extra() const { return part(type_length_ + args_length_, body_.size()); }
  std::string_view queue() const { return queue_; }
  std::int64_t priority() const { return priority_; }
  std::uint16_t attempt() const { return attempt_; }  ///< 1 for the first
  std::uint16_t max_attempts() const { return max_attempts_; }
  std::uint64_t fence() const { return fence_; }  ///< grows with each attempt of this job
  std::uint64_t created_at_ms() const { return created_at_ms_; }
  std::uint64_t enqueued_at_ms() const { return enqueued_at_ms_; }
  std::uint64_t started_at_ms() const { return started_at_ms_; }
  std::uint64_t deadline_ms() const {
    return deadline_ms_;
  }  ///< end of the lease, or of timeout_ms if that is sooner
  std::uint32_t timeout_ms() const { return timeout_ms_; }
  bool valid() const { return segment_ != nullptr; }
  /// True once the job was cancelled, or is no longer held here. One load. Thread-safe.
  bool cancel_requested() const;
  /// Of a job that belongs to a workflow, else empty: the workflow's id, and the results of the
  /// jobs that this job comes after, a JSON array: of a job that failed {"error": {...}}. Each call
  /// looks them up.
  std::string workflow_id() const;
  std::string parent_results() const;
  /// What Worker::checkpoint() kept last, in this attempt or an earlier one; else empty. Each call
  /// looks it up.
  std::string last_checkpoint() const;
  /// Of a job that a cron enqueued, while that cron exists; else empty. Each call looks it up.
  std::string cron_name() const;

 private:
  friend class Worker;
  friend struct internal::JobOfWorkflow;
  /// Empty where the job was moved away.
  std::string_view part(std::size_t begin, std::size_t length) const {
    return begin <= body_.size() ? std::string_view(body_).substr(begin, length)
                                 : std::string_view();
  }
  std::shared_ptr<internal::Attachment> segment_;
  std::string body_;
  std::string_view queue_;
  std::uint64_t fence_ = 0, word_ = 0;
  std::uint64_t created_at_ms_ = 0, enqueued_at_ms_ = 0, started_at_ms_ = 0, deadline_ms_ = 0;
  std::int64_t priority_ = 0;
  std::uint32_t slot_ = 0, type_length_ = 0, args_length_ = 0, timeout_ms_ = 0;
  std::uint16_t attempt_ = 0, max_attempts_ = 0;
  JobIdText id_;
};

/// What a handler reports when it fails.
struct Failure {
  /// DISCARD or FAIL: no retry, and no dead letter; DEAD_LETTER: no retry, and kept as a dead
  /// letter; whatever the job's retry policy says. NON_RETRYABLE_ERROR, JOB_CANCELLED: no retry.
  /// RETRY: as the policy says, whatever `retryable` is. Any other: as both say. Source: ojs-retry
  /// 7.
  std::string_view code = "error";
  std::string_view message = {};
  std::string_view type = {};     ///< the class of the error; empty: the code
  std::string_view details = {};  ///< empty or JSON, not checked
  bool retryable = true;
  /// Until when no job begins that has the same limit as this one (JobSpec::limit), Unix time in
  /// ms: what the service behind it asked for, such as a 429's Retry-After. 0, a time that is past,
  /// and a job without a limit change nothing; of several reports the latest time holds.
  /// Admin::set_limit opens the limit again. Source: ojs-rate-limiting 9.1.
  std::uint64_t rate_limit_until_ms = 0;
};

/// What became of a nacked job.
struct NackOutcome {
  State state = State::kRetryable;  ///< retryable or discarded
  std::uint32_t retry_delay_ms = 0;
  std::uint64_t next_attempt_at_ms = 0;
};

/// What became of an ack_batch().
struct AckedBatch {
  std::size_t acked = 0;
  std::vector<std::size_t> lost;  ///< places in the batch of jobs that were no longer held
};

/// In which order a worker tries its queues.
enum class QueueStrategy : std::uint8_t {
  kStrict = 0,  ///< at each fetch from left to right
  /// in turns, as often as their weights say; a queue without a job gives its turn away
  kWeighted = 1,
};

struct WorkerOptions {
  /// a queue that does not exist yet is made by its first job
  std::vector<std::string> queues = {"default"};
  std::uint32_t lease_ms = 0;  ///< 0: the job's own, else the segment's default
  /// how long an empty fetch spins before it sleeps; 0: 10, or none on a machine with one processor
  std::uint32_t spin_us = 0;
  /// its jobs survive this process's death until their lease ends (for work done elsewhere)
  bool lease_owned = false;
  QueueStrategy strategy = QueueStrategy::kStrict;
  /// kWeighted: one for each queue, 1 to 1,000; empty: all alike
  std::vector<std::uint32_t> weights = {};
  /// The pool whose queues and strategy replace those above. Empty: pool `default`, if it exists.
  std::string pool = {};
  std::uint32_t concurrency = 0;  ///< jobs that this handle has at once; 0: as many as it fetches
  /// Registers a worker under this id, which operators see and direct; handles of the same id are
  /// one worker. Each fetch, heartbeat, progress and beat() is a sign of life; after 30 s without
  /// one, its jobs go to other workers. Empty: it is not registered.
  std::string id = {};
  std::string labels = {};  ///< of that worker: a JSON object
  /// jobs that all handles of that id have at once; 0: this handle's `concurrency`
  std::uint32_t total_concurrency = 0;
};

/// Takes jobs out of queues. One thread at a time may use a Worker; make one for each thread. What
/// takes a Job accepts one that another Worker of this process fetched from the same segment; of
/// another segment it is kInvalid.
class OJS_SHM_API Worker {
 public:
  /// Errors: kInvalid, kNotFound (the pool), kInUse (the worker has another pool), kSegmentFull,
  /// kPermission (the segment only observes), kClosed, kTimeout (a stopped process is in the middle
  /// of changing the worker).
  static Result<Worker> attach(const Segment& segment, const WorkerOptions& options);
  static Result<Worker> attach(const SegmentName& name, const WorkerOptions& options);
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  ~Worker();  ///< gives jobs that it still holds back to the front of their levels

  /// Fetches the best available job into `job`, whose buffers are reused. Errors: kEmpty (also when
  /// this handle holds `concurrency` jobs, and when it is quiet), kClosed (also when it was told to
  /// terminate), kNotFound (its pool was removed).
  Status try_fetch(Job& job);
  /// Waits up to `timeout` for a job; spins first, then sleeps. Errors: kTimeout, kClosed (also
  /// after interrupt()), kNotFound (its pool was removed), kCannotAttach once the segment's file is
  /// gone.
  Status fetch(Job& job, std::chrono::milliseconds timeout);
  /// Fetches up to `count` of the best jobs, in order. Empty: there is none.
  Result<std::vector<Job>> fetch_batch(std::size_t count, std::chrono::milliseconds timeout = {});
  /// Fetches at most into.size() jobs into `into`, whose buffers are reused; returns how many.
  Result<std::size_t> fetch_batch(std::span<Job> into, std::chrono::milliseconds timeout = {});
  /// active -> completed. `result` is JSON or empty, not checked. Errors: kEmpty (here and in the
  /// calls that follow: `job` holds no job), kLost, kTooLarge, kSegmentFull (the job stays active).
  Status ack(Job& job, std::string_view result = {});
  /// Acks each job without a result, all at the same time. Skips jobs that are no longer held, and
  /// lists them. Errors: kEmpty (one of `jobs` holds no job; none was acked).
  Result<AckedBatch> ack_batch(std::span<Job> jobs);
  /// active -> retryable or discarded, by the job's policy. Errors: kLost.
  Result<NackOutcome> nack(Job& job, const Failure& failure);
  /// active -> available at the front of its level; the attempt is not counted. Errors: kLost.
  Status requeue(Job& job);
  /// Extends the lease from now by `lease_ms` (0: its present length); returns its new end. Errors:
  /// kLost.
  Result<std::uint64_t> heartbeat(Job& job, std::uint32_t lease_ms = 0);
  /// 0..1. Renews the lease. A fraction below the attempt's last one changes nothing else, and
  /// is not an error. Errors: kLost, kSegmentFull (the fraction is kept, but not the checkpoint of
  /// an earlier attempt).
  Status progress(Job& job, double fraction);
  /// The same with a text for people and JSON for programs; they replace the earlier ones, also
  /// when empty. `data` is not checked. Errors: also kTooLarge (nothing is changed, not even the
  /// lease), kSegmentFull (only the fraction is kept).
  Status progress(Job& job, double fraction, std::string_view message, std::string_view data = {});
  /// JSON that the next attempt finds in Job::last_checkpoint(), however this one ends; it replaces
  /// the earlier one. Renews the lease, tells no event. Errors: kInvalid (no JSON), kLost,
  /// kTooLarge, kSegmentFull (an earlier one of this attempt is kept). Source: ojs-progress 6.4.
  Status checkpoint(Job& job, std::string_view data);
  /// Of a handle with an id: a sign of life, also while its thread works on a job. Thread-safe.
  void beat();
  /// Of a handle with an id: what its worker does from now on, as lists of workers say it. kQuiet:
  /// it takes no more jobs; kTerminate: it ends when those in hand are done. Changes no directive.
  /// Errors: kInvalid, kInUse (it has another pool), kClosed, kTimeout, kSegmentFull. Source:
  /// ojs-worker-protocol 7.2.
  Status say(WorkerDirective state);
  /// What an operator has asked of it. A quiet handle fetches nothing (kEmpty, kTimeout); a handle
  /// that was told to terminate gets kClosed. Thread-safe.
  WorkerDirective directive() const;
  /// A descriptor that is readable while a job may be waiting; for poll and epoll. Read or call
  /// try_fetch to re-arm.
  Result<int> event_fd();
  /// From now on every fetch of this handle, a running one too, returns kClosed. Thread-safe,
  /// async-signal-safe.
  void interrupt() noexcept;
  /// From now on this handle fetches nothing (kEmpty, kTimeout) until resume(), as when an operator
  /// makes its worker quiet. Thread-safe, async-signal-safe. Source: ojs-graceful-shutdown 4.
  void quiet() noexcept;
  void resume() noexcept;  ///< ends quiet(); thread-safe, async-signal-safe
  const Segment& segment() const;

 private:
  struct Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
