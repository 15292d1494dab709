// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ojs_shm/backpressure.hpp>
#include <ojs_shm/cron.hpp>
#include <ojs_shm/events.hpp>
#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/limit.hpp>
#include <ojs_shm/registered_worker.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/scheduling.hpp>
#include <ojs_shm/segment.hpp>
#include <ojs_shm/worker_pool.hpp>
#include <ojs_shm/workflow.hpp>

namespace ojs_shm {

/// How waiting jobs rise: `rate` levels in each interval. Unset members are the preset's.
/// docs/scheduling.md.
struct AgingSettings {
  bool enabled = true;
  std::string preset = {};  ///< "ojs": without end; "qo": up to 200; empty: the convention's
  std::optional<std::uint32_t> interval_ms = {};  ///< 60,000
  std::optional<std::uint32_t> rate = {};         ///< 1; 0 to 255
  std::optional<std::int64_t> limit =
      {};  ///< the best priority that a job reaches by age, "floor" or "cap"
  /// the queue has no ageing of its own and follows the segment; the other members do not count
  bool inherit = false;
};

/// How many turns a level has in each cycle.
struct LevelWeight {
  std::string level;  ///< a priority, as a number or a name; "*": all levels that are not listed
  std::uint32_t weight = 0;
};

/// How tenants share a queue. A tenant is a job's `meta.tenant_id`; jobs without one are one
/// tenant.
/// Source: fair scheduling 9; `across`: "Priority", the summary, "Fair Scheduling".
struct TenantFairness {
  bool enabled = true;
  std::uint32_t default_weight = 1;  ///< turns in a row; 1 to 1,000
  std::vector<std::pair<std::string, std::uint32_t>> weights =
      {};  ///< by tenant, or by "tenant:" and its name
  /// false: tenants take turns within each level; a level goes before all lower ones, whichever
  /// tenants own its jobs. true: tenants take turns whatever the levels of their jobs, and levels
  /// order only the jobs of one tenant.
  bool across = false;
};

/// Bounds of one tenant in a queue; an unset bound is the queue's bound for each tenant.
struct TenantBound {
  std::string tenant;
  std::optional<std::uint64_t> max_depth = {}, max_size_bytes = {};  ///< 0: unbounded
};

/// How long a queue keeps its jobs after their end, by the state in which they ended; dead letters
/// have a retention of their own (DeadLetterRetention). At most as long as the segment has room,
/// and as its own retention says. Source: ojs-queue-config 6.3.
struct QueueRetention {
  /// after the end; 0, and in a QueueInfo unset: as the segment keeps them
  std::optional<std::uint64_t> completed_ms = {}, discarded_ms = {}, cancelled_ms = {};
};

struct QueueInfo {
  std::string name;
  std::uint64_t created_at_ms =
      0;  ///< Unix time; 0: not known, of a queue that an older version made
  bool paused = false;
  std::uint64_t max_depth = 0, max_size_bytes = 0;  ///< 0: unbounded
  BackpressureStrategy strategy = BackpressureStrategy::kReject;
  double warning_threshold = 0.8, clear_threshold = 0.8;
  DropOrder drop = DropOrder::kOldest;
  std::uint64_t tenant_max_depth = 0, tenant_max_size_bytes = 0;  ///< of each tenant; 0: unbounded
  /// of tenants that have their own
  std::vector<TenantBound> tenant_bounds;
  /// depth / bound, of the bound that is filled more; at most 1; 0 without a bound
  double pressure = 0;
  std::uint64_t waiting = 0;                ///< enqueues that wait for room
  std::uint64_t depth = 0, size_bytes = 0;  ///< available + scheduled + retryable + pending
  std::uint64_t by_state[8] = {};           ///< jobs now in the segment, indexed by State
  std::uint64_t dead_letters = 0;           ///< of the discarded ones: kept for an operator
  /// how long the oldest available job has been available; 0: there is none
  std::uint64_t oldest_age_ms = 0;
  /// attempts that ended in a failure or a timeout, and jobs that a limit dropped
  std::uint64_t failed_attempts_total = 0;
  std::uint64_t enqueued_total = 0, dispatched_total = 0, completed_total = 0, discarded_total = 0,
                cancelled_total = 0, retried_total = 0, returned_total = 0, rejected_total = 0,
                conflicts_total = 0, dropped_total = 0, expired_total = 0, reprioritized_total = 0;
  std::uint64_t pruned_total = 0;  ///< dead letters that the retention dropped
  std::vector<std::pair<std::int64_t, std::uint64_t>> available_by_priority;  ///< best first
  bool lower_first = true;  ///< of two priorities the lower one goes first
  AgingSettings aging;
  bool aging_is_default = true;  ///< the segment's, not the queue's own
  /// rates that jobs of the queue ever had of their own, in order of arrival; at most eight
  std::vector<std::uint32_t> age_rates;
  /// best first, divided by what they have in common; empty: strict
  std::vector<LevelWeight> level_weights;
  std::uint32_t shards = 1;  ///< order holds within a shard
  TenantFairness tenant_fairness;
  QueueRetention retention;
};

/// `backpressure`, `aging`, `level_weights`, `shards`, `tenant_fairness` and `retention` of a queue
/// as they are, for parse_queue_settings().
OJS_SHM_API std::string print_queue_policy(const QueueInfo& queue);

/// "handles" includes the supervisor's handle; eight more are kept for supervision and not counted.
struct PoolInfo {
  /// "slots", "blocks", "chunks", "levels", "queues", "parts", "ids", "handles", "processes"
  std::string name;
  std::uint64_t used = 0, capacity = 0, unit_bytes = 0;
  std::string option;  ///< the option that makes it larger
  /// the options and sizes for a pool twice as large; empty when no segment can have more
  std::string larger;
};

struct ProcessInfo {
  std::uint32_t index = 0, pid = 0;
  bool alive = false, supervisor = false, broker = false;
  std::uint32_t handles = 0, active_jobs = 0;
  /// alive, and stopped by a signal or a debugger, as far as that can be seen from here
  bool stopped = false;
};

/// The last time that a process found other processes dead and repaired what they left.
struct LastRepair {
  std::uint64_t at_ms = 0;   ///< Unix time
  std::uint32_t by_pid = 0;  ///< of the process that did it
  std::uint32_t pid = 0;     ///< of one of the dead
  std::uint64_t mended = 0;  ///< slots
};
/// `{"at", "pid", "repaired_by", "slots_mended"}`
OJS_SHM_API std::string print_last_repair(const LastRepair& repair);

/// While it is on, no queue hands out a job, no scheduled job or retry becomes available and no
/// cron fires; enqueues and acks go on.
struct Maintenance {
  bool enabled = false;
  std::string reason = {};
  std::uint64_t since_ms = 0;  ///< when it was set, Unix time; 0: it never was on
  /// when it is meant to end, Unix time; 0: nothing was said of it
  std::uint64_t estimated_end_ms = 0;
};

struct SegmentInfo {
  std::string name, path, convention, created_by_version;
  std::uint32_t format = 0;
  std::uint64_t size_bytes = 0, created_at_ms = 0, slots = 0, max_body_bytes = 0,
                default_lease_ms = 0, retention_ms = 0;
  std::uint64_t dead_max_age_ms = 0, dead_max_count = 0;  ///< DeadLetterRetention; 0: without limit
  std::uint64_t next_prune_at_ms = 0;  ///< when dead letters are looked at next, Unix time
  bool strict_envelopes = false;       ///< Admin::set_strict_envelopes
  bool immutable_priorities = false;   ///< Admin::set_immutable_priorities, or the convention's
  bool events = false;                 ///< handles tell what happens (Admin::set_events)
  /// dispatches that no LevelWaits counts, for lack of memory
  std::uint64_t unmeasured_waits_total = 0;
  std::int64_t priority_min = 0, priority_max = 0, priority_default = 0;
  bool lower_first = true;  ///< of two priorities the lower one goes first
  AgingSettings aging;      ///< of queues that have none of their own
  std::vector<PoolInfo> pools;
  std::vector<ProcessInfo> processes;
  std::uint64_t deaths_total = 0, repairs_total = 0;
  std::optional<LastRepair> last_repair = {};  ///< empty: there was none
  Maintenance maintenance = {};                ///< Admin::set_maintenance
  /// how late the scheduled or retryable job with the earliest time is
  std::uint64_t overdue_ms = 0;
};

struct WaitHistogram {
  std::uint64_t count = 0, sum_ms = 0;
  /// a bound, and how many jobs waited no longer than it
  std::vector<std::pair<std::uint64_t, std::uint64_t>> up_to_ms;
};

/// How long jobs waited until they were handed out, by the priority they had then. A job that is
/// handed out again counts again: from when it became available again, and from its enqueue.
/// `runs`: how long attempts ran until they were acked, failed, or passed their time limit; an
/// attempt whose holder died or let the lease end is not counted.
struct LevelWaits {
  std::string queue;
  std::int64_t priority = 0;
  WaitHistogram from_enqueue, from_available, runs;
};
/// `[{"queue", "priority", "from_enqueue": {"count", "sum_ms", "up_to_ms": {"1": n, ...}},
/// "from_available": {...}, "runs": {...}}]`
OJS_SHM_API std::string print_waits(const std::vector<LevelWaits>& waits);

/// One change of a job's state, as the flight recorder of the segment has it.
struct Transition {
  std::uint64_t time_ms = 0;  ///< Unix time
  std::uint32_t handle = 0;   ///< that made it, or in whose place its repair was made
  std::uint32_t pid = 0;      ///< of the process that had the handle; 0: not known any more
  std::uint32_t slot = 0;
  std::string job = {}, queue = {};  ///< empty: another job has the slot by now
  /// names of states; from "new" when it was enqueued, "waiting" before it was cancelled, expired
  /// or dropped
  std::string from = {}, to = {};
};
/// `{"time", "handle", "pid", "slot", "job", "queue", "from", "to"}`; what is not known is left
/// out.
OJS_SHM_API std::string print_transition(const Transition& transition);

struct JobFilter {
  std::string queue = {}, type = {};  ///< empty: any
  std::optional<State> state = {};
  bool dead_letter = false;  ///< only dead letters
  bool waiting = false;      ///< only scheduled, available, pending and retryable ones
  /// only unique jobs that keep other jobs of their key out now, by their states and period
  bool unique = false;
  std::optional<std::string> tenant = {};
  std::optional<std::int64_t> priority = {};  ///< as stored
  std::uint64_t created_before_ms = 0;        ///< Unix time; 0: any
  /// when it was completed, cancelled or discarded, Unix time; 0: any, also unfinished jobs
  std::uint64_t ended_from_ms = 0, ended_before_ms = 0;
  std::string error_type = {};  ///< error_type() of its last failure; empty: any
  std::size_t limit = 0;        ///< 0: all
};

enum class JobOrder : std::uint8_t { kCreated, kScheduled, kPriority };

/// A part of a list that is sorted by a JobOrder, then by creation, then by id.
struct JobPageRequest {
  JobFilter filter = {};  ///< without its limit
  std::string type_prefix = {};
  std::uint64_t created_from_ms = 0;  ///< Unix time; 0: any
  JobOrder order = JobOrder::kCreated;
  bool falls = true;  ///< the newest, latest or highest first
  std::size_t offset = 0, limit = 50;
  /// Begin behind the job with this created_at_ms and id, in the order by creation.
  std::optional<std::pair<std::uint64_t, std::string>> behind = {};
};

struct JobPage {
  std::vector<JobInfo> jobs;
  std::uint64_t total = 0;  ///< of the whole list
  bool more = false;        ///< whether the list goes on
};

/// As much of a job as a caller needs to decide what to do with it.
struct BriefJob {
  std::string id;
  State state = State::kAvailable;
  bool dead_letter = false;
};

/// A violated invariant; docs/invariants.md has the numbers.
struct Violation {
  std::uint32_t invariant = 0;
  std::string text;
};

struct Census;
namespace internal {
class Births;
class TenantNames;
}  // namespace internal

/// Reads and never writes: works on a read-only mapping, also of a segment whose processes are all
/// dead. Thread-safe.
class OJS_SHM_API Observer {
 public:
  static Result<Observer> attach(const Segment& segment);
  static Result<Observer> attach(const SegmentName& name);  ///< maps read-only

  SegmentInfo segment_info() const;
  /// The same without what has to be counted, from a few words of the segment: no pools, no
  /// processes, no overdue_ms.
  SegmentInfo segment_settings() const;
  Maintenance maintenance() const;
  /// One look at everything that a monitor shows, in one walk over the segment.
  Census census() const;
  std::vector<QueueInfo> queues() const;
  Result<QueueInfo> queue(std::string_view name) const;
  std::vector<WorkerPoolInfo> pools() const;
  /// Errors: kNotFound.
  Result<WorkerPoolInfo> pool(std::string_view name) const;
  /// By id, including workers that ended within the last ten minutes.
  std::vector<RegisteredWorker> registered_workers() const;
  /// Errors: kNotFound.
  Result<RegisteredWorker> registered_worker(std::string_view id) const;
  /// By name.
  std::vector<CronInfo> crons() const;
  /// Errors: kNotFound.
  Result<CronInfo> cron(std::string_view name) const;
  SchedulingStats scheduling_stats() const;
  Result<JobInfo> get(std::string_view id) const;
  /// Errors: kNotFound.
  Result<WorkflowInfo> workflow(std::string_view id) const;
  /// The newest first, without results.
  std::vector<WorkflowInfo> workflows(const WorkflowFilter& filter = {}) const;
  /// Available jobs in the order in which they would be fetched, then the other jobs, queue by
  /// queue, by creation. A queue with weights of levels is listed level by level, best first,
  /// because turns decide among its levels. In a queue with tenants, each level lists the first job
  /// of each tenant, then the second jobs, and so on.
  std::vector<JobInfo> list(const JobFilter& filter) const;
  /// Looks at the control words of all jobs, and copies only the jobs of the page.
  JobPage page(const JobPageRequest& request) const;
  /// The whole list of which page() gives a part. Copies no texts.
  std::vector<BriefJob> brief_list(const JobPageRequest& request) const;
  /// The keys that have or had a limit, by name.
  std::vector<LimitInfo> limits() const;
  Result<LimitInfo> limit(std::string_view key) const;
  /// Walks everything. Exact in a quiet segment; else it looks twice before it reports.
  std::vector<Violation> audit() const;
  /// Levels from which a job was handed out since the segment was made.
  std::vector<LevelWaits> waits() const;
  /// The newest transitions of all handles, at most so many, oldest first. Each handle keeps its
  /// last 256 (in a small segment 64 or 16), also after its death.
  std::vector<Transition> recent(std::size_t most = 1000) const;
  /// What handles tell, if events are on: see SegmentInfo::events.
  EventReader events(const EventOptions& options = {}) const;
  std::optional<std::int64_t> default_priority(std::string_view type) const;
  /// The number that a priority's name ("urgent") stands for in this segment's convention; else an
  /// error that lists the names.
  Result<std::int64_t> priority_by_name(std::string_view name) const;
  const Segment& segment() const { return segment_; }

 private:
  explicit Observer(Segment segment);
  Segment segment_;
  std::shared_ptr<internal::TenantNames> tenants_;  ///< as far as they are known
  std::shared_ptr<internal::Births> births_;        ///< as far as they are known
};

}  // namespace ojs_shm
