// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/cron.hpp>
#include <ojs_shm/export.hpp>
#include <ojs_shm/limit.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/worker_pool.hpp>

namespace ojs_shm {

struct QueueSettings {
  std::optional<std::uint64_t> max_depth = {};       ///< jobs; 0: unbounded
  std::optional<std::uint64_t> max_size_bytes = {};  ///< stored bytes of the bodies; 0: unbounded
  std::optional<bool> paused = {};  ///< a paused queue accepts jobs, hands none out
  std::optional<AgingSettings> aging = {};
  std::optional<std::vector<LevelWeight>> level_weights = {};  ///< empty: strict
  std::optional<std::uint32_t> shards = {};                    ///< 1 to 16
  /// replaces all of it: weights that are not listed end
  std::optional<TenantFairness> tenant_fairness = {};
  /// of a bounded queue; reject unless said otherwise
  std::optional<BackpressureStrategy> strategy = {};
  /// 0 to 1; fuller than this, the queue warns: 0.8 unless said otherwise
  std::optional<double> warning_threshold = {};
  /// 0 to 1; a queue that has fallen below it stops warning: the warning threshold, unless this is
  /// lower
  std::optional<double> clear_threshold = {};
  std::optional<DropOrder> drop = {};  ///< of the strategy drop_oldest
  /// of each tenant; 0: unbounded
  std::optional<std::uint64_t> tenant_max_depth = {}, tenant_max_size_bytes = {};
  /// replaces all of them: bounds that are not listed end
  std::optional<std::vector<TenantBound>> tenant_bounds = {};
  QueueRetention retention = {};  ///< what is unset stays; 0 to 3,153,600,000,000 ms each
};

/// Reads `{"paused", "backpressure": {"max_depth", "max_size_bytes", "strategy",
/// "warning_threshold", "clear_threshold", "drop", "tenant_max_depth", "tenant_max_size_bytes",
/// "tenant_bounds": {"a": {"max_depth", "max_size_bytes"}}}, "aging": {"enabled", "preset",
/// "interval", "rate", "cap" or "floor"} or "default", "level_weights": {"0": 5, "high": 3,
/// "*": 1}, "shards", "tenant_fairness": {"enabled", "strategy": "fair-share", "scope": "within" or
/// "across", "default_weight", "weights": {"a": 5}}, "retention": {"completed": "P7D",
/// "discarded": "P30D", "cancelled": null}}`; null takes back, and only within `retention`.
/// Errors: kInvalid; `subject` is the member.
OJS_SHM_API Result<QueueSettings> parse_queue_settings(std::string_view json);

struct SegmentFile {
  std::string name, path;
  std::uint64_t size_bytes = 0;
  bool alive = false;     ///< a process holds it
  bool readable = false;  ///< it is a segment of this format
  std::string problem;    ///< why it is not readable
};

/// What bulk() does to each job.
enum class BulkAction : std::uint8_t {
  kCancel,     ///< Producer::cancel
  kPromote,    ///< Producer::promote
  kRetryDead,  ///< Admin::retry_dead
  kDropDead,   ///< Admin::drop_dead
  kDrop,       ///< Admin::drop
  /// Producer::retry; cancelled jobs only where the filter's state is cancelled
  kRetry,
};

/// What a request about many jobs did to them.
enum class BulkKind : std::uint8_t { kEnqueue, kCancel, kRetry, kDelete };

struct BulkReport {
  std::uint64_t matched = 0;  ///< jobs that the filter chose when it began
  std::uint64_t done = 0;     ///< so far
  /// jobs whose state had changed or never allowed it, whose unique key another has, or in which a
  /// stopped process was in the middle; so far
  std::uint64_t skipped = 0;
};

/// How long dead letters are kept, and how many of the segment; 0: without limit, unset: as it is.
/// Source: ojs-dead-letter 5.
struct DeadLetterRetention {
  std::optional<std::uint64_t> max_age_ms = {};  ///< since the job was discarded; at first 180 days
  std::optional<std::uint64_t> max_count = {};   ///< the oldest go first; at first 10,000
};

/// What happens to the unfinished jobs of a queue that is deleted. Source: ojs-queue-config 5.3.
enum class QueueDeletion : std::uint8_t {
  kReject,   ///< while it has any, the queue stays
  kDiscard,  ///< they are discarded with the error type "queue_deleted", also those at work
};

/// Changes settings and mends. One thread at a time. Any change answers kTimeout when a stopped
/// process is in the middle of it.
class OJS_SHM_API Admin {
 public:
  static Result<Admin> attach(const Segment& segment);
  static Result<Admin> attach(const SegmentName& name);
  Admin(Admin&&) noexcept;
  Admin& operator=(Admin&&) noexcept;
  ~Admin();

  /// Makes the queue when it does not exist. Effective at once, on all jobs that wait. Errors:
  /// kInvalid (also ageing and weights on one queue), kSegmentFull.
  Status set_queue(std::string_view name, const QueueSettings& settings);
  /// Removes all its settings and does not list it any more, until a job or a setting makes it
  /// anew. Its finished jobs stay, and its place in the segment stays taken. Returns how many jobs
  /// were discarded.
  /// Errors: kNotFound, kWrongState (unfinished jobs: `depth` says how many), kTimeout.
  Result<std::uint64_t> delete_queue(std::string_view name,
                                     QueueDeletion jobs = QueueDeletion::kReject);
  /// For all queues that have no ageing of their own, now and later; SegmentInfo::aging reads it.
  /// Errors: kInvalid.
  Status set_default_aging(const AgingSettings& aging);
  /// Makes or changes a pool of workers, and its queues when they do not exist; true when it is
  /// new. Effective at once, on all jobs that wait. Errors: kInvalid (also a queue of another pool
  /// that is isolated), kSegmentFull.
  Result<bool> set_pool(std::string_view name, const PoolSettings& settings);
  /// Its queues stay, open to all workers. Workers that serve it get kNotFound. Errors: kNotFound.
  Status remove_pool(std::string_view name);
  /// Directs the registered worker of that id; its next beat tells it. Errors: kNotFound,
  /// kTimeout (a stopped process writes in its record).
  Status direct_worker(std::string_view id, WorkerDirective directive);
  /// Forgets the worker; its jobs stay with their leases. Errors: kNotFound.
  Status remove_worker(std::string_view id);
  /// For jobs of this type that are enqueued without a priority from now on; nothing: the
  /// convention's default again. At most 256 types of a segment can ever have had one. Errors:
  /// kInvalid (names the maximum), kSegmentFull.
  Status set_default_priority(std::string_view type, std::optional<std::int64_t> priority);
  /// Sets the limit of a key, in place of what jobs bring; effective at once, also on jobs that
  /// wait. `queue:NAME` limits a queue, `type:NAME` a type of jobs, `tenant:ID` the jobs of a
  /// tenant that are enqueued from then on. `expires_at_ms`, Unix time in whole seconds (a part of
  /// one counts as one): when it is taken back as by clear_limit(); 0: never. Errors: kInvalid,
  /// kSegmentFull.
  Status set_limit(std::string_view key, const RateLimit& limit, std::uint64_t expires_at_ms = 0);
  /// No limit until a job brings one; what a job has closed stays closed. Errors: kNotFound.
  Status clear_limit(std::string_view key);
  /// Makes a cron or replaces the cron of that name, whose counts stay; true when it is new. Its
  /// next time is computed from now on, unless expression and timezone are the same as before.
  /// Errors: kInvalid (`subject` is the member: "expression", "timezone", ...), kTooLarge,
  /// kSegmentFull (also 256 crons).
  Result<bool> set_cron(const CronSpec& spec);
  /// Its jobs stay. Errors: kNotFound.
  Status remove_cron(std::string_view name);
  /// A disabled cron never fires; once enabled again, it fires at its next time. Errors: kNotFound.
  Status enable_cron(std::string_view name, bool enabled);
  /// Enqueues its job now, also when it is disabled, and keeps its next time. Returns the job's id.
  /// Errors: kNotFound, kWrongState (its overlap says skip and its last job is not finished),
  /// kDuplicate, kQueueFull, kSegmentFull.
  Result<JobIdText> trigger_cron(std::string_view name);
  /// Whether every handle of the segment, in any process, tells what it does from now on. Off in a
  /// new segment.
  Status set_events(bool on);
  /// Whether programs that read envelopes for this segment refuse members without a meaning. Off in
  /// a new segment.
  Status set_strict_envelopes(bool on);
  /// Whether jobs keep the priority they were enqueued with, in place of what the convention says:
  /// on in `qo`, off elsewhere.
  Status set_immutable_priorities(bool on);
  /// Maintenance of the segment: while it is on, no process gets a job from any queue, no scheduled
  /// job or retry becomes available, and no cron fires; enqueues go on, and active jobs may end. It
  /// is independent of the pauses of queues. Survives this process. `estimated_end_ms`, Unix time,
  /// is told to those who look, 0: nothing is said; it ends nothing. Errors: kInvalid (the reason
  /// is longer than 256 bytes), kTimeout (a stopped process is in the middle of it).
  Status set_maintenance(bool on, std::string_view reason = {}, std::uint64_t estimated_end_ms = 0);
  /// The supervisor drops dead letters that are too old or too many, now and every five minutes.
  Status set_dead_retention(const DeadLetterRetention& retention);
  /// Does `action` to every job that the filter chooses, one after the other, so that a kill leaves
  /// each job as it was or done. Calls `progress` before each job and at the end; when it returns
  /// false, no further job is changed. Errors: kNotFound (the filter's queue), kClosed,
  /// kSegmentFull.
  Result<BulkReport> bulk(BulkAction action, const JobFilter& filter,
                          const std::function<bool(const BulkReport&)>& progress = {});
  /// Tells readers of events that such a request about so many jobs is over: for a caller that does
  /// it job by job. bulk() calls it itself. `atomic`: all or none.
  void tell_bulk(BulkKind kind, std::uint64_t jobs, std::uint64_t done, bool atomic = false);
  /// Discarded jobs with dead_letter set: back to available with attempt 0, or removed.
  Status retry_dead(std::string_view id);
  Status drop_dead(std::string_view id);
  /// Removes what is kept of a completed, cancelled or discarded job, also of a dead letter.
  /// Errors: kNotFound, kWrongState (it has not ended, or its workflow runs and may ask for its
  /// result).
  Status drop(std::string_view id);
  /// Repairs after every dead process right now; returns how many it found. Leaves out a dead
  /// process that another process is repairing at this moment, and does not wait for it.
  Result<std::uint32_t> repair();
  /// Looks at everything once and mends what it can (lost hints, leaked blocks).
  Result<std::uint32_t> mend();
  Producer& producer();  ///< get, cancel, reprioritize, activate
  const Segment& segment() const;

 private:
  struct Impl;
  explicit Admin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The segments of a directory.
OJS_SHM_API std::vector<SegmentFile> list_segments(const std::string& dir);
/// What remove_segment() may remove with the files.
enum class Removal : std::uint8_t {
  /// nothing: a segment with unfinished jobs, dead letters, crons or a living process is refused
  kUnused,
  kWithJobs,  ///< its jobs; a segment with a living process is refused
  kForced,    ///< its jobs, also under living processes, which go on with the removed segment
};
/// Removes the files. Errors: kNotFound, kInUse (a process lives in it), kWrongState (jobs or crons
/// are left; the message says how many), kOtherFormat (not a segment: never removed; or one whose
/// jobs this library cannot count: kForced only), kPermission.
OJS_SHM_API Status remove_segment(const SegmentName& name, Removal removal = Removal::kUnused);
/// Removes the files of this very segment. Errors: as above, where this process does not count;
/// kNotFound also when its name now leads to another segment. kForced acts as kWithJobs.
OJS_SHM_API Status remove_segment(const Segment& segment, Removal removal = Removal::kUnused);

/// The broker's part: holds the broker's seat in a segment and supervises it until stopped. One
/// thread.
class OJS_SHM_API Broker {
 public:
  /// Creates the segment, or re-attaches to a segment that its last broker left. Errors: kInUse
  /// (another broker lives), kOtherFormat (also another convention), and those of Segment::create.
  /// `resumed` tells which it was.
  static Result<Broker> start(const SegmentName& name, const SegmentOptions& options);
  Broker(Broker&&) noexcept;
  ~Broker();
  bool resumed() const;
  /// what the audit and the repair of a resumed segment found, for the log
  std::string resume_report() const;
  /// Lists the options that differ in the segment, because they are fixed when it is made; empty:
  /// none differ.
  std::string kept_options(const SegmentOptions& options) const;
  /// Supervises until stop(); calls `log` with a line when something happened (a death, a repair).
  Status run(const std::function<void(std::string_view)>& log);
  void stop() noexcept;  ///< async-signal-safe
  const Segment& segment() const;
  /// True when another living process is attached.
  bool others_attached() const;

 private:
  struct Impl;
  explicit Broker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
